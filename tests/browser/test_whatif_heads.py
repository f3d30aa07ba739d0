"""What if heads fell silent, a mask were another, an idea were missing: the page against Python."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from serving import MARKUP, SAMPLE, Server
from visit import Visit, complaints

from transformer import Model, Run, Site
from transformer.inference.effects import head_importance, next_token
from transformer.inference.sample import broken
from transformer.model.changes import Changes
from transformer.model.interventions import (
    BREAKS,
    Break,
    EditMask,
    Intervention,
    Silence,
    interventions_of,
)
from transformer.ui.examples import EXAMPLES

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
EXAMPLE = EXAMPLES["decoder"]
PARTS = (".effect", ".silence", ".maskedit", ".breaks")
SITE = Site("decoder", 0, "self")
ALTERED = "wanted => JSON.stringify(viz.interventions()) === JSON.stringify(wanted)"


class WhatIf:
    """A visitor in the tab, and the runs that Python makes of the same requests."""

    def __init__(self, visit: Visit, model: Model, length: int = 8) -> None:
        self.visit, self.page, self.model, self.length = visit, visit.page, model, length
        visit.set_length(length)
        visit.enter(EXAMPLE.text)
        self.page.wait_for_function(
            "n => viz.run.labels.length - viz.run.n_prompt === n", arg=length
        )
        visit.tab("What if?")

    def see(self, part: str) -> None:
        """Scroll there and wait until it shows the present run."""
        self.page.locator(part).scroll_into_view_if_needed()
        self.page.wait_for_function(
            "part => document.querySelector(part)?.dataset.run === viz.run.run", arg=part
        )

    def run(self, interventions: Sequence[Intervention] = ()) -> Run:
        """What Python generates, with the settings that stand on the page."""
        settings = {**EXAMPLE.settings, "max_new_tokens": self.length}
        return self.model.generate(EXAMPLE.text, **settings, interventions=interventions)

    def wait_for(self, plain: list[dict[str, Any]]) -> None:
        """Until the shown run has these interventions, and the tokens stand there."""
        self.page.wait_for_function(ALTERED, arg=plain)

    def shows(self, run: Run) -> None:
        """The text at the left is this run's."""
        assert self.visit.labels() == list(run.labels)

    def head(self, layer: int, head: int) -> Any:
        name = f"Silence layer {layer}, head {head}"
        return self.page.get_by_role("button", name=name, exact=True)

    def data(self, part: str, name: str) -> str:
        return str(self.page.locator(part).get_attribute(f"data-{name}"))


@pytest.fixture
def whatif(visit: Open, server: Server) -> WhatIf:
    return WhatIf(visit(), server.model)


# --- silence --------------------------------------------------------------------------------------


def test_chosen_heads_fall_silent_and_one_click_brings_them_back(whatif: WhatIf) -> None:
    page = whatif.page
    whatif.see(".silence")
    assert page.locator(".effect-body").is_hidden()
    whatif.head(0, 0).click()
    whatif.head(0, 2).click()
    assert whatif.head(0, 2).get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="Silence the chosen heads").click()
    whatif.wait_for([{"type": "silence", "stack": "decoder", "layer": 0, "heads": [0, 2]}])
    intact, altered = whatif.run(), whatif.run([Silence("decoder", 0, [0, 2])])
    assert intact.ids != altered.ids
    whatif.shows(altered)

    whatif.see(".effect")
    same = next(p for p, (a, b) in enumerate(zip(intact.ids, altered.ids, strict=True)) if a != b)
    assert whatif.data(".effect", "place") == whatif.data(".effect", "same") == str(same)
    found = next_token(whatif.model, altered, same)
    for name in ("intact", "altered"):
        wanted = getattr(found, name)[found.ids.index(altered.ids[same])]
        assert float(whatif.data(".effect", name)) == pytest.approx(float(wanted), abs=1e-5)
    for name, run in (("intact", intact), ("altered", altered)):
        tokens = page.locator(f"[data-of={name}] > bdi")
        assert tokens.all_inner_texts() == list(run.labels[run.n_prompt :])
        differ = page.locator(f"[data-of={name}] > bdi.differs")
        assert differ.count() == len(run.ids) - same
    assert complaints(whatif.visit, *PARTS) == []

    page.get_by_role("button", name="Back to the intact model").click()
    whatif.wait_for([])
    whatif.shows(intact)
    whatif.see(".silence")
    assert page.locator(".silenced[aria-pressed=true]").count() == 0


def test_a_head_is_silenced_where_it_is_looked_at(visit: Open, server: Server) -> None:
    page = visit()
    page.page.locator(".silence-head").click()
    with page.drawn(".attention"):
        page.head(1, 1).click()
    plain = {"type": "silence", "stack": "decoder", "layer": 0, "heads": [0]}
    page.page.wait_for_function(ALTERED, arg=[plain])
    page.page.wait_for_function(
        """() => { const { site, head, run } = document.querySelector(".attention").dataset;
           return site === "decoder.1.self" && head === "1" && run === viz.run.run; }"""
    )
    settings = {**EXAMPLE.settings, "interventions": [Silence("decoder", 0, [0])]}
    run = server.model.generate(EXAMPLE.text, **settings)
    shown = page.page.evaluate(
        "() => document.querySelector('.large').data[0].z.map(r => [...r].map(v => v || 0))"
    )
    weights = run.trace["decoder.1.self"].weights[0, 1].numpy()
    np.testing.assert_allclose(np.square(shown), weights, atol=1e-4)
    with page.drawn(".attention"):
        page.head(0, 0).click()
    page.page.get_by_role("button", name="Let this head speak").click()
    page.page.wait_for_function(ALTERED, arg=[])
    assert page.labels() == list(server.model.generate(**page.example_request()).labels)


def test_what_each_head_matters_is_asked_for_and_a_cell_chooses_its_head(whatif: WhatIf) -> None:
    page, run = whatif.page, whatif.run()
    whatif.see(".silence")
    assert page.locator(".matter-box").is_hidden()
    place = run.n_prompt + 2
    whatif.visit.tokens.nth(place).click()
    page.locator(".silenced-by label", has_text="mean").click()
    page.locator(".matter").click()
    page.wait_for_selector(f".silence[data-matter='{place} mean']")
    found = head_importance(whatif.model, run, place, "mean").change["decoder", "self"]
    shown = page.evaluate(
        """() => document.querySelector("[data-picture=importance]").calcdata[0][0].z
           .map(row => [...row])"""
    )
    np.testing.assert_allclose(shown, found, atol=1e-5)
    page.locator(".silence .as-table summary").click()
    row = page.locator(".silence .as-table tbody tr").nth(1)
    row.wait_for()  # the table is filled when it opens
    told = [float(text) for text in row.locator("td").all_inner_texts()]
    assert told == pytest.approx(found[1].tolist(), abs=6e-5)
    strips = page.locator(".silenced i").evaluate_all("all => all.map(i => i.style.background)")
    assert len(set(strips)) > 1
    page.evaluate(
        """() => { const box = document.querySelector("[data-picture=importance]");
           box.emit("plotly_click", { points: [{ x: 2, y: 1 }] }); }"""
    )
    assert whatif.head(1, 2).get_attribute("aria-pressed") == "true"


def test_heads_are_chosen_by_keyboard(whatif: WhatIf) -> None:
    page = whatif.page
    whatif.see(".silence")
    whatif.head(0, 0).focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown"):  # the last one has nowhere to go
        page.keyboard.press(key)
    assert page.locator(".silenced[aria-pressed=true]").count() == 0  # walking chooses nothing
    page.keyboard.press("Space")
    assert whatif.head(1, 1).get_attribute("aria-pressed") == "true"
    assert page.locator(".silenced[tabindex='0']").count() == 1
    assert "1 head chosen, not yet applied" in page.locator(".silence-says").inner_text()


# --- masks ----------------------------------------------------------------------------------------


def test_an_edited_mask_is_the_one_that_the_next_run_uses(whatif: WhatIf) -> None:
    page = whatif.page
    whatif.see(".maskedit")
    board = page.locator(".board")
    board.focus()
    keys = ["Home", "ArrowRight"]  # the label of row 0, then its first cell
    keys += ["ArrowDown", "ArrowDown", "Enter"]  # cell (2, 0): allowed, so forbidden
    keys += ["ArrowRight"] * 4 + ["Space"]  # cell (2, 4): of the future, so allowed
    keys += ["ArrowUp"] * 3 + ["Enter"]  # the label of column 4: forbidden
    for key in keys:
        page.keyboard.press(key)
    assert "Column of key 4" in page.locator(".board-said").inner_text()
    assert "forbidden by you" in page.locator(".board-said").inner_text()
    assert whatif.data(".maskedit", "applied") == "false"
    promised = int(whatif.data(".maskedit", "allowed"))
    page.get_by_role("button", name="Run with this mask").click()
    edit = EditMask("decoder", forbid=[(2, 0), (None, 4)])
    page.wait_for_function("() => viz.interventions().length === 1")
    assert interventions_of(page.evaluate("viz.interventions()")) == (edit,)
    run = whatif.run([edit])
    whatif.shows(run)
    whatif.see(".maskedit")
    used = run.trace["decoder.1.self"].allowed[0]
    assert int(whatif.data(".maskedit", "allowed")) == promised == int(used.sum())
    assert not used[:, 4].any()


def test_without_the_causal_mask_every_cell_is_open_and_the_page_says_what_that_means(
    whatif: WhatIf,
) -> None:
    page = whatif.page
    whatif.see(".maskedit")
    with whatif.visit.drawn(".maskedit"):
        page.locator(".edit-layer").select_option("1")
    page.get_by_label("remove the causal mask").check()
    assert "each step saw a shorter one" in page.locator(".mask-note").inner_text()
    page.get_by_role("button", name="Run with this mask").click()
    edit = EditMask("decoder", layer=1, without=["causal"])
    page.wait_for_function("() => viz.interventions().length === 1")
    assert interventions_of(page.evaluate("viz.interventions()")) == (edit,)
    run = whatif.run([edit])
    whatif.shows(run)
    whatif.see(".maskedit")
    assert int(whatif.data(".maskedit", "allowed")) == len(run.ids) ** 2
    with whatif.visit.drawn(".maskedit"):
        page.locator(".edit-layer").select_option("0")
    allowed = run.trace["decoder.0.self"].allowed[0]
    assert int(whatif.data(".maskedit", "allowed")) == int(allowed.sum())
    assert page.locator(".mask-note").inner_text() == ""


def test_whatever_is_clicked_the_page_and_the_network_mean_the_same_mask(visit: Open) -> None:
    page = visit().page
    chance = random.Random(4)
    size = 5
    for _ in range(12):
        clicks = []
        for _ in range(chance.randint(1, 9)):
            place = chance.randrange(size)
            line = chance.choice([f"{place},*", f"*,{place}"])
            clicks.append(line if chance.random() < 0.4 else f"{place},{chance.randrange(size)}")
        shown, plain = page.evaluate(
            """([clicks, size]) => {
                const edits = viz.noEdits();
                const natural = (query, key) => key <= query;
                const allowed = (query, key) => {
                    const said = viz.editOf(edits, query, key);
                    return said === null ? natural(query, key) : said === "allow";
                };
                const wrong = [];
                for (const click of clicks) {
                    const [query, key] = click.split(",");
                    const was = allowed(query, key);
                    if (click.includes("*")) viz.editLine(edits, click);
                    else {
                        const counts = { queries: size, keys: size };
                        viz.editCell(edits, +query, +key, natural(+query, +key), counts);
                        if (allowed(query, key) === was) wrong.push(click);
                    }
                }
                if (wrong.length) throw new Error(`a click changed nothing: ${wrong}`);
                const all = [...Array(size).keys()];
                const mask = viz.maskOf({ stack: "decoder", kind: "self", layer: null }, edits);
                return [all.map((query) => all.map((key) => allowed(query, key))), mask];
            }""",
            [clicks, size],
        )
        (edit,) = interventions_of([plain])
        assert isinstance(edit, EditMask)
        causal = torch.ones(size, size, dtype=torch.bool).tril()
        changes = Changes(masks={SITE: [edit]})
        mask = changes.edited(SITE, causal, torch.zeros(1, 1, size, size))
        assert mask is not None
        assert mask.expand(1, 1, size, size)[0, 0].tolist() == shown, clicks


# --- what breaks ----------------------------------------------------------------------------------


def test_every_switch_has_its_loss_its_reason_and_the_visitors_text(whatif: WhatIf) -> None:
    page = whatif.page
    whatif.see(".breaks")
    page.wait_for_selector(".breaks[data-rev]")
    if whatif.data(".breaks", "measured") != "true":  # the server keeps it for all visitors
        page.get_by_role("button", name="Measure what each costs").click()
    page.wait_for_selector(".breaks[data-measured=true]")
    page.get_by_role("button", name="Run my text through each").click()
    page.wait_for_selector(f".breaks[data-texts='{len(BREAKS) + 1}']")
    rows = page.locator(".breaks-table tbody tr").all()
    told = [row.locator("td").all_inner_texts() for row in rows]
    wanted = broken(whatif.model)
    assert len(rows) == len(wanted)
    assert wanted[0].loss is not None
    for (why, loss, more, text), one in zip(told, wanted, strict=True):
        assert one.loss is not None
        assert (why, loss) == (one.why, f"{one.loss:.3f}")
        if one.what:
            assert float(more.replace("−", "-")) == pytest.approx(
                one.loss - wanted[0].loss, abs=6e-4
            )
        breaks = [Break(one.what)] if one.what else []
        run = whatif.model.generate(EXAMPLE.text, max_new_tokens=24, interventions=breaks)
        assert text == "".join(run.labels[run.n_prompt :])
    assert str(SAMPLE["about"]) in page.locator(".breaks-about").inner_text()
    assert "2 texts" in page.locator(".breaks-about").inner_text()
    assert complaints(whatif.visit, *PARTS) == []


def test_switches_are_put_together_and_taken_back(whatif: WhatIf) -> None:
    page = whatif.page
    whatif.see(".breaks")
    plain = []
    for what in ("no-positions", "hard-attention"):
        page.get_by_role("button", name=what.replace("-", " "), exact=True).click()
        plain.append({"type": "break", "what": what})
        whatif.wait_for(plain)
        whatif.see(".breaks")
    whatif.shows(whatif.run([Break("no-positions"), Break("hard-attention")]))
    pressed = page.locator(".break-switch[aria-pressed=true]")
    assert pressed.all_inner_texts() == ["no positions", "hard attention"]
    page.get_by_role("button", name="no positions", exact=True).click()
    whatif.wait_for(plain[1:])
    whatif.shows(whatif.run([Break("hard-attention")]))


# --- for everybody --------------------------------------------------------------------------------


def test_hostile_tokens_stay_text(visit: Open, server: Server) -> None:
    page = visit()
    stray = "() => document.querySelectorAll('s, img[src=x], script:not([src])').length"
    before = page.page.evaluate(stray)
    page.choose_model(server.hostile.name)
    page.set_length(4)
    page.generate("".join(MARKUP))
    page.tab("What if?")
    for part in (".silence", ".maskedit", ".breaks"):
        page.page.locator(part).scroll_into_view_if_needed()
        page.page.wait_for_selector(f"{part}[data-run]")
    page.page.locator(".matter").click()
    page.page.wait_for_selector(".silence[data-matter]")
    page.page.locator(".board").focus()
    for key in ("ArrowDown", "ArrowRight"):
        page.page.keyboard.press(key)
    assert re.search(r"Query 1 .*key 1 ", page.page.locator(".board-said").inner_text())
    page.page.get_by_role("button", name="uniform attention", exact=True).click()
    page.page.wait_for_function("() => viz.interventions().length === 1")
    page.page.locator(".effect").scroll_into_view_if_needed()
    page.page.wait_for_selector(".effect[data-intact]")
    settings = {**EXAMPLE.settings, "max_new_tokens": 4}
    run = server.hostile.generate(
        "".join(MARKUP), **settings, interventions=[Break("uniform-attention")]
    )
    shown = page.page.locator("[data-of=altered]").inner_text()
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", "".join(run.labels[run.n_prompt :]))
    assert page.page.evaluate(stray) == before


def test_all_of_it_fits_a_phone(visit: Open) -> None:
    page = visit(viewport={"width": 390, "height": 844})
    page.tab("What if?")
    for part in PARTS:
        page.page.locator(part).scroll_into_view_if_needed()
        page.page.wait_for_selector(f"{part}[data-run]")
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 390, part

"""What if a mask were another, or an idea were missing: the page against Python."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from serving import SAMPLE
from visit import Visit, complaints
from whatif import EXAMPLE, PARTS, WhatIf

from transformer import Site
from transformer.inference.sample import broken
from transformer.model.changes import Changes
from transformer.model.interventions import BREAKS, Break, EditMask, interventions_of

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
SITE = Site("decoder", 0, "self")


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
    whatif.visit.wait_drawn(".breaks")
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

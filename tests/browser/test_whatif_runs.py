"""Branches, two runs side by side and patches: what the page shows against what Python computes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from serving import MARKUP, Server
from visit import Visit, complaints

from transformer import Model, Run
from transformer.analysis.patching import most_changed, patch_effect
from transformer.interventions.descriptions import Patch
from transformer.ui.examples import EXAMPLES
from transformer.views import attention_difference
from transformer.views.compare.compare import align
from transformer.views.compare.outcomes import generated_pairs

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
SETTINGS: dict[str, Any] = EXAMPLES["decoder"].settings  # those that the page opens with
PARTS = (".branches", ".compare", ".patching")
CELLS = """name => document.querySelector(`[data-picture=${name}]`).calcdata[0][0].z
    .map(row => [...row].map(value => value === undefined ? NaN : value))"""
PLACE = """([name, row, column]) => {
    const box = document.querySelector(`[data-picture=${name}]`);
    const at = viz.cellBox(box, column, column, row, row);
    const place = box.getBoundingClientRect();
    return [place.left + at.left + at.width / 2, place.top + at.top + at.height / 2];
}"""
STRAY = """[...document.querySelectorAll("s, img[src=x], script:not([src])")].length
    + [...document.querySelectorAll("b, tspan")].filter(one => one.textContent === "x").length"""


class WhatIf:
    """A visitor of the tab with one short text, and the run that Python makes of the same."""

    def __init__(self, visit: Visit, model: Model, text: str = "Tom") -> None:
        self.visit, self.page, self.model, self.text = visit, visit.page, model, text
        visit.generate(text)
        visit.tab("What if?")
        visit.wait_drawn(".branches")
        self.run = self.made()
        assert visit.labels() == list(self.run.labels)

    def made(self, **settings: Any) -> Run:
        """By Python, with the page's settings."""
        return self.model.generate(self.text, **SETTINGS, **settings)

    def key(self) -> str:
        """The id of the shown run."""
        return str(self.page.evaluate("viz.run.run"))

    def other_run(self, old: str) -> None:
        """Wait until another run is shown and drawn as a branch."""
        self.page.wait_for_function("old => viz.run.run !== old", arg=old)
        self.page.wait_for_function(
            "document.querySelector('.branches')?.dataset.run === viz.run.run"
        )

    def branch(self, step: int) -> Run:
        """Click the likeliest token that was not taken; the run that Python makes of it."""
        self.visit.tokens.nth(self.run.n_prompt + step - 1).click()
        self.page.wait_for_selector(f".branches[data-step='{step}']")
        old = self.key()
        choice = self.page.locator(".choice:not(:disabled)").first
        token = int(str(choice.get_attribute("data-id")))
        choice.click()
        self.other_run(old)
        start = self.run.n_prompt
        return self.made(forced_tokens=[*self.run.ids[start : start + step], token])

    def see(self, part: str) -> None:
        """Scroll there and wait until it shows the present run."""
        self.visit.wait_drawn(part)
        self.page.wait_for_function(
            "part => document.querySelector(part)?.dataset.run === viz.run.run", arg=part
        )

    def items(self) -> list[str]:
        """The tree's own lines."""
        return self.page.locator(".branch-tree .branch-line .branch-text").all_inner_texts()


@pytest.fixture
def whatif(visit: Open, server: Server) -> WhatIf:
    return WhatIf(visit(), server.model)


def plain(labels: tuple[str, ...]) -> str:
    return "".join(labels).replace("␣", " ")


# --- another token --------------------------------------------------------------------------------


def test_another_token_is_taken_and_the_text_goes_on_as_in_python(whatif: WhatIf) -> None:
    a_choice_takes_another_token(whatif)
    a_click_on_a_bar_in_prediction_branches_too(whatif)


def a_choice_takes_another_token(whatif: WhatIf) -> None:
    step = 2
    run, page = whatif.run, whatif.page
    page.evaluate("() => { window.heard = 0; viz.on('run', () => (window.heard += 1)); }")
    branch = whatif.branch(step)
    assert whatif.visit.labels() == list(branch.labels)
    place = run.n_prompt + step
    page.wait_for_function("place => viz.query?.index === place", arg=place - 1)
    probabilities = {run.candidate_labels[c.id]: c.probability for c in run.steps[step].candidates}
    page.wait_for_selector(f".branches[data-step='{step}']")
    for button in page.locator(".choice").all():
        name = str(button.get_attribute("aria-label"))
        label, p = re.fullmatch(
            r"(.*), probability ([\d.]+)(?:, taken|: branch here)", name
        ).groups()  # type: ignore[union-attr]
        assert float(p) == pytest.approx(probabilities[label], abs=6e-5)
    assert whatif.items() == [plain(run.labels[run.n_prompt :]), plain(branch.labels[place:])]
    assert page.evaluate("window.heard") == 1  # one run is drawn once
    page.wait_for_selector(f".altered[data-same='{place}']")
    changed = page.locator("[data-text=before] .differs")
    assert changed.all_inner_texts() == list(run.labels[place : place + 24])
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function("() => viz.run.forced_tokens.length === 0")
    assert whatif.visit.labels() == list(run.labels)


def test_the_tree_is_walked_by_keyboard_without_running_the_network(whatif: WhatIf) -> None:
    first = whatif.key()
    branch = whatif.branch(3)
    page = whatif.page
    page.locator("#text textarea").fill("Something else that was typed")
    started: list[str] = []
    page.on("request", lambda one: started.append(one.url) if "queue/join" in one.url else None)
    page.locator(".branch[aria-selected=true]").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_function("first => viz.run.run === first", arg=first)
    assert whatif.visit.labels() == list(whatif.run.labels)
    assert page.locator("#text textarea").input_value() == whatif.text
    page.wait_for_function("document.querySelector('.branches')?.dataset.run === viz.run.run")
    assert page.locator(".branch:focus").get_attribute("aria-selected") == "true"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.wait_for_function("first => viz.run.run !== first", arg=first)
    assert whatif.visit.labels() == list(branch.labels)
    assert started == []
    levels = [one.get_attribute("aria-level") for one in page.locator(".branch").all()]
    assert levels == ["1", "2"]


def a_click_on_a_bar_in_prediction_branches_too(whatif: WhatIf) -> None:
    page = whatif.page
    whatif.visit.tab("Prediction")
    whatif.visit.wait_drawn(".prediction")
    taken = page.evaluate("document.querySelector('[data-picture=candidates]').layout.meta.chosen")
    ids = page.evaluate("document.querySelector('[data-picture=candidates]').layout.meta.ids")
    row = next(row for row, token in enumerate(ids) if token != taken)
    step = int(page.locator(".prediction").get_attribute("data-step") or 0)
    start = page.evaluate("viz.run.n_prompt")
    before = page.evaluate("viz.run.ids")[start : start + step]
    old = whatif.key()
    x, y = page.evaluate(
        """row => {
            const box = document.querySelector("[data-picture=candidates]");
            const { xaxis, yaxis } = box._fullLayout;
            const bar = box.calcdata[0].find(one => one.p === row);
            const at = box.getBoundingClientRect();
            return [at.left + xaxis._offset + xaxis.l2p(bar.s / 2),
                    at.top + yaxis._offset + yaxis.l2p(row) - 6];
        }""",
        row,
    )
    page.mouse.move(x, y, steps=3)
    pointed = "document.querySelector('[data-picture=candidates]')._hoverdata?.[0].y"
    page.wait_for_function(f"row => Math.round({pointed}) === row", arg=row)
    page.mouse.click(x, y)
    page.wait_for_function("old => viz.run.run !== old", arg=old)
    made = whatif.made(forced_tokens=[*before, ids[row]])
    assert whatif.visit.labels() == list(made.labels)


def test_a_run_that_the_server_no_longer_keeps_is_shown_as_gone(whatif: WhatIf) -> None:
    page = whatif.page
    page.evaluate(
        """() => viz.pastRuns.unshift({ number: 0, facts: {
            ...viz.run, run: "gone", ids: [...viz.run.ids, 1], labels: [...viz.run.labels, "x"],
        } })"""
    )
    whatif.branch(1)
    gone = page.locator(".branch[data-run=gone]")
    assert gone.get_attribute("aria-disabled") == "true"
    assert "no longer kept" in gone.locator("> .branch-line").inner_text()
    gone.locator("> .branch-line").click()
    assert "no longer keeps this run" in whatif.visit.wait_for_alert()
    whatif.see(".compare")
    assert page.locator(".compare-b option[value=gone]").is_disabled()


# --- two runs side by side ------------------------------------------------------------------------


def test_two_runs_are_compared_as_python_compares_them(whatif: WhatIf) -> None:
    b, page = whatif.run, whatif.page
    old = whatif.key()
    a = whatif.branch(2)
    whatif.see(".compare")
    assert page.locator(".compare-b").input_value() == old  # the one before
    whatif.see(".compare-texts")
    pairs = align(a.labels, b.labels)
    for side in ("a", "b"):
        mine = [pair for pair in pairs if getattr(pair, side) is not None]
        shown = page.locator(f".side-{side} .pair").all()
        states = [str(one.get_attribute("class")).split()[1] for one in shown]
        assert states == [pair.state.replace(" ", "-").lower() for pair in mine]
    whatif.see(".compare-outcomes")
    bars = page.evaluate("[...document.querySelector('[data-picture=outcomes]')._fullData[0].y]")
    chances = [
        b.steps[pair.b - b.n_prompt].chosen.probability
        - a.steps[pair.a - a.n_prompt].chosen.probability
        for pair in generated_pairs(a, b)
    ]
    assert bars == pytest.approx(chances, abs=1e-6)
    whatif.see(".compare-weighed")
    whatif.see(".compare-attention")
    wanted = attention_difference(a, b, "decoder.0.self", 0).data[0].z
    np.testing.assert_allclose(page.evaluate(CELLS, "difference"), wanted, atol=1e-6)
    with whatif.visit.drawn(".compare-attention"):
        page.locator(".pick-site").select_option("decoder.1.self")
    with whatif.visit.drawn(".compare-attention"):
        page.locator(".pick-of-heads").select_option("mean")
    wanted = attention_difference(a, b, "decoder.1.self", "mean").data[0].z
    np.testing.assert_allclose(page.evaluate(CELLS, "difference"), wanted, atol=1e-6)
    page.locator(".compare-attention .as-table summary").click()
    row = page.locator(".compare-attention tbody tr").nth(1)
    row.wait_for()  # the table is filled when it opens
    cells = row.locator("td").all_inner_texts()
    assert [float(text) for text in cells[:2]] == pytest.approx(wanted[1, :2].tolist(), abs=6e-5)
    assert complaints(whatif.visit) == []


# --- patch ----------------------------------------------------------------------------------------


def test_a_patch_map_is_the_networks_and_a_click_applies_it(visit: Open, server: Server) -> None:
    page = visit()
    model = server.translator
    page.choose_model(model.name)
    page.tab("What if?")
    page.wait_drawn(".patching")
    other = "The bird ran to the park."
    page.page.locator(".patch-text").fill(other)
    page.page.locator(".show-map").click()
    page.page.wait_for_selector("[data-picture=patching][data-place]")
    example = EXAMPLES["encoder-decoder"]
    run = model.generate(example.text, **example.settings)
    place = most_changed(model, run, other)
    found = patch_effect(model, run, other, place, stack="encoder")
    np.testing.assert_allclose(page.page.evaluate(CELLS, "patching"), found.change, atol=1e-4)
    says = page.page.locator(".patch-says").inner_text()
    assert f"ln p is {found.before:.2f} here" in says
    label = model.tokenizer.label(found.target)
    assert label in page.page.locator(".patch-title").inner_text()
    box = page.page.locator("[data-picture=patching]")
    box.focus()
    for key in ("Home", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowRight"):
        page.page.keyboard.press(key)
    told = page.page.locator(".patch-said").inner_text()
    assert told.startswith("layer 1, place 1 ")
    assert told.endswith(f"ln p {found.change[1, 1]:+.4f}")
    old = page.page.evaluate("viz.run.run")
    page.page.mouse.click(*page.page.evaluate(PLACE, ["patching", 0, 2]))
    page.page.wait_for_function("old => viz.run.run !== old", arg=old)
    patch = Patch("encoder", 0, [2], other)
    altered = model.generate(example.text, max_new_tokens=40, interventions=[patch])
    assert page.labels() == list(altered.labels)
    bar = page.page.locator(".altered")
    assert str(patch) in bar.inner_text()
    assert complaints(page) == []
    bar.get_by_role("button", name="Reset").click()
    page.page.wait_for_function("viz.run.interventions.length === 0")


# --- whatever tokens look like, and on a phone ----------------------------------------------------


def test_hostile_tokens_stay_text_in_every_part(visit: Open, server: Server) -> None:
    page = visit()
    before = page.page.evaluate(STRAY)
    page.choose_model(server.hostile.name)
    whatif = WhatIf(page, server.hostile, "".join(MARKUP))
    whatif.branch(1)
    labels = set(whatif.run.candidate_labels.values()) | set(whatif.run.labels)
    shown = page.page.locator(".choice bdi").all_inner_texts()
    assert set(shown) <= labels
    assert any(label in MARKUP for label in shown)
    assert plain(whatif.run.labels[whatif.run.n_prompt :]) in whatif.items()
    page.page.locator(".branch-compare").first.click()
    for part in (".compare", ".compare-texts", ".compare-outcomes", ".compare-weighed"):
        whatif.see(part)
    tokens = page.page.locator(".pairs bdi").all_inner_texts()
    assert set(MARKUP) <= set(tokens)
    whatif.see(".compare-attention")
    whatif.see(".patching")
    page.page.locator(".patch-text").fill("".join(MARKUP[::-1]))
    page.page.locator(".show-map").click()
    page.page.wait_for_selector("[data-picture=patching][data-place]")
    ticks = page.page.locator("[data-picture=patching] .xtick text").all_text_contents()
    assert {"<s>", "</script>", "{{value}}"} <= {re.sub("[\u2068\u2069]", "", t) for t in ticks}
    assert page.page.evaluate(STRAY) == before


def test_all_of_it_fits_a_phone(visit: Open, server: Server) -> None:
    page = visit(width=390, height=844)
    whatif = WhatIf(page, server.model)
    whatif.branch(0)
    page.page.locator(".branch-compare").first.click()
    for part in (".compare", ".compare-texts", ".compare-outcomes", ".compare-attention"):
        whatif.see(part)
    whatif.see(".patching")
    page.page.locator(".patch-text").fill("Lily")
    page.page.locator(".show-map").click()
    page.page.wait_for_selector("[data-picture=patching][data-place]")
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390

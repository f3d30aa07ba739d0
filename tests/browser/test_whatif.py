"""The tab What if?: heads, masks and ideas taken away, another token, two runs, patches. What the
page shows is what Python computes of the same request."""

import re
from collections.abc import Iterable
from itertools import count
from urllib.parse import urlencode

import numpy as np
import pytest
from kit.browser import Visit, every
from kit.serving import SAMPLE, Shared
from kit.visitors import WhatIf
from playwright.sync_api import expect

from transformer import Run
from transformer.analysis.ablation import head_importance, losses_without
from transformer.analysis.patching import most_changed, patch_effect
from transformer.interventions.breaks import BREAKS, breaks_of
from transformer.interventions.descriptions import Ablate, Break, EditMask, Patch, interventions_of
from transformer.server.kept.page_models import EXAMPLES
from transformer.views.runs.attention_difference import attention_difference
from transformer.views.runs.compare import generated_pairs

TEXTS = count(1)
ENDS_TEXT = """[.!?…][”"'’»)\\]]*$"""
PARTS_OF_CHARACTERS = re.compile("(?:‹[0-9A-F]{2}(?: [0-9A-F]{2})*›)+")


@pytest.fixture
def whatif(still: Visit, server: Shared) -> WhatIf:
    """With a short run of the first model, nothing altered."""
    return WhatIf(still, server.model)


@pytest.fixture
def writing(still: Visit, server: Shared) -> WhatIf:
    """With a text of the test's own: the tree has no branch of another test's."""
    return WhatIf(still, server.model, f"Tom {next(TEXTS)}", 12)


def in_text(labels: Iterable[str]) -> str:
    """Labels as the page writes them as a text: of bytes, the whole characters alone."""

    def characters(parts: re.Match[str]) -> str:
        return bytes.fromhex(re.sub("[‹› ]", "", parts[0])).decode(errors="ignore")

    whole = PARTS_OF_CHARACTERS.sub(characters, "".join(labels))
    return re.sub("[␣⏎⇥]", " ", whole).strip()


def click_cell(whatif: WhatIf, picture: str, row: int, column: int) -> None:
    whatif.page.locator(f"[data-picture={picture}]").scroll_into_view_if_needed()
    whatif.page.mouse.click(*whatif.visit.cell(row, column, f"[data-picture={picture}]"))


@pytest.mark.without_server
def test_chosen_heads_are_switched_off_and_one_click_brings_them_back(whatif):
    page = whatif.page
    whatif.see(".ablation")
    whatif.head(0, 0).focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):  # the last one has nowhere to go
        page.keyboard.press(key)
    expect(page.locator(".ablated[aria-pressed=true]")).to_have_count(0)  # walking chooses nothing
    for pressed in ("true", "false"):
        page.keyboard.press("Space")
        expect(whatif.head(1, 1)).to_have_attribute("aria-pressed", pressed)
    whatif.head(0, 0).click()
    whatif.head(0, 2).click()
    page.get_by_role("button", name="Switch off the chosen heads").click()
    whatif.wait_for({"type": "ablate", "stack": "decoder", "layer": 0, "heads": [0, 2]})
    intact, altered = whatif.run(), whatif.run(interventions=[Ablate("decoder", 0, [0, 2])])
    whatif.shows(altered)
    same = next(p for p, (a, b) in enumerate(zip(intact.ids, altered.ids, strict=True)) if a != b)
    page.wait_for_selector(f".altered[data-same='{same}']")
    for line, run in (("before", intact), ("after", altered)):
        differing = page.locator(f"[data-text={line}] .differs").text_content()
        begins = max(p for p in range(same + 1) if p == 0 or run.labels[p][0] in "␣⏎⇥")
        assert differing == in_text(run.labels[begins:])
    whatif.reset()
    whatif.shows(intact)


@pytest.mark.without_server
def test_importance_is_pythons_and_its_cells_choose_heads(whatif):
    """About the word after the chosen token."""
    page, run = whatif.page, whatif.run()
    whatif.see(".ablation")
    place = run.n_prompt + 2
    whatif.visit.tokens.nth(place - 1).click()
    word = run.labels[place]
    page.locator("[name=ablated-by][value=mean]").check()
    page.locator(".matter").click()
    page.wait_for_selector(f".ablation[data-matter='{place} mean']")
    expect(page.locator(".matter-title bdi")).to_have_text(word)
    importance = head_importance(whatif.model, run, place, "mean")
    found = importance.change["decoder", "self"]
    np.testing.assert_allclose(whatif.visit.numbers("importance"), found.T, atol=1e-5)
    (stack, layer, _), head = importance.most()
    expect(page.locator(".matter-most")).to_contain_text(
        f"Layer {layer}, head {head} has the largest effect"
    )
    click_cell(whatif, "importance", 2, 1)
    expect(whatif.head(1, 2)).to_have_attribute("aria-pressed", "true")
    page.locator(".ablation-most").click()
    page.wait_for_function("() => viz.interventions().length > 0")
    (ablated,) = interventions_of(page.evaluate("viz.interventions()"))
    assert (ablated.stack, ablated.layer, ablated.by) == (stack, layer, "mean")
    assert head in ablated.heads


@pytest.mark.without_server
def test_an_edited_mask_is_the_one_that_the_next_run_uses(whatif):
    page = whatif.page
    whatif.see(".maskedit")
    page.locator(".board").focus()
    keys = ["Home", "ArrowRight"]  # the label of row 0, then its first cell
    keys += ["ArrowDown", "ArrowDown", "Enter"]  # cell (2, 0): allowed, so forbidden
    keys += ["ArrowRight"] * 4 + ["Space"]  # cell (2, 4): of the future, so allowed
    keys += ["ArrowUp"] * 3 + ["Enter"]  # the label of column 4: forbidden
    for key in keys:
        page.keyboard.press(key)
    expect(page.locator(".board-said")).to_contain_text("Column of key 4")
    expect(page.locator(".board-said")).to_contain_text("forbidden by you")
    edited = EditMask("decoder", forbid=[(2, 0), (None, 4)])
    promised = int(whatif.data(".maskedit", "allowed"))
    page.get_by_role("button", name="Run with this mask").press("Enter")
    page.wait_for_function("() => viz.interventions().length === 1")
    expect(page.get_by_role("button", name="Run with this mask", disabled=True)).to_be_focused()
    assert interventions_of(page.evaluate("viz.interventions()")) == (edited,)
    run = whatif.run(interventions=[edited])
    whatif.shows(run)
    assert promised == int(run.trace["decoder.1.self"].allowed[0].sum())


@pytest.mark.without_server
def test_each_card_has_the_text_without_its_part_and_a_press_takes_it_away(whatif):
    page, config = whatif.page, whatif.model.config
    page.wait_for_selector(f".breaks[data-texts='{len(breaks_of(config)) + 2}']")
    if whatif.data(".breaks", "measured") == "false":  # else a program has asked this server before
        page.get_by_role("button", name="Measure what each costs").press("Enter")
        expect(page.locator(".breaks[data-measured=true] .measure")).to_be_focused()
    page.wait_for_selector(".breaks[data-measured=true]")
    wanted = losses_without(whatif.model)
    cards = {card.get_attribute("data-what"): card for card in every(page.locator(".what-card"))}
    assert [*cards] == ["", "decoder.0.self.0", *breaks_of(config)]
    whole = whatif.model.generate(whatif.text, max_new_tokens=24)
    missing = {what: [Break(what)] for what in breaks_of(config)}
    missing |= {"": [], "decoder.0.self.0": [Ablate("decoder", 0, [0])]}
    for what, card in cards.items():
        run = whatif.model.generate(
            whatif.text, max_new_tokens=24, interventions=missing[str(what)]
        )
        text = in_text(run.labels[run.n_prompt :])
        if not re.search(ENDS_TEXT, text):
            text = re.sub(" [^ ]*$", " …", text)  # no half word at its end
        same = what != "" and run.ids == whole.ids
        shown = "The same text." if same else text[:25]  # a card ends it at a word
        expect(card.locator(".becomes")).to_contain_text(shown)
        if what in breaks_of(config):
            expect(card.locator(".hint")).to_have_text(BREAKS[what])
            cost = float(wanted[what] or 0) - float(wanted[None] or 0)
            said = card.locator(".cost").inner_text().split()[0].replace("−", "-")
            assert float(said) == pytest.approx(cost, abs=6e-4)
    expect(page.locator(".breaks [role=status]")).to_contain_text(f"2 texts. {SAMPLE['about']}")
    last = [*missing][-3]
    cards[last].get_by_role("button").click()
    whatif.wait_for({"type": "break", "what": last})
    whatif.shows(whatif.run(interventions=[Break(last)]))


def branch(whatif: WhatIf, step: int) -> Run:
    """Take the likeliest token that was not taken; the run that Python makes of it."""
    page, run = whatif.page, whatif.run()
    whatif.see(".branches")
    whatif.visit.tokens.nth(run.n_prompt + step - 1).click()
    page.wait_for_selector(f".branches[data-step='{step}']")
    old = whatif.visit.shown_run()
    choice = page.locator(".choice[aria-disabled=false]").first
    token = int(str(choice.get_attribute("data-id")))
    choice.click()
    whatif.wait_for_run_after(old)
    whatif.see(".branches")
    taken = run.ids[run.n_prompt : run.n_prompt + step]
    made = whatif.run(forced_tokens=[*taken, token])
    expect(whatif.visit.tokens).to_have_text(list(made.labels))
    return made


@pytest.mark.without_server
def test_branches_are_walked_without_running_the_network(writing):
    whatif, page, step = writing, writing.page, 2
    run, first = whatif.run(), whatif.visit.shown_run()
    page.evaluate("() => { window.heard = 0; viz.on('run', () => (window.heard += 1)); }")
    made = branch(whatif, step)
    assert page.evaluate("window.heard") == 1  # one run is drawn once
    page.wait_for_selector(f".branches[data-step='{step}']")
    best = run.steps[step].candidates[0]
    name = f"{run.candidate_labels[best.id]}, {best.probability:.4f}"
    beginning = re.compile(f"^{re.escape(name)}")
    expect(page.locator(".choice").first).to_have_attribute("aria-label", beginning)
    texts = run.labels[run.n_prompt :], made.labels[run.n_prompt + step :]
    items = page.locator(".branch-tree .branch-line .branch-text")
    expect(items).to_have_text(["".join(text).replace("␣", " ") for text in texts])

    whatif.visit.text_box().fill("Something else that was typed")
    started: list[str] = []
    page.on("request", lambda one: started.append(one.url) if "resources/runs" in one.url else None)
    page.locator(".branch[aria-selected=true]").focus()
    for key in ("ArrowLeft", "Enter"):
        page.keyboard.press(key)
    page.wait_for_function("first => viz.run.run === first", arg=first)
    whatif.see(".branches")
    whatif.shows(run)
    expect(page.locator("#text textarea")).to_have_value(whatif.text)
    for key in ("ArrowRight", "Space"):
        page.keyboard.press(key)
    whatif.wait_for_run_after(first)
    whatif.shows(made)
    assert started == []
    page.get_by_role("button", name="Reset").press("Enter")
    expect(page.locator(".altered")).to_be_hidden()
    expect(page.locator(":focus")).to_be_visible()
    page.wait_for_function("() => viz.run.forced_tokens.length === 0")
    # a candidate of Prediction branches too
    whatif.visit.tab("Prediction")
    whatif.visit.tokens.nth(run.n_prompt).click()
    page.wait_for_selector(".prediction[data-step='1']:not([aria-busy])")
    other = page.locator(".candidate[aria-disabled=false]").first
    token = int(other.get_attribute("data-id") or "")
    old = whatif.visit.shown_run()
    other.click()
    whatif.wait_for_run_after(old)
    whatif.shows(whatif.run(forced_tokens=[run.ids[run.n_prompt], token]))


@pytest.mark.without_server
def test_two_runs_are_compared_as_python_compares_them(writing):
    whatif, page = writing, writing.page
    b, old = whatif.run(), whatif.visit.shown_run()
    a = branch(whatif, 2)
    whatif.see(".compare")
    expect(page.locator(".compare-b")).to_have_value(old)  # the one before
    whatif.see(".compare-outcomes")
    bars = page.evaluate("[...document.querySelector('[data-picture=outcomes]')._fullData[0].y]")
    chances = [
        b.steps[pair.b - b.n_prompt].chosen.probability
        - a.steps[pair.a - a.n_prompt].chosen.probability
        for pair in generated_pairs(a, b)
    ]
    assert bars == pytest.approx(chances, abs=1e-5)
    whatif.see(".compare-attention")
    for pick, value in ((".pick-site", "decoder.1.self"), (".pick-of-heads", "mean")):
        with whatif.visit.drawn(".compare-attention"):
            page.locator(pick).select_option(value)
    wanted = attention_difference(a, b, "decoder.1.self", "mean").data[0].z
    np.testing.assert_allclose(whatif.visit.numbers("difference"), wanted, atol=1e-5)


@pytest.mark.without_server
def test_another_b_is_asked_for_heads_that_it_has(writing, server):
    """Not for those of the run compared before: a refused request fails the test at its end."""
    whatif, page = writing, writing.page
    written = whatif.visit.shown_run()
    translated = WhatIf(whatif.visit, server.translator, length=4).visit.shown_run()
    whatif.visit.go(urlencode({"model": server.model.name, "text": "Lily", "tab": "what-if"}))
    whatif.see(".compare")
    page.locator(".compare-b").select_option(translated)
    whatif.see(".compare-attention")
    page.locator(".pick-other-site").select_option("encoder.0.self")
    with whatif.visit.drawn(".compare-attention"):
        page.locator(".compare-b").select_option(written)


@pytest.mark.without_server
def test_a_patch_map_is_the_networks_and_a_click_applies_it(still, server):
    page, model, example = still.page, server.translator, EXAMPLES["encoder-decoder"]
    still.go(f"model={model.name}&tab=what-if")
    still.wait_drawn(".patching")
    other = "The bird ran to the park."
    page.locator(".patch-text").fill(other)
    page.locator(".show-map").click()
    page.wait_for_selector("[data-picture=patching][data-place]")
    run = model.generate(example.text, **example.settings)
    found = patch_effect(model, run, other, most_changed(model, run, other), stack="encoder")
    np.testing.assert_allclose(still.numbers("patching"), found.change, atol=1e-4)
    expect(page.locator(".patch-says")).to_contain_text(f"ln p is {found.before:.2f} here")
    expect(page.locator(".patch-title")).to_contain_text(model.tokenizer.label(found.target))
    page.locator("[data-picture=patching]").focus()
    for key in ("Home", "ArrowUp", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator(".patch-said")).to_contain_text("layer 1, place 1 ")
    old = still.shown_run()
    page.mouse.click(*still.cell(0, 2, "[data-picture=patching]"))
    page.wait_for_function("old => viz.run.run !== old", arg=old)
    patch = Patch("encoder", 0, [2], other)
    length = page.evaluate("viz.run.request.max_new_tokens")
    altered = model.generate(example.text, max_new_tokens=length, interventions=[patch])
    expect(still.tokens).to_have_text(list(altered.labels))
    expect(page.locator(".altered")).to_contain_text(str(patch))

"""What if heads were switched off: the page against Python; that part of the tab for everybody."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import expect
from serving import MARKUP, Server
from visit import Visit, complaints
from whatif import ALTERED, EXAMPLE, PARTS, WhatIf

from transformer.analysis.ablation import head_importance, next_token
from transformer.analysis.logit_contribution import LogitContribution, logit_contribution
from transformer.interventions.descriptions import (
    Ablate,
    Break,
)
from transformer.views.contribution.contribution import sentence, table

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]


# --- silence --------------------------------------------------------------------------------------


def test_chosen_heads_fall_silent_and_one_click_brings_them_back(whatif: WhatIf) -> None:
    page = whatif.page
    whatif.see(".ablation")
    assert page.locator(".effect-body").is_hidden()
    whatif.head(0, 0).click()
    whatif.head(0, 2).click()
    assert whatif.head(0, 2).get_attribute("aria-pressed") == "true"
    apply = page.get_by_role("button", name="Switch off the chosen heads")
    apply.click()
    whatif.wait_for([{"type": "ablate", "stack": "decoder", "layer": 0, "heads": [0, 2]}])
    intact, altered = whatif.run(), whatif.run([Ablate("decoder", 0, [0, 2])])
    assert intact.ids != altered.ids
    whatif.shows(altered)

    same = next(p for p, (a, b) in enumerate(zip(intact.ids, altered.ids, strict=True)) if a != b)
    page.wait_for_selector(f".altered[data-same='{same}']")
    for name, run in (("before", intact), ("after", altered)):
        line = page.locator(f"[data-text={name}]")
        assert line.locator(".differs").all_inner_texts() == list(run.labels[same:])
        expect(line).to_be_in_viewport(ratio=1)
    expect(apply).to_be_in_viewport()
    page.locator(".altered .more").click()
    whatif.see(".effect")
    assert whatif.data(".effect", "place") == whatif.data(".effect", "same") == str(same)
    found = next_token(whatif.model, altered, same)
    for name, probabilities in (("intact", found.intact), ("altered", found.intervened)):
        wanted = probabilities[found.ids.index(altered.ids[same])]
        assert float(whatif.data(".effect", name)) == pytest.approx(float(wanted), abs=1e-5)
    for name, run in (("intact", intact), ("altered", altered)):
        tokens = page.locator(f"[data-of={name}] > bdi")
        assert tokens.all_inner_texts() == list(run.labels[run.n_prompt :])
        differ = page.locator(f"[data-of={name}] > bdi.differs")
        assert differ.count() == len(run.ids) - same
    assert complaints(whatif.visit, *PARTS) == []

    whatif.reset()
    whatif.shows(intact)
    whatif.see(".ablation")
    assert page.locator(".ablated[aria-pressed=true]").count() == 0
    what_each_head_matters_is_asked_for_and_a_cell_chooses_its_head(whatif)


def test_a_head_is_silenced_where_it_is_looked_at(visit: Open, server: Server) -> None:
    page = visit()
    page.page.locator(".ablate-head").click()
    with page.drawn(".attention"):
        page.head(1, 1).click()
    plain = {"type": "ablate", "stack": "decoder", "layer": 0, "heads": [0]}
    page.page.wait_for_function(ALTERED, arg=[plain])
    page.page.wait_for_function(
        """() => { const { site, head, run } = document.querySelector(".attention")?.dataset ?? {};
           return site === "decoder.1.self" && head === "1" && run === viz.run.run; }"""
    )
    crossed = page.page.locator(".head-grid .ablated")
    assert crossed.evaluate_all("all => all.map(one => one.title)") == [
        "Layer 0, head 0, switched off"
    ]
    settings = {**EXAMPLE.settings, "interventions": [Ablate("decoder", 0, [0])]}
    run = server.model.generate(EXAMPLE.text, **settings)
    shown = page.page.evaluate(
        "() => document.querySelector('.large').data[0].z.map(r => [...r].map(v => v || 0))"
    )
    weights = run.trace["decoder.1.self"].pattern[0, 1].numpy()
    np.testing.assert_allclose(np.square(shown), weights, atol=1e-4)
    with page.drawn(".attention"):
        page.head(0, 0).click()
    page.page.get_by_role("button", name="Switch this head on again").click()
    page.page.wait_for_function(ALTERED, arg=[])
    assert page.labels() == list(server.model.generate(**page.example_request()).labels)


def what_each_head_matters_is_asked_for_and_a_cell_chooses_its_head(whatif: WhatIf) -> None:
    page, run = whatif.page, whatif.run()
    whatif.see(".ablation")
    assert page.locator(".matter-box").is_hidden()
    place = run.n_prompt + 2
    whatif.visit.tokens.nth(place - 1).click()
    page.locator("[name=ablated-by][value=mean]").check()
    page.locator(".matter").click()
    page.wait_for_selector(f".ablation[data-matter='{place} mean']")
    found = head_importance(whatif.model, run, place, "mean").change["decoder", "self"]
    shown = page.evaluate(
        """() => document.querySelector("[data-picture=importance]").calcdata[0][0].z
           .map(row => [...row])"""
    )
    np.testing.assert_allclose(shown, found, atol=1e-5)
    page.locator(".ablation .as-table summary").click()
    row = page.locator(".ablation .as-table tbody tr").nth(1)
    row.wait_for()  # the table is filled when it opens
    told = [float(text) for text in row.locator("td").all_inner_texts()]
    assert told == pytest.approx(found[1].tolist(), abs=6e-5)
    strips = page.locator(".ablated i").evaluate_all("all => all.map(i => i.style.background)")
    assert len(set(strips)) > 1
    page.evaluate(
        """() => { const box = document.querySelector("[data-picture=importance]");
           box.emit("plotly_click", { points: [{ x: 2, y: 1 }] }); }"""
    )
    assert whatif.head(1, 2).get_attribute("aria-pressed") == "true"


def test_the_head_that_matters_most_is_named_and_silenced_and_each_parts_share_is_shown(
    whatif: WhatIf,
) -> None:
    heads_are_chosen_by_keyboard(whatif)
    page, run = whatif.page, whatif.run()
    place = len(run.ids) - (run.stopped == "end")  # what would follow
    whatif.see(".ablation")
    page.locator(".matter").click()
    said = page.locator(".matter-most")
    said.wait_for()
    importance = head_importance(whatif.model, run, place)
    (stack, layer, kind), head = importance.most()
    change = float(importance.change[stack, kind][layer, head])
    before, after = (math.exp(importance.log_probability + more) for more in (0, change))
    assert said.inner_text().startswith(f"Layer {layer}, head {head} matters most: without it, “")
    told = [float(text) for text in re.findall(r"([\d.e-]+) %", said.inner_text())]
    assert told == pytest.approx([100 * before, 100 * after], rel=6e-3)

    whatif.see(".contribution")
    page.locator(".contributes").click()
    page.wait_for_selector(f".contribution[data-place='{place}']:not([aria-busy])")
    found = logit_contribution(whatif.model, run, place)
    shown = page.evaluate(
        """() => document.querySelector("[data-picture=contribution]").calcdata[0][0].z
           .map(row => [...row].map(value => value ?? NaN))"""
    )
    np.testing.assert_allclose(shown, table(found)[2], atol=1e-4)
    assert np.nansum(shown) == pytest.approx(found.logit, abs=1e-3)
    assert page.locator(".contribution-says").inner_text() == sentence(found)
    _choose_a_part(whatif, 1, 1, found)
    assert complaints(whatif.visit, ".contribution") == []

    whatif.see(".ablation")
    assert complaints(whatif.visit, ".ablation") == []
    page.locator(".ablation-most").click()
    whatif.wait_for([{"type": "ablate", "stack": stack, "layer": layer, "heads": [head]}])


def _choose_a_part(whatif: WhatIf, layer: int, head: int, found: LogitContribution) -> None:
    """A click on a head's cell of the map says what it adds, and chooses the head."""
    page, (rows, _, cells) = whatif.page, table(found)
    row = rows.index(f"layer {layer}")
    page.locator("[data-picture=contribution]").scroll_into_view_if_needed()
    page.mouse.click(*whatif.visit.place_in("contribution", head, row))
    value = float(cells[row, head])
    said = page.locator(".contribution-part")
    expect(said).to_contain_text("adds" if value >= 0 else "takes")
    told = re.search(r"\d+\.\d{4}", said.inner_text())
    assert told is not None
    assert float(told[0]) == pytest.approx(abs(value), abs=2e-4)
    chosen = {"stack": "decoder", "kind": "self", "layer": layer, "head": head}
    assert page.evaluate("viz.head") == chosen
    assert page.get_by_role("button", name=f"Show layer {layer}, head {head}").last.is_visible()


def heads_are_chosen_by_keyboard(whatif: WhatIf) -> None:
    page = whatif.page
    whatif.see(".ablation")
    whatif.head(0, 0).focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown"):  # the last one has nowhere to go
        page.keyboard.press(key)
    assert page.locator(".ablated[aria-pressed=true]").count() == 0  # walking chooses nothing
    page.keyboard.press("Space")
    assert whatif.head(1, 1).get_attribute("aria-pressed") == "true"
    assert page.locator(".ablated[tabindex='0']").count() == 1
    assert "1 head chosen, not yet applied" in page.locator(".ablation-says").inner_text()
    page.keyboard.press("Space")
    assert whatif.head(1, 1).get_attribute("aria-pressed") == "false"


# --- for everybody --------------------------------------------------------------------------------


def test_hostile_tokens_stay_text(visit: Open, server: Server) -> None:
    page = visit()
    stray = "() => document.querySelectorAll('s, img[src=x], script:not([src])').length"
    before = page.page.evaluate(stray)
    page.choose_model(server.hostile.name)
    page.set_length(4)
    page.generate("".join(MARKUP))
    page.tab("What if?")
    page.wait_drawn(".ablation")
    page.page.locator(".matter").click()
    page.page.wait_for_selector(".ablation[data-matter]")
    page.wait_drawn(".contribution")
    page.page.locator(".contributes").click()
    page.page.wait_for_selector(".contribution[data-total]")
    page.wait_drawn(".maskedit")
    page.page.locator(".board").focus()
    for key in ("ArrowDown", "ArrowRight"):
        page.page.keyboard.press(key)
    assert re.search(r"Query 1 .*key 1 ", page.page.locator(".board-said").inner_text())
    page.wait_drawn(".breaks")
    page.page.get_by_role("button", name="uniform attention", exact=True).click()
    page.page.wait_for_function("() => viz.interventions().length === 1")
    page.wait_drawn(".effect")
    page.page.wait_for_selector(".effect[data-intact]")
    settings = {**EXAMPLE.settings, "max_new_tokens": 4}
    run = server.hostile.generate(
        "".join(MARKUP), **settings, interventions=[Break("uniform-attention")]
    )
    shown = page.page.locator("[data-of=altered]").inner_text()
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", "".join(run.labels[run.n_prompt :]))
    assert page.page.evaluate(stray) == before

"""What if a mask were another, or an idea were missing: the page against Python."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from serving import SAMPLE
from visit import Visit, complaints
from whatif import EXAMPLE, PARTS, WhatIf

from transformer.analysis.held_out import broken
from transformer.interventions.breaks import breaks_of
from transformer.interventions.descriptions import Break, EditMask, interventions_of

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]


# --- masks ----------------------------------------------------------------------------------------


def an_edited_mask_is_the_one_that_the_next_run_uses(whatif: WhatIf) -> None:
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


# --- what breaks ----------------------------------------------------------------------------------


def every_switch_has_its_loss_its_reason_and_the_visitors_text(whatif: WhatIf) -> None:
    page = whatif.page
    whatif.see(".breaks")
    whatif.visit.wait_drawn(".breaks")
    if whatif.data(".breaks", "measured") != "true":  # the server keeps it for all visitors
        page.get_by_role("button", name="Measure what each costs").click()
    page.wait_for_selector(".breaks[data-measured=true]")
    page.get_by_role("button", name="Run my text through each").click()
    page.wait_for_selector(f".breaks[data-texts='{len(breaks_of(whatif.model.config)) + 1}']")
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
    page.get_by_role("button", name="no positions", exact=True).click()
    whatif.wait_for([{"type": "break", "what": "no-positions"}])
    whatif.see(".breaks")
    assert whatif.data(".breaks", "texts") == str(len(wanted))  # they are still the prompt's
    assert page.locator("tr[data-what=no-positions] .goes-on").inner_text() != "–"
    assert str(SAMPLE["about"]) in page.locator(".breaks-about").inner_text()
    assert "2 texts" in page.locator(".breaks-about").inner_text()
    assert complaints(whatif.visit, *PARTS) == []


def test_whatever_is_altered_can_be_taken_back(whatif: WhatIf) -> None:
    switches_are_put_together_and_taken_back(whatif)
    whatif.reset()
    every_switch_has_its_loss_its_reason_and_the_visitors_text(whatif)
    whatif.reset()
    an_edited_mask_is_the_one_that_the_next_run_uses(whatif)


def switches_are_put_together_and_taken_back(whatif: WhatIf) -> None:
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

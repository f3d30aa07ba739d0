"""For everybody: axe-core's rules on every tab with its sections open, Gradio's own controls too,
without exceptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest
from serving import Server
from visit import COLOURS, PARTS, Visit, complaints

ASKS = ".matter, .contributes"  # what is there only when it is asked for
MORE_OF_A_TRANSLATOR = ("Journey", "Attention", "Prediction")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_whole_page(
    visit: Callable[..., Visit], server: Server, scheme: str
) -> None:
    """All of the page on the first tab, then the tabs, beside which nothing changes; of a
    translator those that it has more on. Every rule in the light; in the dark, where nothing but
    colours differs, those of colours."""
    page = visit(color_scheme=scheme)
    page.page.get_by_role("button", name="Settings").click()
    if scheme == "dark":
        look_at(page, PARTS, rules=COLOURS)
        return
    look_at(page, PARTS, sections=True)
    page.tab("Attention")
    page.choose_model(server.translator.name)
    look_at(page, MORE_OF_A_TRANSLATOR)


def look_at(
    page: Visit, tabs: Iterable[str], *, rules: Sequence[str] = (), sections: bool = False
) -> None:
    """sections: also at each section, of which one at a time is open."""
    for tab in tabs:
        page.tab(tab)
        first, *others = PARTS[tab]
        page.wait_drawn(first)
        if tab == "Journey":
            page.page.locator(".journey .head").last.hover()
            page.page.wait_for_selector(".next-words[data-without]")
        whole = "body" if tab == "Journey" else "#right"
        assert complaints(page, whole, rules=rules) == [], tab
        for part in others if sections else ():
            page.wait_drawn(part)
            for button in page.page.locator(f"{part} :is({ASKS})").all():
                page.press(button, draws=part)
            assert complaints(page, part) == [], part


def test_axe_sees_a_text_that_is_too_pale(still: Visit) -> None:
    """One of many that stand alike is looked at, and one alone that does not."""
    still.page.evaluate("""() => document.body.insertAdjacentHTML("beforeend",
        '<p id=pale style="background: white">' + "<b>dark</b>".repeat(9)
        + '<b style="color: #bbb">pale</b>'.repeat(3) + "</p>")""")
    (told,) = complaints(still, "#pale", rules=COLOURS)
    assert told.startswith('color-contrast: <b style="color: #bbb"')

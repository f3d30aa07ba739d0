"""The page on five screens, and the copy of the journey above each tab."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from serving import Server
from visit import Visit

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]

MARKED = {  # what each tab is about
    "Attention": "heads",
    "Masks": "mask",
    "Positions": "embedding",
    "Prediction": "next",
    "What if?": "altered",
    "Learn": "learned",
    "Model": "network",
}


@pytest.mark.parametrize("model", ["stories", "tiny-translator"])
def test_the_strip_above_a_tab_marks_where_it_stands_and_leads_on(
    visit: Open, server: Server, model: str
) -> None:
    page = visit(f"{server.url}?model={model}&tab=model", tab="Journey").page
    shown = page.locator(".strip:visible")
    expect(shown.locator("button")).to_have_count(8)
    for tab, part in MARKED.items():
        button = shown.locator(f"[data-part={part}]")
        button.focus()
        button.press("Enter")
        expect(page.get_by_role("tab", name=tab, exact=True)).to_have_attribute(
            "aria-selected", "true"
        )
        expect(shown.locator("[aria-current]")).to_have_attribute("data-part", part)
        height = shown.bounding_box()["height"]  # type: ignore[index]
        assert height <= 56, tab
    likeliest = page.evaluate("document.querySelector('.next-word bdi').textContent")
    expect(shown.locator("[data-part=next] bdi")).to_have_text(likeliest)
    shown.locator("[data-part=text]").click()
    expect(page.locator(".journey")).to_be_visible()
    expect(shown).to_have_count(0)

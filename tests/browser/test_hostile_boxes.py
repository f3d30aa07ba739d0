"""What a visitor types into the boxes of the tabs: markup, templates and scripts stay text there,
in what the network makes of it, and in the link to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from visit import Visit

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
ATTACKS = (
    "<img src=x onerror=alert(1)>",
    "${alert(2)}{{value}}<b>x</b>",
    "</script><script>alert(3)",
)
# Elements that only a text taken for markup would make, as the page has them now.
MADE = """() => [...document.querySelectorAll("img, script, b, iframe, object")]
    .map(one => one.outerHTML)
    .filter(html => /alert|onerror|<b>x/.test(html) && html.length < 200)"""


def patched(page: Visit, attack: str) -> dict[str, Any]:
    """Ask for the map of a patch from this text, and run with its largest cell's; that run."""
    page.page.locator(".patch-text").fill(attack)
    with page.drawn(".patching"):
        page.page.locator(".show-map").click()
    assert page.page.evaluate(MADE) == []
    old = page.page.evaluate("viz.run.run")
    page.page.locator("[data-picture=patching]").focus()
    page.page.keyboard.press("ArrowRight")
    page.page.wait_for_function("document.querySelector('.patch-said')?.textContent")
    page.page.keyboard.press("Enter")
    page.page.wait_for_function("old => viz.run.run !== old", arg=old)
    page.page.locator(".altered").wait_for()
    facts: dict[str, Any] = page.page.evaluate("viz.run")
    return facts


def test_another_text_for_a_patch_is_never_more_than_text(visit: Open) -> None:
    page = visit()
    page.set_length(3)
    page.generate("The fox")
    page.tab("What if?")
    page.wait_drawn(".patching")
    for attack in ATTACKS:
        (patch,) = patched(page, attack)["interventions"]
        assert patch["is"]["text"] == attack
        assert patch["says"] in page.page.locator(".altered").inner_text()
        assert page.page.locator(".patch-text").input_value() == attack
        assert page.page.evaluate(MADE) == []
    page.page.wait_for_function("() => location.hash.includes('alter=')")
    page.page.wait_for_function("() => decodeURIComponent(location.hash).includes('script')")
    (altered,) = json.loads(parse_qs(urlparse(page.page.url).fragment)["alter"][0])
    assert altered["text"] == ATTACKS[-1]
    other = visit(page.page.url)
    other.wait_for_link()
    assert other.labels() == page.labels()
    assert other.page.evaluate("viz.run.interventions") == page.page.evaluate(
        "viz.run.interventions"
    )
    assert other.page.evaluate(MADE) == []


def test_texts_that_name_a_run_and_what_is_refused_stay_text(visit: Open) -> None:
    page = visit()
    page.set_length(2)
    for attack in ATTACKS:
        page.generate(attack)
    page.tab("What if?")
    page.wait_drawn(".compare")
    options = page.page.locator(".compare-b option").all_inner_texts()
    named = [*options, page.page.locator(".compare-a").inner_text()]
    for attack in ATTACKS:
        assert [name for name in named if f"“{attack}”" in name], attack
    page.wait_drawn(".branches")
    page.page.wait_for_selector(".branch-tree .branch")
    assert page.page.evaluate(MADE) == []
    what_is_refused_is_shown_as_text_too(page)


def what_is_refused_is_shown_as_text_too(page: Visit) -> None:
    page.tab("Positions")
    page.wait_drawn(".position-curves")
    for attack in ATTACKS:
        page.page.locator(".dimensions").fill(attack)
        page.page.locator(".dimensions").press("Enter")
        page.wait_for_alert()
        assert page.page.evaluate(MADE) == []

"""Hostile and impossible input: a sentence or the text itself, nothing lost, nothing executed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from serving import Server
from visit import Visit

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]


def test_a_mistake_gives_a_sentence_keeps_everything_and_the_next_request_is_served(
    visit: Open,
) -> None:
    page = visit()
    before = page.labels()
    for text, sentence in [
        ("", "the text is empty"),
        ("   ", "the text is empty"),
        ("x" * 100_000, "at most 2,000 characters; got 100,000"),
    ]:
        with page.drawn("#status [data-rev]"):
            page.enter(text)
        assert sentence in page.wait_for_alert()
        assert page.labels() == before
        assert page.page.locator("#text textarea").input_value() == text
    page.set_length(100_000)
    with page.drawn("#status [data-rev]"):
        page.enter("The dog")
    assert "New tokens must be a whole number from 1 to 200" in page.wait_for_alert()
    page.set_length(5)
    page.generate("The dog")
    assert page.page.locator("#status .problem").is_hidden()


def test_hostile_text_is_shown_as_text_and_never_runs(visit: Open, server: Server) -> None:
    page = visit()
    page.set_length(3)
    for text in [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "{{value}} {{#each this}}",
        "${alert(1)} `${alert(2)}`",
        "🦊💃🌙",
        "\x01\x02\x7f a",
    ]:
        page.generate(text)
        prompt = server.model.tokenizer.labels(server.model.tokenizer.encode(text))
        assert page.labels()[1 : len(prompt) + 1] == prompt
        page.point_at(3, 2)
    page.tab("Prediction")
    page.wait_drawn(".prediction")
    assert page.page.locator("#tokens script, #tokens img, .attention img").count() == 0


def test_hostile_lines_are_shown_as_text_in_the_masks(visit: Open) -> None:
    page = visit()
    page.tab("Masks")
    page.wait_drawn(".masks")
    lines = ["<b onclick=alert(1)>x</b><script>alert(1)</script>", "{{value}} ${alert(1)}"]
    page.page.locator("#lines textarea").fill("\n".join(lines))
    with page.drawn(".masks"):
        page.page.locator("#show-masks").click()
    assert page.page.locator(".sentence bdi").all_inner_texts() == lines
    page.page.locator("#lines textarea").fill("\n".join(["a"] * 9))
    page.page.locator("#show-masks").click()
    assert "from 1 to 8 texts; got 9" in page.wait_for_alert()
    assert page.page.locator(".sentence bdi").all_inner_texts() == lines


def test_one_visitor_cannot_see_anothers_run_without_its_id(visit: Open) -> None:
    first, second = visit(), visit()
    first.set_length(4)
    first.generate("The dog")
    mine = first.page.evaluate("viz.run.run")
    theirs = second.page.evaluate("viz.run.run")
    assert mine != theirs
    assert len(mine) >= 22
    assert mine not in second.page.content()

"""Visitors of the bundled models and of the tab What if?, and the runs that Python makes."""

from functools import cache
from typing import Any
from urllib.parse import urlencode

from kit.browser import Visit
from playwright.sync_api import Locator, Page, expect

import transformer
from transformer import Model, Run
from transformer.server.kept.page_models import EXAMPLES, example_of

MODELS = ("stories", "translate-en-fr", "fill-in")
MOST = 3  # actions a question of a class takes


@cache
def model(name: str) -> Model:
    return transformer.load(name)


@cache
def opening(name: str) -> Run:
    """The model's own example, as the page shows it first."""
    example = example_of(model(name))
    if example.only_read:
        return model(name).trace(example.text)
    return model(name).generate(example.text, **example.settings)


@cache
def continued() -> Run:
    """What Generate makes of the opening of stories."""
    example = example_of(model("stories"))
    return model("stories").generate(example.text, **example.settings)


class Counted:
    """A visitor whose actions are counted: each click, each key."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.page: Page = visit.page
        self.actions = 0

    def click(self, what: Locator) -> None:
        self.actions += 1
        what.click()

    def press(self, what: Locator, key: str) -> None:
        self.actions += 1
        what.press(key)

    def open(self, section: str, drawn: str) -> None:
        """A section of the open tab."""
        self.click(self.page.locator(f"[data-section={section}] summary").first)
        self.visit.wait_drawn(drawn)

    def tab(self, name: str, drawn: str) -> None:
        self.click(self.page.get_by_role("tab", name=name, exact=True))
        self.visit.wait_drawn(drawn)

    def generate(self) -> None:
        """Press it, and wait for the whole text."""
        self.click(self.page.locator("#generate"))
        self.page.wait_for_function("() => viz.run.probabilities.length")

    def sentence(self) -> str:
        """What is said of the chosen token."""
        return self.page.locator(".token-says").inner_text()


EXAMPLE = EXAMPLES["decoder"]
ALTERED = "wanted => JSON.stringify(viz.interventions()) === JSON.stringify(wanted)"


class WhatIf:
    """A visitor in the tab, and the runs that Python makes of the same requests."""

    def __init__(
        self, visit: Visit, model: Model, text: str = EXAMPLE.text, length: int = 8
    ) -> None:
        self.visit, self.page, self.model = visit, visit.page, model
        self.text, self.length = text, length
        shown = {"model": model.name, "text": text, "max_new_tokens": str(length), "tab": "what-if"}
        visit.go(urlencode(shown))

    def see(self, part: str) -> None:
        """Scroll there and wait until it shows the present run."""
        self.visit.wait_drawn(part)
        self.page.wait_for_function(
            """part => { const box = document.querySelector(part);
                return box?.dataset.run === viz.run.run && !box.ariaBusy; }""",
            arg=part,
        )

    def run(self, **given: Any) -> Run:
        """What Python generates with the page's settings."""
        settings = {**EXAMPLE.settings, "max_new_tokens": self.length}
        return self.model.generate(self.text, **settings, **given)

    def wait_for(self, *plain: dict[str, Any]) -> None:
        """Until the shown run has these interventions."""
        self.page.wait_for_function(ALTERED, arg=plain)

    def wait_for_run_after(self, old: str) -> None:
        self.page.wait_for_function("old => viz.run.run !== old", arg=old)

    def reset(self) -> None:
        """Take back whatever is altered."""
        self.page.get_by_role("button", name="Reset").click()
        self.wait_for()

    def shows(self, run: Run) -> None:
        """The text at the left is this run's, or comes to be."""
        expect(self.visit.tokens).to_have_text(list(run.labels))

    def head(self, layer: int, head: int) -> Any:
        name = f"Switch off layer {layer}, head {head}"
        return self.page.get_by_role("button", name=name, exact=True)

    def data(self, part: str, name: str) -> str:
        return str(self.page.locator(part).get_attribute(f"data-{name}"))

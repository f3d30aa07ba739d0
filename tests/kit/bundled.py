"""The page with the bundled models, a visitor's actions counted, and the same runs made here."""

from __future__ import annotations

from functools import cache

from kit.browser import Visit
from playwright.sync_api import Locator, Page

import transformer
from transformer import Model, Run
from transformer.ui.examples import example_of

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

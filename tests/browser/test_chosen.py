"""A chosen token is the last one read; what is asked about it everywhere is the word after it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from serving import Server
from visit import Visit
from whatif import WhatIf

ADDRESS = """fields => {
    location.hash = new URLSearchParams({ ...viz.run.link, ...fields }); }"""
ASKING = (  # a part, its button, and what its answer is about
    (".contribution", ".contributes", ".contribution-title bdi"),
    (".ablation", ".matter", ".matter-title bdi"),
)


@pytest.fixture
def whatif(still: Visit, server: Server) -> WhatIf:
    return WhatIf(still, server.model)


def test_every_view_names_the_word_that_follows_the_chosen_token(whatif: WhatIf) -> None:
    visit, page = whatif.visit, whatif.page
    place = page.evaluate("viz.run.n_prompt") + 2
    read, word = visit.labels()[place : place + 2]
    visit.tokens.nth(place).click()
    said = f"Last token read: {read} ({place}). Asked about: {word}, token {place + 1}"
    expect(page.locator(".token-says strong").nth(1)).to_have_text(word)
    expect(page.locator(".next-word").filter(has_text="✓").locator("bdi")).to_have_text(word)
    is_asked_about(whatif, said, word, f"“{word}”, token {place + 1}")
    for part, title in (
        (".patching", ".show-map bdi"),
        (".branches", ".branch-title bdi"),
        (".compare", ".weighed-title bdi"),
    ):
        whatif.see(part)
        expect(page.locator(title).first).to_have_text(word)
    visit.tab("Prediction")
    visit.wait_drawn(".prediction")
    expect(page.locator(".step-title bdi")).to_have_text(word)
    expect(page.locator(".prediction .asked")).to_contain_text(said)


def is_asked_about(whatif: WhatIf, said: str, word: str, question: str) -> None:
    page = whatif.page
    for part, button, title in ASKING:
        whatif.see(part)
        expect(page.locator(f"{part} .asked")).to_contain_text(said)
        expect(page.locator(button)).to_contain_text(question)
        whatif.visit.press(page.locator(button), draws=part)
        expect(page.locator(title)).to_have_text(word)


def test_an_old_links_token_shows_the_prediction_that_it_showed(whatif: WhatIf) -> None:
    visit, page = whatif.visit, whatif.page
    place = page.evaluate("viz.run.n_prompt") + 2
    word = visit.labels()[place]
    page.evaluate(ADDRESS, {"tab": "prediction", "token": str(place)})
    page.wait_for_function("place => viz.query?.index === place", arg=place - 1)
    visit.wait_drawn(".prediction")
    expect(page.locator(".step-title bdi")).to_have_text(word)
    visit.wait_for_address(f"read={place - 1}")
    page.evaluate(ADDRESS, {"tab": "attention", "token": str(place)})  # there it was a row
    page.wait_for_function("place => viz.query?.index === place", arg=place)

"""The page in real Chromium: one browser, a fresh context a test, nothing leaves the machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import serving
from playwright.sync_api import Browser, BrowserContext, Page
from visit import WAIT_MS, Visit

ELSEWHERE = re.compile(r"^(?!http://127\.0\.0\.1[:/]|data:|blob:)")

Open = Callable[..., Visit]


@pytest.fixture(scope="session")
def server() -> serving.Server:
    return serving.running()


@pytest.fixture
def visit(browser: Browser, server: serving.Server) -> Iterator[Open]:
    """Opens the page; afterwards there must be no error and no request to elsewhere."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_page(address: str = server.url, **settings: Any) -> Visit:
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **settings})
        contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        context.route(ELSEWHERE, lambda route: _refuse(route, complaints))
        page = context.new_page()
        _listen(page, complaints)
        page.goto(address)
        return Visit(page)

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _refuse(route: Any, complaints: list[str]) -> None:
    complaints.append(f"request to {route.request.url}")
    route.abort()


def _listen(page: Page, complaints: list[str]) -> None:
    page.on(
        "console", lambda m: complaints.append(f"console: {m.text}") if m.type == "error" else None
    )
    page.on("pageerror", lambda error: complaints.append(f"page: {error}"))
    page.on("dialog", lambda dialog: _dismiss(dialog, complaints))


def _dismiss(dialog: Any, complaints: list[str]) -> None:
    complaints.append(f"dialog: {dialog.message}")
    dialog.dismiss()

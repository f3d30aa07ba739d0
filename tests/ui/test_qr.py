"""The address that a code leads to is one that others can open; a code is one that can be read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import unquote

import pytest
import segno

from transformer.ui.qr import (
    MOST_CHARACTERS,
    MOST_VERSION,
    code_of,
    code_question,
    is_here,
    own_address,
    picture,
    reachable,
)

HERE = (
    "http://127.0.0.1:7860/",
    "http://localhost:7860/",
    "http://[::1]:7860/",
    "http://0.0.0.0:1/",
)


@pytest.mark.parametrize(
    "page", ["https://me-page.hf.space/", "http://class.example:8000/a/b/", "http://10.0.0.7:7860/"]
)
def test_a_public_address_stays_what_it_is(page: str) -> None:
    assert reachable(page, "127.0.0.1", 7860) == page  # a proxy may stand before the page


@pytest.mark.parametrize("page", HERE)
def test_a_page_of_this_machine_alone_says_how_others_could_open_it(page: str) -> None:
    for host in ("127.0.0.1", "localhost", "::1", None):
        with pytest.raises(ValueError, match=r"python app\.py --host 0\.0\.0\.0"):
            reachable(page, host, 7860)


@pytest.mark.parametrize("page", HERE)
def test_a_page_that_others_can_open_has_the_machines_own_address(page: str) -> None:
    assert reachable(page, "0.0.0.0", 7861, lambda: "10.1.2.3") == "http://10.1.2.3:7861/"
    assert reachable(page, "::", 7861, lambda: "fd00::7") == "http://[fd00::7]:7861/"
    assert reachable(page, "10.1.2.4", 7861, lambda: None) == "http://10.1.2.4:7861/"
    with pytest.raises(ValueError, match="on no network"):
        reachable(page, "0.0.0.0", 7861, lambda: None)


def test_the_machines_own_address_is_none_of_itself_alone() -> None:
    found = own_address()
    assert found is None or not is_here(found)


def test_what_is_no_address_of_the_web_has_no_code() -> None:
    for page in ("", "javascript:alert(1)", "file:///etc", "http:///x", "http://ü.example/"):
        with pytest.raises(ValueError, match="address of the web"):
            reachable(page, "0.0.0.0", 1)
    with pytest.raises(ValueError, match="query must be a string; got None"):
        code_of(page="http://a.example/", query=None, host=None, port=None)


def test_a_code_is_never_finer_than_the_last_row_can_read() -> None:
    longest = "http://a.example/#" + "a" * (MOST_CHARACTERS - 18)
    code = segno.make(longest, error="l", micro=False)
    assert code.version == MOST_VERSION
    width = code.symbol_size(border=4)[0]
    assert picture(longest).startswith("data:image/svg+xml")
    assert f"viewBox='0 0 {width} {width}'" in unquote(picture(longest))
    assert 0.92 * 720 / width > 6  # lines of a projector, see share.css
    for more in (1, 5000):
        with pytest.raises(ValueError, match=rf"{MOST_CHARACTERS + more:,} characters; .* 792\."):
            picture(longest + "a" * more)


def test_the_page_asks_for_a_code_and_hears_why_there_is_none() -> None:
    launched = SimpleNamespace(server_name="127.0.0.1", server_port=7860)
    ask = code_question(cast(Any, launched)).work
    made = ask({"page": "https://a.example/", "query": "tab=masks"})
    assert made["address"] == "https://a.example/#tab=masks"
    assert ask({"page": "https://a.example/", "query": ""})["address"] == "https://a.example/"
    for wrong, told in (
        ({"page": HERE[0], "query": ""}, "this machine alone"),
        ({"query": ""}, "page"),
    ):
        with pytest.raises(ValueError, match=told):
            ask(wrong)

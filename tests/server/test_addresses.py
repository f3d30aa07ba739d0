"""Codes that lead to a link."""

from urllib.parse import unquote

import pytest
import segno

from transformer.server.http.addresses import MOST_CHARACTERS, picture, reachable

HERE = tuple(f"http://{host}:7860/" for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0"))


def test_a_code_leads_to_an_address_that_others_can_open():
    for page in ("https://me-page.hf.space/", "http://class.example:8000/a/b/"):
        assert reachable(page, "127.0.0.1", 7861, lambda: None) == page  # behind a proxy
    for page in HERE:
        assert reachable(page, "0.0.0.0", 7861, lambda: "10.1.2.3") == "http://10.1.2.3:7861/"
        assert reachable(page, "::", 7861, lambda: "fd00::7") == "http://[fd00::7]:7861/"
        assert reachable(page, "10.1.2.4", 7861, lambda: None) == "http://10.1.2.4:7861/"
        below = reachable(page, "0.0.0.0", 7861, lambda: "10.1.2.3", root="/viz")
        assert below == "http://10.1.2.3:7861/viz/"
        public = "https://viz.example/a"
        assert reachable(page, "127.0.0.1", 7861, lambda: None, root=public) == f"{public}/"


def test_there_is_no_code_for_an_address_only_this_machine_can_open():
    own = r"python app\.py --host 0\.0\.0\.0"
    wrong = ("", "javascript:alert(1)", "file:///etc", "http:///x", "http://ü.example/")
    for page, host, sentence in (
        *((page, host, own) for page in HERE for host in ("127.0.0.1", "localhost", "::1", None)),
        *((page, "0.0.0.0", "on no network") for page in HERE),
        *((page, "0.0.0.0", "http.s. URL") for page in wrong),
    ):
        with pytest.raises(ValueError, match=sentence):
            reachable(page, host, 7861, lambda: None)


def test_a_code_is_never_finer_than_the_last_row_can_read():
    longest = "http://a.example/#" + "a" * (MOST_CHARACTERS - 18)
    code = segno.make(longest, error="l", micro=False)
    assert code.version == 19
    width = code.symbol_size(border=4)[0]
    assert picture(longest).startswith("data:image/svg+xml")
    assert f"viewBox='0 0 {width} {width}'" in unquote(picture(longest))
    assert 0.92 * 720 / width > 6  # lines of a projector, see header.css
    for more in (1, 5000):
        with pytest.raises(ValueError, match=rf"{MOST_CHARACTERS + more:,} characters; .* 792\."):
            picture(longest + "a" * more)

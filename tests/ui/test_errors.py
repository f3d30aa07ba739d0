"""Errors as a visitor and a program get them."""

import pytest

from transformer.checks import InvalidRequest, check_number
from transformer.messages import speaking
from transformer.ui.errors import MAX_SENTENCE, public_error
from transformer.ui.language import language_of
from transformer.ui.page_request import WORDS

LONG = InvalidRequest(
    "too_long", "the text must have at most {most} characters; got {got}", most=2000, got=3.5
)


def test_an_error_is_translated_with_the_errors_and_numbers_in_it() -> None:
    outer = InvalidRequest(
        "too_long", "text {number} of {n_texts}, counted from 0: {error}",
        number=1, n_texts=8, error=LONG,
    )  # fmt: skip
    english = "text 1 of 8, counted from 0: the text must have at most 2,000 characters; got 3.5"
    assert public_error(outer) == {"detail": english, "code": "too_long"}
    with speaking("de"):
        assert "höchstens 2.000 Zeichen" in public_error(outer)["detail"]
        assert "3,5" in public_error(outer)["detail"]
        assert str(outer) == english


def test_the_page_calls_a_setting_by_its_label() -> None:
    with pytest.raises(InvalidRequest, match="temperature must be a number from 0 to") as raised:
        check_number("temperature", -1, 0, 10)
    assert public_error(raised.value, WORDS)["detail"].startswith("Temperature must be a number")


def test_any_error_is_one_short_line_with_a_code() -> None:
    assert public_error(ValueError("a\nb  c")) == {"detail": "a b c", "code": "invalid_request"}
    long = public_error(ValueError("start " + "x" * 10_000 + " end"))["detail"]
    assert long.startswith("start x")
    assert long.endswith("x end")
    assert len(long) <= MAX_SENTENCE + 3
    assert public_error(RecursionError("maximum depth"))["code"] == "too_deep"


def test_a_program_gets_english_whatever_its_accept_language() -> None:
    for path, query, language in (
        ("/", b"", "fr"),
        ("/", b"__lang=de", "de"),
        ("/resources/heatmap", b"", "en"),
        ("/resources/heatmap", b"__lang=de", "de"),
        ("/gradio_api/queue/join", b"__lang=zh-CN", "zh"),
        ("/gradio_api/call/generate", b"", "en"),
        ("/viz/gradio_api/call/generate", b"", "en"),
    ):
        scope = {
            "path": path, "query_string": query, "headers": [(b"accept-language", b"fr")],
            "root_path": "/viz" if path.startswith("/viz") else "",
        }  # fmt: skip
        assert language_of(scope) == language

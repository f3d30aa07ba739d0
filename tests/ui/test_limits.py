"""The limits: each with its sentence, and all of them in one table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from transformer.ui import limits
from transformer.ui.limits import (
    check_input,
    check_length,
    check_texts,
    lines_of,
    sentence_of,
    table,
)

SERVE = Path(__file__).resolve().parents[2] / "docs/serve.md"


def test_the_table_holds_every_number_of_the_module() -> None:
    numbers = {
        value
        for name, value in vars(limits).items()
        if name.isupper() and name != "MAX_SENTENCE" and isinstance(value, int | float)
    }
    assert numbers <= {row["limit"] for row in table().values()}


def test_the_documents_say_the_numbers_of_the_table() -> None:
    text, limit = SERVE.read_text(encoding="utf-8"), {k: v["limit"] for k, v in table().items()}
    for sentence in (
        rf"trained for {limit['training_seconds']:.0f} s at\s+most",
        rf"takes at most {limit['kept_bytes'] / 1e6:.0f} MB more",
        rf"at most {limit['calls']} calls at once",
        r"most, one at a time",
        r"deleted a minute after their visitor leaves",
        r"otherwise ten minutes after",
    ):
        assert re.search(sentence, text), sentence
    assert (limit["trainings"], limit["left_age"], limit["run_age"]) == (1, 60, 600)


@pytest.mark.parametrize(
    ("check", "good", "bad", "sentence"),
    [
        (check_input, "a" * 2000, "a" * 2001, "at most 2,000 characters"),
        (check_length, 200, 201, "from 1 to 200; got 201"),
        (check_texts, ["a"] * 8, ["a"] * 9, "from 1 to 8 texts; got 9"),
        (lines_of, "a\n" * 8, "a\n" * 9, "from 1 to 8 texts; got 9"),
        (lines_of, "a", "a" * 16_001, "at most 16,000 characters; got 16,001"),
        (limits.check_interventions, [{}] * 64, [{}] * 65, "at most 64 interventions; got 65"),
    ],
)
def test_a_limit_is_reached_and_not_passed(check, good, bad, sentence) -> None:
    check(good)
    with pytest.raises(ValueError, match=sentence):
        check(bad)


def test_a_sentence_is_one_line_and_not_endless() -> None:
    assert sentence_of(ValueError("a\nb  c")) == "a b c"
    long = sentence_of(ValueError("start " + "x" * 10_000 + " end"))
    assert long.startswith("start x")
    assert long.endswith("x end")
    assert len(long) <= limits.MAX_SENTENCE + 3
    assert sentence_of(RecursionError("maximum depth")) == "the values are nested too deeply"

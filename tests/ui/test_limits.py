"""The limits: each with its sentence, and all of them in one table."""

import re
from pathlib import Path

from transformer.ui import limits
from transformer.ui.limits import (
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


def test_a_sentence_is_one_line_and_not_endless() -> None:
    assert sentence_of(ValueError("a\nb  c")) == "a b c"
    long = sentence_of(ValueError("start " + "x" * 10_000 + " end"))
    assert long.startswith("start x")
    assert long.endswith("x end")
    assert len(long) <= limits.MAX_SENTENCE + 3
    assert sentence_of(RecursionError("maximum depth")) == "the values are nested too deeply"

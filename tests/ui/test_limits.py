"""The limits, all of them in one table."""

import re
from pathlib import Path

from transformer.ui import limits
from transformer.ui.limits import table

SERVE = Path(__file__).resolve().parents[2] / "docs/serve.md"


def test_the_table_holds_every_number_of_the_module() -> None:
    numbers = {
        value
        for name, value in vars(limits).items()
        if name.isupper() and isinstance(value, int | float)
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

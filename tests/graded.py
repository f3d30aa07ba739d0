"""Checks as numbers, with answers and Python's verdicts on them: what JavaScript is to repeat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from transformer import Run
from transformer.analysis.laboratory import Laboratory
from transformer.lessons.check_header import check_of
from transformer.lessons.checks import Check, Click
from transformer.lessons.checks import _number as written
from transformer.lessons.quantities import Ground
from transformer.lessons.stored import stored

SITE = "decoder.1.self"
ROW = {"site": SITE, "head": 1, "query": 5}
CHECKS = (
    {"click": "head", "of": "first"},
    {"click": "head", "of": "entropy", "least": True, "within": 0.25},
    {"click": "head", "of": "previous", "within": 0.0},
    {"click": "token", "of": "weight", **ROW},
    {"click": "token", "of": "probability", "least": True, "within": 0.05},
    {"click": "cell", "of": "is_hidden", "site": SITE},
    {"click": "cell", "of": "score", "site": SITE, "head": 0},
    {"number": "hidden", "site": SITE, "query": 3},
    {"number": "weight", **ROW, "key": 2, "tolerance": 0.01},
    {"choose": "weight", **ROW, "key": [1, 2, 4]},
    {"choose": "row_entropy", **ROW, "bounds": [0.5, 1.5]},
)
UNGRADED = (
    ({"click": "token", "of": "probability"}, {"stack": "own", "token": 0}),
    ({"click": "token", "of": "weight", **ROW}, {"stack": "own", "token": 99}),
)
NUMERALS = (0.0, -0.00001, 1.0, 0.99996, 0.125, 0.375, 0.625, 0.875, 1.005, -2.345, 1234567.891,
            2048.0, 12.5, -0.001, 0.145)  # fmt: skip


def graded(run: Run, lab: Laboratory) -> dict[str, Any]:
    """{"grading", "ungraded", "numerals"}, see tests/static/grading.test.js."""
    ground = Ground(run=run, lab=lab)
    return {
        "grading": [
            {"check": stored(check, ground), "given": list(_given(check, ground))}
            for check in map(check_of, CHECKS)
        ],
        "ungraded": [
            {
                "check": stored(check_of(header), ground), "answer": answer,
                "says": _refused(check_of(header), ground, answer),
            }
            for header, answer in UNGRADED
        ],
        "numerals": [{"value": value, "text": written(value)} for value in NUMERALS],
    }  # fmt: skip


def _given(check: Check, ground: Ground) -> Iterator[dict[str, Any]]:
    answers = [*check.answers(ground)]
    if check.kind == "number":
        (right, _) = answers
        near = [right["number"] + check.tolerance * by for by in (-1.1, -0.9, 0.9, 1.1)]  # type: ignore[attr-defined]
        answers += [{"number": one} for one in near]
    if check.kind == "token":
        answers.append({"token": 1, "stack": "encoder"})
    for answer in answers:
        found = check.grade(ground, answer)
        said = {"right": found.right, "says": found.says}
        yield {"answer": _clicked(check, ground.run, answer), **said}


def _clicked(check: Check, run: Run, answer: Mapping[str, Any]) -> dict[str, Any]:
    """As the page says it."""
    if isinstance(check, Click) and check.kind == "cell":
        row = answer["query"] - run.trace_start
        return {"site": check.arguments["site"], "row": row, "key": answer["key"]}
    return {"stack": "own", **answer} if check.kind == "token" else dict(answer)


def _refused(check: Check, ground: Ground, answer: Mapping[str, Any]) -> str:
    try:
        check.grade(ground, answer)
    except ValueError as error:
        return str(error)
    raise AssertionError(f"{answer} was graded")

"""The checks of a lesson's steps; answers are graded against a fresh measurement.

    check = {click = "head", of = "previous"}                       the head with the largest value
    check = {click = "token", of = "weight", site = "decoder.5.self", head = 0, query = 20}
    check = {click = "cell", of = "is_hidden", site = "decoder.0.self"}
    check = {choose = "weight", …, query = 20, key = [3, 9, 12]}    the largest of several
    check = {choose = "row_entropy", …, bounds = [1, 2]}            its range, one of three
    check = {number = "hidden", site = "decoder.0.self", query = 3, tolerance = 0}
    check = {run = {has = "ram", alters = ["ablate"]}}              see `output_check`

A click is right on the largest value (least = true: the smallest), or nearly: within = 0.1 of the
range from the worst to the best.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from transformer.checks import check_whole, is_number, shortened
from transformer.lessons import prediction_measures, training_measures  # noqa: F401 (registered)
from transformer.lessons.measures import MEASURES, GradingContext, first_row, of
from transformer.messages import capital, numeral, say
from transformer.model.sites import Site
from transformer.runs.head_data import switched_off
from transformer.runs.memo import memoize_on_run

PupilAnswer = Mapping[str, Any]
CLICKED = {"head": ("site", "head"), "token": ("token",), "cell": ("query", "key")}


class CheckResult(NamedTuple):
    """says: what was chosen, and its measured value."""

    right: bool
    says: str


@dataclass(frozen=True, kw_only=True)
class Check(ABC):
    """kind: how it is answered. of, arguments: its measure. n_options: how many sentences to choose
    from. is_ordered: whether they are ranges, in the order of the numbers. stack: whose tokens can
    be clicked, the text's ("own") or the "encoder"'s."""

    kind: str
    of: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    n_options: int = 0
    is_ordered: bool = False
    stack: str = "own"

    @abstractmethod
    def grade(self, context: GradingContext, answer: PupilAnswer) -> CheckResult:
        """Grade an answer. Raises ValueError for one that cannot be graded."""

    def right_answer(self, context: GradingContext) -> PupilAnswer | None:
        """The best answer, or None if it has to be found by trying."""
        return None

    def answers(self, context: GradingContext) -> Sequence[PupilAnswer]:
        """Some or all possible answers."""
        return [{}]

    def measured(self, context: GradingContext) -> float:
        """The number of its measure."""
        key = ("measured", self.of, repr(self.arguments))
        return memoize_on_run(context.run, key, lambda: of(context, self.of, self.arguments))


@dataclass(frozen=True, kw_only=True)
class Best(Check):
    """Click the head, token or cell with the largest value of a measure, or choose the sentence
    about it: one for each value of the argument that is a list.

    free: the measure's arguments that the answer gives. attention: whose heads can be clicked.
    """

    free: tuple[str, ...]
    least: bool = False
    within: float = 0.1
    attention: str = "decoder.self"

    def grade(self, context: GradingContext, answer: PupilAnswer) -> CheckResult:
        """Right if within a margin of the best value."""
        if self.kind == "token" and answer.get("stack", self.stack) != self.stack:
            return CheckResult(False, say("This token is of the other text."))
        value = self.value(context, answer)
        if MEASURES[self.of].yes:  # a long text has too many cells to measure all
            return CheckResult(bool(value) is not self.least, stated(self.of, value))
        values = self._values(context)
        worst, best = sorted((min(values), max(values)), reverse=self.least)
        words = {"quantity": worded(self.of), "value": written_number(value)}
        if abs(value - best) > self.within * abs(best - worst):
            if self.least:
                return CheckResult(
                    False, say("{quantity} is {value}; the smallest would count.", **words)
                )
            return CheckResult(
                False, say("{quantity} is {value}; the largest would count.", **words)
            )
        if self.least:
            return CheckResult(True, say("{quantity} is {value}: the least.", **words))
        return CheckResult(True, say("{quantity} is {value}: the most.", **words))

    def right_answer(self, context: GradingContext) -> PupilAnswer | None:
        """The answer with the largest value."""
        answers = self.answers(context)
        if MEASURES[self.of].yes:
            return next((answer for answer in answers if self.grade(context, answer).right), None)
        values = self._values(context)
        if not values:  # every head is switched off
            return None
        return answers[values.index((min if self.least else max)(values))]

    def answers(self, context: GradingContext) -> Sequence[PupilAnswer]:
        """Every head of a kind of attention that is not switched off, every token, every cell, or
        every sentence."""
        run = context.run
        if self.kind == "head":
            sites = [
                site for site in run.trace.sites if f"{site.stack}.{site.kind}" == self.attention
            ]
            return [
                {"site": str(site), "head": head}
                for site in sites
                for head in range(run.trace[site].pattern.shape[1])
                if head not in switched_off(run, site)
            ]
        if self.kind == "token":
            return [{"token": token} for token in self._tokens(context)]
        if self.kind == "choose":
            return [{"option": option} for option in range(self.n_options)]
        _, _, n_queries, n_keys = run.trace[Site.parse(self.arguments["site"])].pattern.shape
        first = first_row(run, str(self.arguments["site"]))
        rows = range(first, first + n_queries)
        return [{"query": row, "key": key} for row in rows for key in range(n_keys)]

    def value(self, context: GradingContext, answer: PupilAnswer) -> float:
        """The measured number of an answer. Raises ValueError if it cannot be measured."""
        if self.kind != "choose":
            chosen = (answer.get(name) for name in CLICKED[self.kind])
            return of(context, self.of, self.arguments, **dict(zip(self.free, chosen, strict=True)))
        option = check_whole("answer", answer.get("option"), 0, self.n_options - 1)
        (name,) = self.free
        return of(context, self.of, {**self.arguments, name: self.arguments[name][option]})

    def _values(self, context: GradingContext) -> list[float]:
        def values() -> list[float]:
            return [self.value(context, answer) for answer in self.answers(context)]

        return memoize_on_run(context.run, ("values of answers", repr(self)), values)

    def _tokens(self, context: GradingContext) -> range:
        run = context.run
        if "key" in self.free:
            return range(run.trace[Site.parse(self.arguments["site"])].pattern.shape[3])
        if self.of == "surprisal":  # nothing predicts the first token
            return range(run.trace_start + 1, len(run.labels))
        return range(run.n_prompt - 1, len(run.labels) - 1)


@dataclass(frozen=True, kw_only=True)
class NumberCheck(Check):
    """Give a number that is read off or worked out."""

    kind: str = "number"
    tolerance: float = 0.0

    def grade(self, context: GradingContext, answer: PupilAnswer) -> CheckResult:
        """Right if within the tolerance, or if it is the measured number in fewer digits."""
        got = answer.get("number")
        if not is_number(got):
            raise ValueError(f"the answer must be a number; got {shortened(got)}")
        value = self.measured(context)
        readings = [got]
        if 0 < value <= 1 < got:  # 9.5: 9.5 %
            readings.append(got / 100)
        if 0 < got <= 1 < value and "in a hundred" in MEASURES[self.of].words:  # 7 %: 7 of 100
            readings.append(100 * got)
        for reading in readings:
            if abs(reading - value) <= self.tolerance + 1e-9 or _is_rounded(reading, value):
                return CheckResult(True, stated(self.of, value))
        values = {"quantity": worded(self.of), "got": written_number(got)}
        if not self.tolerance:
            return CheckResult(
                False,
                say("{quantity} is not {got}; give the exact number, or round it.", **values),
            )
        return CheckResult(
            False,
            say(
                "{quantity} is not {got}; a number at most {tolerance} away from it would count.",
                tolerance=written_number(self.tolerance), **values,
            ),
        )  # fmt: skip

    def right_answer(self, context: GradingContext) -> PupilAnswer | None:
        """The measured number."""
        return {"number": self.measured(context)}

    def answers(self, context: GradingContext) -> Sequence[PupilAnswer]:
        """The right number, and one that is too large."""
        value = self.measured(context)
        return [{"number": value}, {"number": value + 2 * self.tolerance + 1}]


@dataclass(frozen=True, kw_only=True)
class RangeCheck(Check):
    """Choose the sentence about the range that a number falls into. bounds: between the ranges."""

    kind: str = "choose"
    bounds: Sequence[float]

    def grade(self, context: GradingContext, answer: PupilAnswer) -> CheckResult:
        """Right if the number is in the range."""
        option = check_whole("answer", answer.get("option"), 0, len(self.bounds))
        best = self._best(context)
        if option > best:
            return CheckResult(
                False, say("{quantity} is smaller on this run.", quantity=worded(self.of))
            )
        if option < best:
            return CheckResult(
                False, say("{quantity} is larger on this run.", quantity=worded(self.of))
            )
        return CheckResult(True, stated(self.of, self.measured(context)))

    def right_answer(self, context: GradingContext) -> PupilAnswer | None:
        """The option of the number."""
        return {"option": self._best(context)}

    def answers(self, context: GradingContext) -> Sequence[PupilAnswer]:
        """All options."""
        return [{"option": option} for option in range(len(self.bounds) + 1)]

    def _best(self, context: GradingContext) -> int:
        return sum(self.measured(context) >= bound for bound in self.bounds)


ROUNDED = 0.05  # how far a number in fewer digits may be off, of the measured one


def _is_rounded(got: float, value: float) -> bool:
    """Whether it is the value, rounded to as many decimals as it has."""
    decimals = len(repr(float(got)).partition(".")[2]) if got != round(got) else 0
    return round(value, decimals) == got and abs(got - value) <= ROUNDED * abs(value)


def stated(name: str, value: float) -> str:
    """A sentence that says a measured value."""
    if yes := MEASURES[name].yes:
        return say(yes if value else MEASURES[name].no)
    return say("{quantity} is {value}.", quantity=worded(name), value=written_number(value))


def worded(name: str) -> str:
    """A quantity's name with a capital, for the start of a sentence."""
    return capital(say(MEASURES[name].words))


def written_number(value: float) -> str:
    """A measured number, with two decimals unless it is whole, or four if it is small."""
    whole = abs(value - round(value)) < 1e-4 and abs(value) < 1e6
    return numeral(round(value)) if whole else numeral(value, ".4f" if abs(value) < 0.01 else ".2f")

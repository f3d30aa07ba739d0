"""The checks of a lesson's steps; answers are graded against a fresh measurement.

    check = {click = "head", of = "previous"}                       the head with the largest value
    check = {click = "token", of = "weight", site = "decoder.5.self", head = 0, query = 20}
    check = {click = "cell", of = "is_hidden", site = "decoder.0.self"}
    check = {number = "hidden", site = "decoder.0.self", query = 3, tolerance = 0}
    check = {choose = "weight", …, query = 20, key = [3, 9, 12]}    the largest of several
    check = {choose = "row_entropy", …, bounds = [1, 2]}            its range, one of three
    check = {run = {has = "Bram", alters = ["ablate"]}}            the network must write this

A click is right on the largest value (least = true: the smallest), or nearly: within = 0.1 of the
range from the worst to the best.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from transformer.checks import shortened
from transformer.lessons import prediction_measures, training_measures  # noqa: F401 (registered)
from transformer.lessons.attention_measures import first_row  # registers its measures
from transformer.lessons.measures import MEASURES, GradingContext, of
from transformer.messages import capital, numeral, say
from transformer.model.sites import Site
from transformer.runs.memo import memoize_on_run

Answer = Mapping[str, Any]
WITHIN = 0.1
CLICKED = {"head": ("site", "head"), "token": ("token",), "cell": ("query", "key")}


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    """says: what was chosen, and its measured value."""

    right: bool
    says: str


class Check(ABC):
    """kind: how it is answered. n_options: how many sentences to choose from. is_ordered: whether
    they are ranges, in the order of the numbers. arguments: of its measure. stack: whose tokens can
    be clicked, the text's ("own") or the "encoder"'s."""

    kind: str = ""
    n_options: int = 0
    is_ordered: bool = False
    arguments: Mapping[str, Any]

    @property
    def stack(self) -> str:
        return "own"

    @abstractmethod
    def grade(self, context: GradingContext, answer: Answer) -> CheckResult:
        """Grade an answer. Raises ValueError for one that cannot be graded."""

    @abstractmethod
    def right_answer(self, context: GradingContext) -> Answer | None:
        """The best answer, or None if it has to be found by trying."""

    @abstractmethod
    def answers(self, context: GradingContext) -> Iterator[Answer]:
        """Some or all possible answers."""


@dataclass(frozen=True, kw_only=True)
class Click(Check):
    """Click the head, token or cell with the largest value of a quantity."""

    kind: str
    of: str
    arguments: Mapping[str, Any]
    free: tuple[str, ...]  # the quantity's arguments that the click gives
    least: bool = False
    within: float = WITHIN

    def grade(self, context: GradingContext, answer: Answer) -> CheckResult:
        """Right if within a margin of the best value."""
        if self.kind == "token" and answer.get("stack", self.stack) != self.stack:
            return CheckResult(right=False, says=say("This token is of the other text."))
        got = {name: answer.get(name) for name in CLICKED[self.kind]}
        value = self.value(context, got)
        if yes := MEASURES[self.of].yes:  # a long text has too many cells to measure all
            says = say(yes if value else MEASURES[self.of].no)
            return CheckResult(right=bool(value) is not self.least, says=says)
        key = ("worst and best", repr(self))
        worst, best = memoize_on_run(context.run, key, lambda: self._ends(context))
        right = abs(value - best) <= self.within * abs(best - worst)
        quantity, shown = worded(self.of), written_number(value)
        if not right:
            says = say("{quantity} is {value}.", quantity=quantity, value=shown)
        elif self.least:
            says = say("{quantity} is {value}: the least.", quantity=quantity, value=shown)
        else:
            says = say("{quantity} is {value}: the most.", quantity=quantity, value=shown)
        return CheckResult(right=right, says=says)

    @property
    def stack(self) -> str:
        """ "encoder" if the clicked tokens are keys from the encoder, else "own"."""
        site = str(self.arguments.get("site", ""))
        of_source = "key" in self.free and (site.endswith(".cross") or site.startswith("encoder"))
        return "encoder" if of_source else "own"

    def right_answer(self, context: GradingContext) -> Answer | None:
        """The answer with the largest value."""
        if MEASURES[self.of].yes:
            values = ((one, bool(self.value(context, one))) for one in self.answers(context))
            return next((one for one, yes in values if yes is not self.least), None)
        sign = -1 if self.least else 1
        return max(self.answers(context), key=lambda one: sign * self.value(context, one))

    def answers(self, context: GradingContext) -> Iterator[Answer]:
        """Every head of a kind of attention, every token, or every cell."""
        run = context.run
        if self.kind == "head":
            kind = str(self.arguments.get("kind", "decoder.self"))
            for site in run.trace.sites:
                if f"{site.stack}.{site.kind}" == kind:
                    n_heads = run.trace[site].pattern.shape[1]
                    yield from ({"site": str(site), "head": head} for head in range(n_heads))
        elif self.kind == "token":
            yield from ({"token": token} for token in self._tokens(context))
        else:
            _, _, n_queries, n_keys = run.trace[Site.parse(self.arguments["site"])].pattern.shape
            first = first_row(run, str(self.arguments["site"]))
            yield from (
                {"query": first + row, "key": key}
                for row in range(n_queries)
                for key in range(n_keys)
            )

    def _tokens(self, context: GradingContext) -> range:
        run = context.run
        if "key" in self.free:
            return range(run.trace[Site.parse(self.arguments["site"])].pattern.shape[3])
        if self.of == "surprisal":  # nothing predicts the first token
            return range(1, len(run.labels))
        return range(run.n_prompt - 1, len(run.labels) - 1)

    def _ends(self, context: GradingContext) -> tuple[float, float]:
        values = [self.value(context, one) for one in self.answers(context)]
        return (max(values), min(values)) if self.least else (min(values), max(values))

    def value(self, context: GradingContext, got: Answer) -> float:
        """The measured number of a click. Raises ValueError if it cannot be measured."""
        given = {k: v for k, v in self.arguments.items() if k != "kind"}
        said = dict(zip(self.free, (got[name] for name in CLICKED[self.kind]), strict=True))
        return of(context, self.of, given, **said)


@dataclass(frozen=True, kw_only=True)
class Number(Check):
    """Give a number that is read off or worked out."""

    of: str
    arguments: Mapping[str, Any]
    tolerance: float = 0.0
    kind: str = field(default="number", init=False)

    def grade(self, context: GradingContext, answer: Answer) -> CheckResult:
        """Right if within the tolerance."""
        got = answer.get("number")
        if not isinstance(got, int | float) or isinstance(got, bool):
            raise ValueError(f"the answer must be a number; got {shortened(got)}")
        value = of(context, self.of, self.arguments)
        if not self.is_right(got, value):
            return CheckResult(right=False, says=say("It is not {got}.", got=written_number(got)))
        says = say("{quantity} is {value}.", quantity=worded(self.of), value=written_number(value))
        return CheckResult(right=True, says=says)

    def is_right(self, got: float, value: float) -> bool:
        """Whether an answer is near enough to the measured value."""
        return abs(got - value) <= self.tolerance + 1e-9

    def right_answer(self, context: GradingContext) -> Answer | None:
        """The measured number."""
        return {"number": of(context, self.of, self.arguments)}

    def answers(self, context: GradingContext) -> Iterator[Answer]:
        """The right number, and one that is too large."""
        value = of(context, self.of, self.arguments)
        yield from ({"number": value}, {"number": value + 2 * self.tolerance + 1})


@dataclass(frozen=True, kw_only=True)
class Choose(Check):
    """Choose one of several sentences.

    bounds: of the ranges that the sentences describe. Without bounds each sentence is about one
    value of the argument that is a list, and the right one has the largest number.
    """

    of: str
    arguments: Mapping[str, Any]
    bounds: tuple[float, ...] = ()
    kind: str = field(default="choose", init=False)

    @property
    def n_options(self) -> int:  # type: ignore[override]
        """The number of ranges or of values."""
        return len(self.bounds) + 1 if self.bounds else len(self._each())

    @property
    def is_ordered(self) -> bool:  # type: ignore[override]
        """Whether the sentences are ranges."""
        return bool(self.bounds)

    def grade(self, context: GradingContext, answer: Answer) -> CheckResult:
        """Right if it is the best option."""
        got = answer.get("option")
        if not isinstance(got, int) or not 0 <= got < self.n_options:
            raise ValueError(f"the answer must be 0 to {self.n_options - 1}; got {shortened(got)}")
        right = got == self.best(context)
        if self.bounds and not right:
            return CheckResult(right=False, says=say("That is not so on this run."))
        arguments = self.arguments if self.bounds else self._each()[got]
        number = of(context, self.of, arguments)
        if yes := MEASURES[self.of].yes:
            return CheckResult(right=right, says=say(yes if number else MEASURES[self.of].no))
        quantity, value = worded(self.of), written_number(number)
        return CheckResult(
            right=right, says=say("{quantity} is {value}.", quantity=quantity, value=value)
        )

    def right_answer(self, context: GradingContext) -> Answer | None:
        """The best option."""
        return {"option": self.best(context)}

    def answers(self, context: GradingContext) -> Iterator[Answer]:
        """All options."""
        yield from ({"option": one} for one in range(self.n_options))

    def best(self, context: GradingContext) -> int:
        """The index of the right sentence, from 0."""
        if self.bounds:
            value = of(context, self.of, self.arguments)
            return sum(value >= bound for bound in self.bounds)
        values = [of(context, self.of, one) for one in self.measured()]
        return max(range(len(values)), key=values.__getitem__)

    def measured(self) -> list[Mapping[str, Any]]:
        """The arguments of each measurement: one with bounds, else one per sentence."""
        return [self.arguments] if self.bounds else list(self._each())

    def _each(self) -> list[dict[str, Any]]:
        name = next(name for name, value in self.arguments.items() if isinstance(value, list))
        return [dict(self.arguments) | {name: value} for value in self.arguments[name]]


def worded(name: str) -> str:
    """A quantity's name with a capital, for the start of a sentence."""
    return capital(say(MEASURES[name].words))


def written_number(value: float) -> str:
    """A measured number, with two decimals unless it is whole."""
    whole = abs(value - round(value)) < 1e-4 and abs(value) < 1e6
    return numeral(round(value)) if whole else numeral(value, ".2f")

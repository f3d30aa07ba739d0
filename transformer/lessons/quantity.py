"""A quantity: a number by its name, measured on a visitor's run or batch; see `quantities`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from transformer.analysis.laboratory import Laboratory
from transformer.checks import check_whole
from transformer.model.trace import AttentionRecord
from transformer.runs.run import Batch, Run


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """What a check is graded on: a run, and where it is about padding a batch.

    lab: where what needs the network again is asked.
    """

    run: Run
    lab: Laboratory
    batch: Batch | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """words: what it is, in an answer: "{words} is 0.91 here". yes, no: in place of that, where it
    is 1 or 0."""

    name: str
    words: str
    measure: Callable[..., float]
    yes: str = ""
    no: str = ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """What has to be said, besides the run."""
        return tuple(inspect.signature(self.measure).parameters)[1:]


QUANTITIES: dict[str, Quantity] = {}
Measure = Callable[..., float]


def called(words: str, yes: str = "", no: str = "") -> Callable[[Measure], Measure]:
    """Keep a measure under its own name, see Quantity."""

    def keep(measure: Measure) -> Measure:
        QUANTITIES[measure.__name__] = Quantity(
            name=measure.__name__, words=words, measure=measure, yes=yes, no=no
        )
        return measure

    return keep


def of(ground: Ground, name: str, arguments: Mapping[str, Any]) -> float:
    """A quantity's number. Raises ValueError for what the run does not have."""
    return QUANTITIES[name].measure(ground, **arguments)


def record_of(ground: Ground, site: str, head: int) -> AttentionRecord:
    """The attention of a place, with this head. Raises ValueError for none."""
    record = ground.run.trace[ground.run.trace.find(str(site))]
    check_whole("head", head, 0, record.weights.shape[1] - 1)
    return record

"""What a beam search found, and the tree that it grew."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """A finished text, the end token included if it was reached.

    score: the sum of the tokens' log-probabilities. normalised: score / length ** length_penalty,
    by which hypotheses are ranked.
    """

    ids: tuple[int, ...]
    score: float
    normalised: float
    ended: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class BeamNode:
    """A hypothesis at one step: its newest token and where it came from.

    parent: index in the step before (-1 at the first). state: "alive", "ended" (it took the end
    token) or "cut" (extended no further: others were better).
    """

    token: int
    parent: int
    score: float
    state: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """A beam search: what it found, best first, and the tree that it grew.

    texts: the hypotheses as text, in the same order. tree: by step, every extension that was
    weighed; the labels of its tokens are in the run's `candidate_labels`.
    """

    hypotheses: tuple[Hypothesis, ...]
    texts: tuple[str, ...]
    tree: tuple[tuple[BeamNode, ...], ...]

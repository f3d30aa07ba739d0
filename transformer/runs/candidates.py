"""One generated token, and what the step could have taken: described on access."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.runs.lazy import LazyTuple

TextOf = Callable[[int], str]

N_CANDIDATES = 20
WAITING_BYTES = 16_000_000


def no_text(_: int) -> str:
    """Where there is no tokenizer."""
    return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A token that the step could have taken.

    text: what it adds to the text; U+FFFD where it is a part of a character only.
    probability: by the network alone (softmax of the logits).
    sampling_probability: after temperature and filters, what was drawn from; 0 = cut.
    """

    id: int
    logit: float
    probability: float
    sampling_probability: float
    text: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationStep:
    """One generated token.

    window: (start, stop) in the row's tokens; the step saw exactly these.
    candidates: the N_CANDIDATES likeliest, likeliest first; the chosen one is added at the end
    if it is not among them. Those of a step that `generate` made are computed on first access.
    n_kept: how many tokens of the vocabulary the filters left.
    """

    index: int
    token: int
    window: tuple[int, int]
    candidates: Sequence[Candidate]
    n_kept: int

    @property
    def text(self) -> str:
        """What the taken token adds to the text."""
        return self.chosen.text

    @property
    def chosen(self) -> Candidate:
        """The candidate that was taken."""
        return next(c for c in self.candidates if c.id == self.token)


class Candidates(LazyTuple[Candidate]):
    """A step's candidates, computed on first access with all pending ones of the generation.

    Ordering the vocabulary costs a small model a tenth of its step; less for many steps at once.
    """

    def __init__(
        self, generation: Described, logits: Tensor, drawn: Tensor | None, chosen: int
    ) -> None:
        self._generation = generation
        self.waiting: tuple[Tensor, Tensor | None, int] | None = (logits, drawn, chosen)
        self.made: tuple[Candidate, ...] = ()

    def all(self) -> tuple[Candidate, ...]:
        """Every one."""
        if self.waiting is not None:
            self._generation.describe()
        return self.made


class Described:
    """Steps of one generation whose candidates are pending: at most WAITING_BYTES of logits."""

    def __init__(self, text_of: TextOf = no_text) -> None:
        self._text_of = text_of
        self._waiting: list[Candidates] = []
        self._bytes = 0
        self._lock = threading.Lock()

    def add(self, logits: Tensor, drawn: Tensor | None, chosen: int) -> Candidates:
        """One step. logits: (V,). drawn: (V,), the probabilities after filters; None = greedy."""
        new = Candidates(self, logits, drawn, chosen)
        with self._lock:
            self._waiting.append(new)
            self._bytes += logits.nbytes + (0 if drawn is None else drawn.nbytes)
        if self._bytes > WAITING_BYTES:
            self.describe()
        return new

    def describe(self) -> None:
        """Make the candidates of all that wait."""
        with self._lock:
            parts = [step.waiting for step in self._waiting if step.waiting is not None]
            if parts:
                logits, drawn, chosen = zip(*parts, strict=True)
                rows = describe(torch.stack(logits), drawn, chosen, self._text_of)
                for step, row in zip(self._waiting, rows, strict=True):
                    step.made, step.waiting = row, None
            self._waiting, self._bytes = [], 0


@torch.no_grad()
def describe(
    logits: Tensor,
    drawn: Sequence[Tensor | None],
    chosen: Sequence[int],
    text_of: TextOf = no_text,
) -> list[tuple[Candidate, ...]]:
    """The candidates of N steps: the N_CANDIDATES likeliest, and what was taken if not among them.

    logits: (N, V). drawn: for each step its (V,) probabilities after filters, None = greedy.
    text_of: the text of a token's id.
    """
    best = logits.topk(min(N_CANDIDATES, logits.shape[-1]), dim=-1).indices
    ids = torch.cat([best, torch.tensor(chosen, device=logits.device)[:, None]], dim=-1)
    columns = [ids, logits.gather(-1, ids), logits.softmax(dim=-1).gather(-1, ids)]
    rows = zip(*(column.tolist() for column in columns), drawn, chosen, strict=True)
    return [_described(text_of, *row) for row in rows]


def _described(
    text_of: TextOf,
    ids: list[int],
    logits: list[float],
    probabilities: list[float],
    drawn: Tensor | None,
    chosen: int,
) -> tuple[Candidate, ...]:
    """One step's candidates; the last of the ids is the chosen one, which may stand there twice."""
    shares = [float(i == chosen) for i in ids] if drawn is None else drawn[ids].tolist()
    listed = [
        Candidate(id=i, logit=a, probability=b, sampling_probability=c, text=text_of(i))
        for i, a, b, c in zip(ids, logits, probabilities, shares, strict=True)
    ]
    return tuple(listed[:-1] if chosen in ids[:-1] else listed)

"""What a step could have taken, described when somebody looks."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.inference.later import Later

N_CANDIDATES = 20
WAITING_BYTES = 16_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A token that the step could have taken.

    probability: by the network alone (softmax of the logits).
    sampling_probability: after temperature and filters, what was drawn from; 0 = cut.
    """

    id: int
    logit: float
    probability: float
    sampling_probability: float


class Candidates(Later[Candidate]):
    """A step's candidates, described at the first look with all others of the generation that wait.

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
    """Steps of one generation that nobody has looked at yet: at most WAITING_BYTES of logits."""

    def __init__(self) -> None:
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
                rows = describe(torch.stack(logits), drawn, chosen)
                for step, row in zip(self._waiting, rows, strict=True):
                    step.made, step.waiting = row, None
            self._waiting, self._bytes = [], 0


@torch.no_grad()
def describe(
    logits: Tensor, drawn: Sequence[Tensor | None], chosen: Sequence[int]
) -> list[tuple[Candidate, ...]]:
    """The candidates of N steps: the N_CANDIDATES likeliest, and what was taken if not among them.

    logits: (N, V). drawn: for each step its (V,) probabilities after filters, None = greedy.
    """
    best = logits.topk(min(N_CANDIDATES, logits.shape[-1]), dim=-1).indices
    ids = torch.cat([best, torch.tensor(chosen, device=logits.device)[:, None]], dim=-1)
    columns = [ids, logits.gather(-1, ids), logits.softmax(dim=-1).gather(-1, ids)]
    rows = zip(*(column.tolist() for column in columns), drawn, chosen, strict=True)
    return [_described(*row) for row in rows]


def _described(
    ids: list[int],
    logits: list[float],
    probabilities: list[float],
    drawn: Tensor | None,
    chosen: int,
) -> tuple[Candidate, ...]:
    """One step's candidates; the last of the ids is the chosen one, which may stand there twice."""
    shares = [float(i == chosen) for i in ids] if drawn is None else drawn[ids].tolist()
    listed = [
        Candidate(id=i, logit=a, probability=b, sampling_probability=c)
        for i, a, b, c in zip(ids, logits, probabilities, shares, strict=True)
    ]
    return tuple(listed[:-1] if chosen in ids[:-1] else listed)

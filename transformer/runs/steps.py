"""Steps of a generation with their candidates, and the tree of a beam search."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, overload

import torch
from torch import Tensor

TextOf = Callable[[int], str]

N_CANDIDATES = 20
PENDING_BYTES = 16_000_000


def no_text(_: int) -> str:
    """The text of a token without a tokenizer."""
    return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A token that the step could have taken.

    text: its text; U+FFFD for part of a character.
    probability: the network's (softmax of the logits).
    sampling_probability: after temperature and filters; 0 = cut.
    """

    id: int
    logit: float
    probability: float
    sampling_probability: float
    text: str = ""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class GenerationStep:
    """One generated token.

    window: (start, stop) in the row's tokens; the step saw exactly these.
    candidates: the N_CANDIDATES likeliest, likeliest first; the chosen one is added at the end
    if it is not among them. In steps from `generate` they are computed on first access.
    n_kept: how many tokens of the vocabulary the filters left.
    new_text: what it adds to the text, in whole characters: none for the first bytes of one.
    """

    index: int
    token: int
    window: tuple[int, int]
    candidates: Sequence[Candidate]
    n_kept: int
    new_text: str = ""

    def __repr__(self) -> str:
        """One line: the taken token and its probability."""
        chosen = self.chosen
        return (
            f"<GenerationStep {self.index}: {chosen.text!r} (id {self.token}), probability "
            f"{chosen.probability:.3g}; {len(self.candidates)} candidates>"
        )

    @property
    def text(self) -> str:
        """The text of the taken token: U+FFFD for part of a character, see `new_text`."""
        return self.chosen.text

    @property
    def chosen(self) -> Candidate:
        """The candidate that was taken."""
        return next(c for c in self.candidates if c.id == self.token)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        candidates = [asdict(candidate) for candidate in self.candidates]
        return values | {"window": list(self.window), "candidates": candidates}


def step_from_dict(values: Mapping[str, Any]) -> GenerationStep:
    """The inverse of `GenerationStep.to_dict`."""
    candidates = tuple(Candidate(**candidate) for candidate in values["candidates"])
    parts = {**values, "window": tuple(values["window"]), "candidates": candidates}
    return GenerationStep(**parts)


class Candidates(Sequence[Candidate]):
    """A step's candidates, computed on first access together with all pending steps.

    Sorting the vocabulary takes a tenth of a small model's step, and less for many steps at once.
    Pickled as a plain tuple.
    """

    def __init__(
        self, batch: CandidateBatch, logits: Tensor, drawn: Tensor | None, chosen: int
    ) -> None:
        self._batch = batch
        self.pending: tuple[Tensor, Tensor | None, int] | None = (logits, drawn, chosen)
        self.computed: tuple[Candidate, ...] = ()

    def all(self) -> tuple[Candidate, ...]:
        """All candidates, as a tuple."""
        if self.pending is not None:
            self._batch.compute()
        return self.computed

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Candidate, ...]: ...
    def __getitem__(self, index: int | slice) -> Candidate | tuple[Candidate, ...]:
        return self.all()[index]

    def __len__(self) -> int:
        return len(self.all())

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidates | tuple) and self.all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self.all())

    def __repr__(self) -> str:
        """One line: how many there are, and the likeliest."""
        first = self[0]
        return (
            f"<{len(self)} candidates, first {first.text!r}, probability {first.probability:.3g}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self.all(),)


class CandidateBatch:
    """The pending candidates of one generation, with at most PENDING_BYTES of logits."""

    def __init__(self, text_of: TextOf = no_text) -> None:
        self._text_of = text_of
        self._pending: list[Candidates] = []
        self._bytes = 0
        self._lock = threading.Lock()

    def add(self, logits: Tensor, drawn: Tensor | None, chosen: int) -> Candidates:
        """Add a step. logits: (V,). drawn: (V,), probabilities after filters; None = greedy."""
        new = Candidates(self, logits, drawn, chosen)
        with self._lock:
            self._pending.append(new)
            self._bytes += logits.nbytes + (0 if drawn is None else drawn.nbytes)
        if self._bytes > PENDING_BYTES:
            self.compute()
        return new

    def compute(self) -> None:
        """Compute all pending candidates."""
        with self._lock:
            parts = [step.pending for step in self._pending if step.pending is not None]
            if parts:
                logits, drawn, chosen = zip(*parts, strict=True)
                rows = candidates_of(torch.stack(logits), drawn, chosen, self._text_of)
                for step, row in zip(self._pending, rows, strict=True):
                    step.computed, step.pending = row, None
            self._pending, self._bytes = [], 0


@torch.no_grad()
def candidates_of(
    logits: Tensor,
    drawn: Sequence[Tensor | None],
    chosen: Sequence[int],
    text_of: TextOf = no_text,
) -> list[tuple[Candidate, ...]]:
    """The candidates of N steps: the N_CANDIDATES likeliest, and the taken token.

    logits: (N, V). drawn: for each step its (V,) probabilities after filters, None = greedy.
    text_of: the text of a token's id.
    """
    best = logits.topk(min(N_CANDIDATES, logits.shape[-1]), dim=-1).indices
    ids = torch.cat([best, torch.tensor(chosen, device=logits.device)[:, None]], dim=-1)
    probabilities = logits.softmax(dim=-1)
    columns = [ids, logits.gather(-1, ids), probabilities.gather(-1, ids)]
    rows = zip(*(column.tolist() for column in columns), drawn, chosen, strict=True)
    return [_candidates(text_of, *row) for row in rows]


def _candidates(
    text_of: TextOf,
    ids: list[int],
    logits: list[float],
    probabilities: list[float],
    drawn: Tensor | None,
    chosen: int,
) -> tuple[Candidate, ...]:
    """One step's candidates; the last of the ids is the chosen token, which may occur twice."""
    shares = [float(i == chosen) for i in ids] if drawn is None else drawn[ids].tolist()
    listed = [
        Candidate(id=i, logit=a, probability=b, sampling_probability=c, text=text_of(i))
        for i, a, b, c in zip(ids, logits, probabilities, shares, strict=True)
    ]
    return tuple(listed[:-1] if chosen in ids[:-1] else listed)


class LazyLabels(Mapping[int, str]):
    """id -> label, computed on access; `ids` returns all keys. Pickled as a dict."""

    def __init__(self, label: Callable[[int], str], ids: Callable[[], set[int]]) -> None:
        self._label, self._ids = label, ids

    def __getitem__(self, token: int) -> str:
        return self._label(token)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._ids()))

    def __len__(self) -> int:
        return len(self._ids())

    def __repr__(self) -> str:
        """One line, without the labels."""
        return f"<{len(self)} labels by token id>"

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """A finished text, the end token included if it was reached.

    score: the sum of the tokens' log-probabilities. normalised: score / length ** length_penalty,
    the order of hypotheses.
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


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Search:
    """A beam search: its hypotheses, best first, and its tree.

    texts: the hypotheses as text. tree: by step, every extension considered; the labels of its
    tokens are in the run's `candidate_labels`.
    """

    hypotheses: tuple[Hypothesis, ...]
    texts: tuple[str, ...]
    tree: tuple[tuple[BeamNode, ...], ...]

    def __repr__(self) -> str:
        """One line, without the tree."""
        best = f"; best {self.texts[0]!r}" if self.texts else ""
        return f"<Search: {len(self.hypotheses)} hypotheses after {len(self.tree)} steps{best}>"

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values, each hypothesis with its text."""
        return {
            "hypotheses": [
                asdict(hypothesis) | {"text": text}
                for hypothesis, text in zip(self.hypotheses, self.texts, strict=True)
            ],
            "tree": [[asdict(node) for node in nodes] for nodes in self.tree],
        }


def search_from_dict(values: Mapping[str, Any]) -> Search:
    """The inverse of `Search.to_dict`."""
    rows = [dict(row) for row in values["hypotheses"]]
    texts = tuple(row.pop("text") for row in rows)
    return Search(
        hypotheses=tuple(Hypothesis(**row | {"ids": tuple(row["ids"])}) for row in rows),
        texts=texts,
        tree=tuple(tuple(BeamNode(**node) for node in nodes) for nodes in values["tree"]),
    )

"""A trace that keeps what attention was computed from, and computes it again where it is looked at.

Scores and weights are 2 H T² numbers a layer, where queries, keys and values are 3 C T. A whole
trace of one text, residual streams and embeddings included, takes

    layers x heads x tokens (C)   with scores and weights   computed again
    6 x 8 x 128 (256)                              9.9 MB           3.6 MB
    12 x 12 x 512 (768)                            385 MB            83 MB
    24 x 16 x 1024 (1024)                        3,662 MB           440 MB
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer.model.attention import attention_scores, masked_softmax
from transformer.model.trace import AttentionRecord, Site, Trace

Change = Callable[[Tensor], Tensor]


class Heads(NamedTuple):
    """What an attention call read: queries (B, H, Tq, D), keys and values (B, H, Tk, D), a mask."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    mask: Tensor | None

    def record(self, site: Site) -> AttentionRecord:
        """Equation 1 once more, by the network's own functions."""
        scores = attention_scores(self.queries, self.keys)
        weights = masked_softmax(scores, self.mask)
        return AttentionRecord(site=site, scores=scores, weights=weights, **self._asdict())


class KeptRecords(MutableMapping[Site, AttentionRecord]):
    """Records by site, as in a plain dict; those kept as Heads are computed at each look."""

    def __init__(self, parts: dict[Site, AttentionRecord | Heads]) -> None:
        self.parts = parts

    @torch.no_grad()
    def __getitem__(self, site: Site) -> AttentionRecord:
        part = self.parts[site]
        return part.record(site) if isinstance(part, Heads) else part

    def __setitem__(self, site: Site, record: AttentionRecord) -> None:
        self.parts[site] = record

    def __delitem__(self, site: Site) -> None:
        del self.parts[site]

    def __iter__(self) -> Iterator[Site]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __contains__(self, site: object) -> bool:
        return site in self.parts  # the inherited one would compute the record


def n_heads_at(trace: Trace, site: Site) -> int:
    """How many heads were recorded at a site."""
    part = _part(trace, site)
    return (part.queries if isinstance(part, Heads) else part.scores).shape[1]


@torch.no_grad()
def one_head(trace: Trace, site: Site, row: int, head: int | None) -> AttentionRecord:
    """One sentence's record with B = 1, and with H = 1 unless all heads (None) are asked for.

    What is kept to be computed again is computed for these alone.
    """
    part, rows = _part(trace, site), slice(row, row + 1)
    heads = slice(None) if head is None else slice(head, head + 1)
    mask = part.mask
    if mask is not None and mask.dim() == 4 and mask.shape[0] > 1:
        mask = mask[rows]
    if isinstance(part, Heads):
        q, k, v = (x[rows, heads] for x in (part.queries, part.keys, part.values))
        return Heads(q, k, v, mask).record(site)
    scores, weights = part.scores[rows, heads], part.weights[rows, heads]
    return AttentionRecord(site=site, scores=scores, weights=weights, mask=mask)


def _part(trace: Trace, site: Site) -> AttentionRecord | Heads:
    records = trace.records
    return records.parts[site] if isinstance(records, KeptRecords) else records[site]


def heads_of(record: AttentionRecord) -> Heads:
    """What a record made by the network was computed from."""
    assert record.queries is not None
    assert record.keys is not None
    assert record.values is not None
    return Heads(record.queries, record.keys, record.values, record.mask)


def kept(trace: Trace) -> Trace:
    """The same trace in little room. Records without queries and keys stay as they are.

    Only for a network that computed in float32 and was not altered: else other numbers would come.
    """
    return _changed(trace, lambda x: x, _in_little_room)


def moved(trace: Trace, device: str | torch.device) -> Trace:
    """The same trace elsewhere; what is kept to be computed again stays so."""
    return _changed(trace, lambda x: x.to(device), lambda part: part)


def bytes_of(trace: Trace) -> int:
    """Bytes of all that a trace keeps."""
    seen: list[int] = []

    def count(x: Tensor) -> Tensor:
        seen.append(x.nbytes)
        return x

    _changed(trace, count, lambda part: part)
    return sum(seen)


def _changed(
    trace: Trace,
    change: Change,
    form: Callable[[AttentionRecord | Heads], AttentionRecord | Heads],
) -> Trace:
    """A trace of the same things: each part in another form, each tensor changed."""
    parts = trace.records.parts if isinstance(trace.records, KeptRecords) else trace.records
    return Trace(
        records=KeptRecords({site: _each(form(part), change) for site, part in parts.items()}),
        embedded={stack: change(x) for stack, x in trace.embedded.items()},
        positions={stack: change(x) for stack, x in trace.positions.items()},
        residuals={stack: list(map(change, made)) for stack, made in trace.residuals.items()},
    )


def _in_little_room(part: AttentionRecord | Heads) -> AttentionRecord | Heads:
    if isinstance(part, Heads) or part.queries is None:
        return part
    return heads_of(part)


def _each(part: AttentionRecord | Heads, change: Change) -> AttentionRecord | Heads:
    """The same with every tensor changed."""
    if isinstance(part, Heads):
        mask = None if part.mask is None else change(part.mask)
        return Heads(change(part.queries), change(part.keys), change(part.values), mask)
    names = ("scores", "weights", "mask", "queries", "keys", "values")
    tensors: dict[str, Any] = {name: getattr(part, name) for name in names}
    changed: dict[str, Any] = {name: change(x) for name, x in tensors.items() if x is not None}
    return dataclasses.replace(part, **changed)

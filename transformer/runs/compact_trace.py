"""A compact trace stores queries, keys and values; scores and weights are recomputed on access.

Scores and weights are 2 H T² numbers a layer, where queries, keys and values are 3 C T. A whole
trace of one text, residual streams and embeddings included, takes

    layers x heads x tokens (C)   with scores and weights   recomputed
    6 x 8 x 128 (256)                              9.9 MB           3.6 MB
    12 x 12 x 512 (768)                            385 MB            83 MB
    24 x 16 x 1024 (1024)                        3,662 MB           440 MB
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from transformer.checks import InvalidRequest
from transformer.model.functional import attention_scores, masked_softmax
from transformer.model.hooks import Point
from transformer.model.sites import Site
from transformer.model.trace import AttentionRecord, Trace, mask_in_full

Change = Callable[[Tensor], Tensor]


class QKV(NamedTuple):
    """The inputs of an attention: q (B, H, Tq, D), k and v (B, G, Tk, D), a mask.

    G divides H: H / G heads share keys and values.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None

    @property
    def allowed(self) -> Tensor:
        """The mask in full: (B, Tq, Tk) bool."""
        return mask_in_full(self.mask, len(self.q), self.q.shape[2], self.k.shape[2])

    def record(self, site: Site) -> AttentionRecord:
        """Compute scores and weights with the network's functions."""
        share = self.q.shape[1] // self.k.shape[1]
        k, v = (x if share == 1 else x.repeat_interleave(share, dim=1) for x in (self.k, self.v))
        scores = attention_scores(self.q, k)
        return AttentionRecord(
            site=site,
            scores=scores,
            pattern=masked_softmax(scores, self.mask),
            mask=self.mask,
            q=self.q,
            k=k,
            v=v,
        )


class CompactRecords(MutableMapping[Site, AttentionRecord]):
    """Records by site; those stored as QKV are recomputed at each access."""

    def __init__(self, parts: dict[Site, AttentionRecord | QKV]) -> None:
        self.parts = parts

    @torch.no_grad()
    def __getitem__(self, site: Site) -> AttentionRecord:
        part = self.parts[site]
        return part.record(site) if isinstance(part, QKV) else part

    def __setitem__(self, site: Site, record: AttentionRecord) -> None:
        self.parts[site] = record

    def __delitem__(self, site: Site) -> None:
        del self.parts[site]

    def __iter__(self) -> Iterator[Site]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __contains__(self, site: object) -> bool:
        return site in self.parts  # the inherited method would compute the record


class CompactedRecords(CompactRecords):
    """Records that are stored as QKV when they arrive, so that a pass never holds all scores and
    weights at once; in full if QKV would not give the same.

    share: the number of heads that share keys and values, which are kept once. exact: whether QKV
    give the scores and weights that the network computes. As the first hook of a pass, it finds out
    which of them the other hooks change. Raises ValueError beyond most_bytes.
    """

    point_names: ClassVar = ("scores", "pattern")

    def __init__(self, share: int = 1, *, exact: bool, most_bytes: float = math.inf) -> None:
        super().__init__({})
        self._share, self._exact, self._most_bytes = share, exact, most_bytes
        self._bytes = 0
        self._computed: dict[str, tuple[Tensor, int | None]] = {}

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """Note the scores and weights that the network computed; changes nothing."""
        if point.name == "scores":
            self._computed = {"scores": (value, _version(value))}
        elif point.name == "pattern":
            inputs = {name: context[name] for name in ("q", "k", "v")}
            for name, x in {"pattern": value, **inputs}.items():
                self._computed[name] = (x, _version(x))
        return value

    @torch.no_grad()
    def __setitem__(self, site: Site, record: AttentionRecord) -> None:
        part: AttentionRecord | QKV = record
        if record.q is not None and self._exact and self._is_unchanged(record):
            part = qkv_of(record, self._share)
        self._computed = {}
        if self._most_bytes < math.inf:
            self._check_bytes(CompactRecords({site: part}))
        self.parts[site] = part

    def _check_bytes(self, more: CompactRecords) -> None:
        """Count these records too. Raises ValueError if all of them are too large."""
        self._bytes += bytes_of(Trace(records=more))
        if self._bytes > self._most_bytes:
            raise InvalidRequest(
                "too_large",
                "this would record more than {most} MB of attention; choose shorter or fewer "
                "texts, or make fewer changes",
                most=self._most_bytes / 1e6,
            )

    def _is_unchanged(self, record: AttentionRecord) -> bool:
        """Whether a record has the very tensors that were noted; their numbers are not read, since
        the CPU would have to wait for a GPU."""
        return all(
            getattr(record, name).is_set_to(x) and _version(x) == version is not None
            for name, (x, version) in self._computed.items()
        )


def _version(x: Tensor) -> int | None:
    """PyTorch's count of changes in place; None for a tensor whose changes are not counted."""
    return None if x.is_inference() else x._version


def stored_at(trace: Trace, site: Site) -> AttentionRecord | QKV:
    """A site's record as it is stored, without computing."""
    records = trace.records
    return records.parts[site] if isinstance(records, CompactRecords) else records[site]


def qkv_of(record: AttentionRecord, share: int = 1) -> QKV:
    """The QKV of a record made by the network.

    share: the number of heads that share keys and values, which are kept once.
    """
    assert record.q is not None
    assert record.k is not None
    assert record.v is not None
    k, v = (x[:, ::share].contiguous() for x in (record.k, record.v))
    return QKV(record.q, k, v, record.mask)


def qkv_at(trace: Trace, site: Site, share: int = 1) -> QKV:
    """The QKV of a site, recorded in full or as QKV. share: as in `qkv_of`."""
    part = stored_at(trace, site)
    return part if isinstance(part, QKV) else qkv_of(part, share)


def to_device(trace: Trace, device: str | torch.device) -> Trace:
    """A copy of the trace on another device; a compact trace stays compact."""
    return _map_tensors(trace, lambda x: x.to(device))


def cloned(trace: Trace) -> Trace:
    """A deep copy, for pickling: a view would be pickled with its whole storage."""
    copies: dict[int, Tensor] = {}  # by id: shared tensors stay shared

    def copy(x: Tensor) -> Tensor:
        if id(x) not in copies:
            copies[id(x)] = x.detach().clone(memory_format=torch.contiguous_format)
        return copies[id(x)]

    return _map_tensors(trace, copy)


def row_of(trace: Trace, row: int, spans: Mapping[str, slice]) -> Trace:
    """The trace of one text of a batch, with B = 1. spans: its tokens in each stack."""

    def cut(x: Tensor, queries: slice, keys: slice | None = None) -> Tensor:
        """x (B, ..., Tq, Tk), or (B, ..., T, D) without keys; a size of 1 stands for all."""
        x = x[row : row + 1] if x.dim() > 2 and x.shape[0] > 1 else x
        x = x[..., queries, :] if x.shape[-2] > 1 else x
        return x if keys is None or x.shape[-1] == 1 else x[..., keys]

    def part_of(site: Site, part: AttentionRecord | QKV) -> AttentionRecord | QKV:
        queries = spans[site.stack]
        keys = spans["encoder"] if site.kind == "cross" else queries
        own = {"q": (queries,), "k": (keys,), "v": (keys,)}
        both = dict.fromkeys(("scores", "pattern", "mask"), (queries, keys))
        axes = {name: where for name, where in (own | both).items() if hasattr(part, name)}
        values = {name: getattr(part, name) for name in axes}
        changed: dict[str, Any] = {
            name: None if x is None else cut(x, *axes[name]) for name, x in values.items()
        }
        if isinstance(part, QKV):
            return QKV(**changed)
        return dataclasses.replace(part, **changed)

    parts = trace.records.parts if isinstance(trace.records, CompactRecords) else trace.records
    return Trace(
        records=CompactRecords({site: part_of(site, part) for site, part in parts.items()}),
        embed={stack: cut(x, spans[stack]) for stack, x in trace.embed.items()},
        pos_embed={stack: cut(x, spans[stack]) for stack, x in trace.pos_embed.items()},
        residuals={
            stack: [cut(x, spans[stack]) for x in layers]
            for stack, layers in trace.residuals.items()
        },
    )


def bytes_of(trace: Trace) -> int:
    """Bytes of all tensors of a trace."""
    seen: list[int] = []

    def count(x: Tensor) -> Tensor:
        seen.append(x.nbytes)
        return x

    _map_tensors(trace, count)
    return sum(seen)


def _map_tensors(trace: Trace, change: Change) -> Trace:
    """A trace with a function applied to each tensor."""
    parts = trace.records.parts if isinstance(trace.records, CompactRecords) else trace.records
    return Trace(
        records=CompactRecords({site: _map_part(part, change) for site, part in parts.items()}),
        embed={stack: change(x) for stack, x in trace.embed.items()},
        pos_embed={stack: change(x) for stack, x in trace.pos_embed.items()},
        residuals={stack: list(map(change, layers)) for stack, layers in trace.residuals.items()},
    )


def _map_part(part: AttentionRecord | QKV, change: Change) -> AttentionRecord | QKV:
    """A stored record with a function applied to each tensor."""
    if isinstance(part, QKV):
        mask = None if part.mask is None else change(part.mask)
        return QKV(change(part.q), change(part.k), change(part.v), mask)
    names = ("scores", "pattern", "mask", "q", "k", "v")
    tensors: dict[str, Any] = {name: getattr(part, name) for name in names}
    changed: dict[str, Any] = {name: change(x) for name, x in tensors.items() if x is not None}
    return dataclasses.replace(part, **changed)

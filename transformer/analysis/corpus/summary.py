"""Summaries of many texts as integers, so that the order of addition changes nothing.

Every measured number is rounded to a millionth once, for its text; sums of integers are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
UNIT = 1_000_000  # of a measured number
N_BINS = 20
N_STRONGEST = 5
NO_TEXT = np.iinfo(np.int64).max
WEAKEST = np.iinfo(np.int64).min
# From where to where a metric's bins go; what lies beyond is in the first or the last one.
RANGES = {"entropy": (0.0, 10.0), "distance": (0.0, 100.0), "order": (-1.0, 1.0)}
SHARE = (0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class MetricSums:
    """One metric of the heads of a kind of attention, over texts. L layers, H heads.

    n: (L, H) texts that have the number; total: their sum in millionths. counts: (L, H, N_BINS)
    texts by bin; earliest: the first text in each bin, NO_TEXT where there is none. strongest: the
    largest numbers and their texts, (L, H, N_STRONGEST, 2), the largest first.
    """

    n: Ints
    total: Ints
    counts: Ints
    earliest: Ints
    strongest: Ints

    @classmethod
    def of(cls, name: str, values: NDArray[np.float64], text: int) -> MetricSums:
        """The sums of one text, (L, H); NaN where the text has no such number."""
        is_number = np.isfinite(values)
        whole = np.where(is_number, np.rint(np.nan_to_num(values) * UNIT), 0).astype(np.int64)
        low, high = RANGES.get(name, SHARE)
        place = np.floor((whole / UNIT - low) / (high - low) * N_BINS).clip(0, N_BINS - 1)
        counts = ((np.arange(N_BINS) == place[..., None]) & is_number[..., None]).astype(np.int64)
        strongest = np.full((*values.shape, N_STRONGEST, 2), WEAKEST)
        strongest[..., 0, 0] = np.where(is_number, whole, WEAKEST)
        strongest[..., 1] = NO_TEXT
        strongest[..., 0, 1] = np.where(is_number, text, NO_TEXT)
        return cls(
            n=is_number.astype(np.int64), total=whole, counts=counts,
            earliest=np.where(counts > 0, text, NO_TEXT), strongest=strongest,
        )  # fmt: skip

    def __add__(self, other: MetricSums) -> MetricSums:
        both = np.concatenate([self.strongest, other.strongest], axis=-2)
        order = np.lexsort((both[..., 1], -np.maximum(both[..., 0], WEAKEST + 1)))
        best = np.take_along_axis(both, order[..., :N_STRONGEST, None], axis=-2)
        return MetricSums(
            n=self.n + other.n, total=self.total + other.total,
            counts=self.counts + other.counts,
            earliest=np.minimum(self.earliest, other.earliest), strongest=best,
        )  # fmt: skip

    def mean(self) -> NDArray[np.float64]:
        """(L, H); NaN where no text had the number."""
        return np.where(self.n > 0, self.total / UNIT / np.maximum(self.n, 1), np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class HeadSums:
    """All heads of one kind of attention over texts.

    read: (L, H, K, K) millionths of weight from each kind of token to each kind, see `KINDS`;
    rows: (K,) queries of each kind. cost: (L, H) millionths of a nat a token that ablating the
    head adds to the loss, summed over `n_costs` texts, each text once.
    """

    metrics: Mapping[str, MetricSums]
    read: Ints
    rows: Ints
    cost: Ints
    n_costs: Ints

    def __add__(self, other: HeadSums) -> HeadSums:
        return HeadSums(
            metrics={name: sums + other.metrics[name] for name, sums in self.metrics.items()},
            read=self.read + other.read, rows=self.rows + other.rows,
            cost=self.cost + other.cost, n_costs=self.n_costs + other.n_costs,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """The heads of a network over some texts; a + b is the summary of both, in any order.

    kinds: by "stack.kind", such as "decoder.self". n_left_out: texts that the network cannot read.
    """

    n_texts: int
    n_tokens: int
    n_left_out: int
    kinds: Mapping[str, HeadSums]

    @classmethod
    def nothing(cls, n_left_out: int = 0) -> Summary:
        """The summary of no text."""
        return cls(0, 0, n_left_out, {})

    def __add__(self, other: Summary) -> Summary:
        kinds = {**self.kinds, **other.kinds}
        for name in self.kinds.keys() & other.kinds.keys():
            kinds[name] = self.kinds[name] + other.kinds[name]
        return Summary(
            self.n_texts + other.n_texts, self.n_tokens + other.n_tokens,
            self.n_left_out + other.n_left_out, dict(sorted(kinds.items())),
        )  # fmt: skip

    def arrays(self) -> dict[str, Any]:
        """Everything as integer arrays by name, for a file."""
        found: dict[str, Any] = {"counts": [self.n_texts, self.n_tokens, self.n_left_out]}
        for kind, heads in self.kinds.items():
            for name in ("read", "rows", "cost", "n_costs"):
                found[f"{kind}/{name}"] = getattr(heads, name)
            for metric, sums in heads.metrics.items():
                for field in fields(sums):
                    found[f"{kind}/{metric}/{field.name}"] = getattr(sums, field.name)
        return {name: np.asarray(value, dtype=np.int64) for name, value in found.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Ints]) -> Summary:
        """The summary from its `arrays`. Raises KeyError for anything else."""
        kinds = {}
        for kind in dict.fromkeys(name.split("/")[0] for name in arrays if "/" in name):
            own = {n.removeprefix(f"{kind}/"): a for n, a in arrays.items() if n.startswith(kind)}
            metrics = dict.fromkeys(name.split("/")[0] for name in own if "/" in name)
            kinds[kind] = HeadSums(
                metrics={
                    metric: MetricSums(*(own[f"{metric}/{f.name}"] for f in fields(MetricSums)))
                    for metric in metrics
                },
                **{name: own[name] for name in ("read", "rows", "cost", "n_costs")},
            )
        n_texts, n_tokens, n_left_out = (int(count) for count in arrays["counts"])
        return cls(n_texts, n_tokens, n_left_out, kinds)

    @classmethod
    def load(cls, path: Path) -> Summary:
        """Load the NPZ file of `save`."""
        with np.load(path, allow_pickle=False) as found:
            return cls.from_arrays({name: found[name] for name in found.files})

    def packed(self) -> bytes:
        """A NPZ file's content, for `load`."""
        file = BytesIO()
        np.savez_compressed(file, **self.arrays())
        return file.getvalue()

    def save(self, path: Path) -> None:
        """Write an NPZ file atomically."""
        write_whole(path, self.packed())


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)

"""One head of one text as arrays, for figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.checks import InvalidCall, check_choice, check_whole, is_whole, shortened
from transformer.interventions.descriptions import Ablate
from transformer.model.sites import Site
from transformer.model.sites import SiteLike as SiteLike
from transformer.model.trace import AttentionRecord, Trace
from transformer.runs.batch import Batch
from transformer.runs.compact_trace import QKV, stored_at
from transformer.runs.drawing import Head as Head
from transformer.runs.drawing import Stage
from transformer.runs.run import Run

STAGES: tuple[Stage, ...] = get_args(Stage)


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadView:
    """One head as it is stored, B = 1, and one label for each query and key.

    Values that the trace does not store are computed on first access.
    off: indices in `part` of heads that are switched off (`switched_off`).
    """

    site: Site
    head: Head
    part: AttentionRecord | QKV
    query_labels: tuple[str, ...]
    key_labels: tuple[str, ...]
    off: tuple[int, ...] = ()

    @cached_property
    def scores(self) -> NDArray[np.float32]:
        """(Tq, Tk), q·k / √D, before the mask."""
        return _mean(self._record.scores)

    @cached_property
    def weights(self) -> NDArray[np.float32]:
        """(Tq, Tk), after mask and softmax, over the heads that are not off; 0 if all are."""
        return _mean(self._record.pattern, self.off)

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """(Tq, Tk), True = may attend."""
        allowed: NDArray[np.bool_] = self.part.allowed[0].cpu().numpy()
        return allowed

    @property
    def is_off(self) -> bool:
        """Whether it is a single head that is switched off."""
        return self.head != "mean" and bool(self.off)

    @property
    def vectors(self) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        """q (Tq, D) and k (Tk, D) if the scores were computed from them, else None: with some
        interventions, for the mean of heads, and for a head that is off."""
        if self.head == "mean" or self.is_off or not isinstance(self.part, QKV):
            return None
        return array(self.part.q[0, 0]), array(self.part.k[0, 0])

    @cached_property
    def _record(self) -> AttentionRecord:
        with torch.no_grad():
            return self.part.record(self.site) if isinstance(self.part, QKV) else self.part


def head_view(run: Run | Batch, site: SiteLike, head: Head, row: int = 0) -> HeadView:
    """One head ("mean": the average of all) of one text.

    Raises ValueError, listing the allowed values, for an unknown site, head or row.
    """
    place = run.trace.find(site)
    check_row(run, row)
    check_head(head, n_heads_at(run.trace, place))
    queries, keys = labels_of(run, place, row)
    off = switched_off(run, place)
    return HeadView(
        site=place,
        head=head if head == "mean" else int(head),
        part=stored_head(run.trace, place, row, None if head == "mean" else int(head)),
        query_labels=queries,
        key_labels=keys,
        off=off if head == "mean" else (0,) * (int(head) in off),
    )


def switched_off(run: Run | Batch, site: Site) -> tuple[int, ...]:
    """The ablated heads of an attention. Their weights, which the trace keeps, have no effect, so
    statements on what heads read leave them out."""
    interventions = run.request.interventions
    ablations = (each for each in interventions if isinstance(each, Ablate) and each.site == site)
    everywhere = [a for a in ablations if a.positions is None and a.part != "mlp_out"]
    heads = range(run.config.n_heads)
    return tuple(
        sorted({head for a in everywhere for head in (heads if a.heads is None else a.heads)})
    )


def weights_read(run: Run | Batch, site: Site, weights: torch.Tensor) -> torch.Tensor:
    """An attention's (B, H, ...) weights, with 0 for heads that are switched off."""
    off = switched_off(run, site)
    if off:
        weights = weights.clone()
        weights[:, list(off)] = 0
    return weights


def records_of(run: Run | Batch, stack: str, kind: str) -> list[AttentionRecord]:
    """The records of every layer, at once. Raises ValueError listing the recorded kinds."""
    return [run.trace[site] for site in sites_of(run, stack, kind)]


def sites_of(run: Run | Batch, stack: str, kind: str) -> list[Site]:
    """The sites of every layer, without computing: all records of a long text take gigabytes.
    Raises ValueError listing the recorded kinds."""
    kinds = run.trace.kinds()
    if (stack, kind) not in kinds:
        known = ", ".join(f"{a} {b}" for a, b in kinds)
        raise InvalidCall(
            "unknown_site",
            "no {stack} {kind}-attention was recorded; recorded: {known}",
            stack=stack,
            kind=kind,
            known=known,
        )
    return [site for site in run.trace.sites if (site.stack, site.kind) == (stack, kind)]


def check_head(head: Any, n_heads: int, name: str = "head") -> None:
    """Raise ValueError unless head (or a layer, with `name`) is 0..n_heads-1 or "mean"."""
    if head != "mean" and not (is_whole(head) and 0 <= head < n_heads):
        raise InvalidCall(
            "out_of_range",
            "{name} must be a whole number from 0 to {last} or 'mean'; got {got}",
            name=name,
            last=n_heads - 1,
            got=shortened(head),
        )


def check_row(run: Run | Batch, row: Any) -> None:
    """Raise ValueError unless row is a text of the batch (a Run has only row 0)."""
    last = len(run.texts) - 1 if isinstance(run, Batch) else 0
    check_whole("row", row, 0, last)


def labels_of(run: Run | Batch, site: Site, row: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(query labels, key labels) of a recorded site, plain text."""
    if isinstance(run, Run):
        return run.queries(site.stack), run.keys(site.stack, site.kind)
    return run.queries(site.stack, row), run.keys(site.stack, site.kind, row)


def _mean(heads: torch.Tensor, off: tuple[int, ...] = ()) -> NDArray[np.float32]:
    """(1, H, Tq, Tk) -> (Tq, Tk), the mean over heads that are not off; 0 if all are."""
    kept = [head for head in range(heads.shape[1]) if head not in off]
    if not kept:
        return array(torch.zeros_like(heads[0, 0]))
    return array(heads[0, 0] if heads.shape[1] == 1 else heads[0, kept].mean(dim=0))


def array(tensor: Any) -> NDArray[np.float32]:
    """A tensor as contiguous float32, which Plotly sends as binary."""
    return np.ascontiguousarray(tensor.detach().cpu().numpy(), dtype=np.float32)


def n_heads_at(trace: Trace, site: Site) -> int:
    """The number of heads recorded at a site."""
    part = stored_at(trace, site)
    return (part.q if isinstance(part, QKV) else part.scores).shape[1]


@torch.no_grad()
def one_head(trace: Trace, site: Site, row: int, head: int | None) -> AttentionRecord:
    """One text's record with B = 1, and with H = 1 unless head is None (all heads).

    Scores and weights stored as QKV are computed for these alone.
    """
    part = stored_head(trace, site, row, head)
    return part.record(site) if isinstance(part, QKV) else part


def stored_head(trace: Trace, site: Site, row: int, head: int | None) -> AttentionRecord | QKV:
    """One text and head of a stored record, without computing. head: as in `one_head`."""
    part, rows = stored_at(trace, site), slice(row, row + 1)
    heads = slice(None) if head is None else slice(head, head + 1)
    mask = part.mask
    if mask is not None and mask.dim() == 4 and mask.shape[0] > 1:
        mask = mask[rows]
    if isinstance(part, QKV):
        shared = heads if head is None else _keys_of(part, head)
        return QKV(part.q[rows, heads], part.k[rows, shared], part.v[rows, shared], mask)
    vectors = (part.q, part.k, part.v)
    q, k, v = (None if x is None else x[rows, heads] for x in vectors)
    return AttentionRecord(
        site=site,
        scores=part.scores[rows, heads],
        pattern=part.pattern[rows, heads],
        mask=mask,
        q=q,
        k=k,
        v=v,
    )


def _keys_of(part: QKV, head: int) -> slice:
    """The keys and values that a head reads."""
    at = head * part.k.shape[1] // part.q.shape[1]
    return slice(at, at + 1)


def head_csv(
    run: Run | Batch, site: SiteLike, head: Head, *, stage: str = "weights", row: int = 0
) -> str:
    """One line per query, one column per key; the first line and the first column name the tokens.

    stage: "weights", "masked" (scores) or "scores"; cells that the mask hides are empty, but for
    "scores". Numbers are the trace's float32, with as many digits as tell them apart; the weights
    of a head that is switched off are 0.
    A token is written `[place] label`: so every name is one of a kind, and none begins with =, +,
    - or @, which a spreadsheet would take for a formula and run.
    Raises ValueError, listing what is allowed, for an unknown site, head, stage or row.
    """
    check_choice("stage", stage, STAGES)
    view = head_view(run, site, head, row)
    values = view.weights if stage == "weights" else view.scores
    visible = np.ones_like(view.allowed) if stage == "scores" else view.allowed
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["query \\ key", *_names(view.key_labels)])
    for name, numbers, drawn in zip(_names(view.query_labels), values, visible, strict=True):
        cells = [str(number) if may else "" for number, may in zip(numbers, drawn, strict=True)]
        writer.writerow([name, *cells])
    return text.getvalue()


def _names(labels: Sequence[str]) -> list[str]:
    return [f"[{place}] {label}" for place, label in enumerate(labels)]

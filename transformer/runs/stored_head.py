"""One head of a trace, of which no more is computed than was asked for."""

from __future__ import annotations

import torch

from transformer.model.sites import Site
from transformer.model.trace import AttentionRecord, Trace
from transformer.runs.compact_trace import Heads, part_at


def n_heads_at(trace: Trace, site: Site) -> int:
    """How many heads were recorded at a site."""
    part = part_at(trace, site)
    return (part.queries if isinstance(part, Heads) else part.scores).shape[1]


@torch.no_grad()
def one_head(trace: Trace, site: Site, row: int, head: int | None) -> AttentionRecord:
    """One sentence's record with B = 1, and with H = 1 unless all heads (None) are asked for.

    What is stored as Heads is recomputed for these alone.
    """
    part = stored_head(trace, site, row, head)
    return part.record(site) if isinstance(part, Heads) else part


def stored_head(trace: Trace, site: Site, row: int, head: int | None) -> AttentionRecord | Heads:
    """The same as it is stored: nothing is computed."""
    part, rows = part_at(trace, site), slice(row, row + 1)
    heads = slice(None) if head is None else slice(head, head + 1)
    mask = part.mask
    if mask is not None and mask.dim() == 4 and mask.shape[0] > 1:
        mask = mask[rows]
    if isinstance(part, Heads):
        shared = heads if head is None else _keys_of(part, head)
        keys, values = part.keys[rows, shared], part.values[rows, shared]
        return Heads(part.queries[rows, heads], keys, values, mask)
    vectors = (part.queries, part.keys, part.values)
    q, k, v = (None if x is None else x[rows, heads] for x in vectors)
    return AttentionRecord(
        site=site,
        scores=part.scores[rows, heads],
        weights=part.weights[rows, heads],
        mask=mask,
        queries=q,
        keys=k,
        values=v,
    )


def _keys_of(part: Heads, head: int) -> slice:
    """Which keys and values a head reads."""
    at = head * part.keys.shape[1] // part.queries.shape[1]
    return slice(at, at + 1)

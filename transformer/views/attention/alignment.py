"""Cross-attention as lines between words: which source token each target token read most.

`layout.meta` carries, for a page's own script, source_labels and target_labels as plain, unescaped
text, and links (one a line) as [target position, source position, weight].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.checks import check_choice
from transformer.messages import mark, say
from transformer.runs.batch import Batch
from transformer.runs.head_data import Head, array, check_head, check_row, records_of, switched_off
from transformer.runs.run import Run
from transformer.views.attention.lines import Column, columns_figure, drawn_lines, named, reading
from transformer.views.parameters import Choice, HeadOrMean

BY = ("written", "read")
_OPACITIES = 0.2, 1  # of weights 0 and 1
COLUMN_PX = 113  # two columns of this width leave room for the lines on a phone

_WORDS = {  # the subtitle, and why a target token has no line
    "written": (
        "lines: read most by the query that predicted a token",
        mark("nothing predicted it"),
    ),
    "read": (
        "lines: read most by the target token's own query",
        mark("written last, not read again"),
    ),
}


class Link(NamedTuple):
    """The weight with which a target token reads a source token; positions count from 0."""

    target: int
    source: int
    weight: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class AlignmentLinks:
    """The lines between a source and a target, and the weights that they come from.

    weights: (Tt, Ts) float32, row t those that belong to target token t; NaN where it has none.
    links: the most-read source token of each target token that has weights; of equals the first;
    none where all the heads are switched off, whose weights are 0 here.
    """

    source_labels: tuple[str, ...]
    target_labels: tuple[str, ...]
    weights: NDArray[np.float32]
    links: tuple[Link, ...]


def alignment_links(
    run: Run | Batch,
    layer: int | str,
    head: int | str,
    *,
    row: int = 0,
    by: str = "written",
) -> AlignmentLinks:
    """What `alignment` draws, as plain data; the same arguments and errors. Padding is left out."""
    check_choice("by", by, BY)
    queries = _weights(run, layer, head, row)
    if isinstance(run, Run):
        source, target = run.source_labels, run.labels
    else:  # without padding, which is on the right
        source, target = (
            run.queries(stack, row)[: int(run.is_token(stack)[row].sum())]
            for stack in ("encoder", "decoder")
        )
    shift = 1 if by == "written" else 0
    queries = queries[: len(target) - shift, : len(source)]
    weights = np.full((len(target), len(source)), np.nan, dtype=np.float32)
    weights[shift : shift + len(queries)] = queries
    reads = enumerate(queries if queries.any() else ())
    best = {position + shift: int(read.argmax()) for position, read in reads}
    return AlignmentLinks(
        source_labels=source,
        target_labels=target,
        weights=weights,
        links=tuple(Link(t, s, float(weights[t, s])) for t, s in best.items()),
    )


def _weights(run: Run | Batch, layer: Any, head: Any, row: Any) -> NDArray[np.float32]:
    """(Tq, Tk) of one text, averaged over what is "mean" and not switched off; 0 where all is.
    Raises ValueError as `alignment`."""
    records = records_of(run, "decoder", "cross")
    check_row(run, row)
    check_head(head, records[0].pattern.shape[1])
    check_head(layer, len(records), "layer")
    chosen = records if layer == "mean" else [records[layer]]
    weights = np.stack([array(record.pattern[row]) for record in chosen])  # (L, H, Tq, Tk)
    on = np.ones(weights.shape[:2], dtype=np.bool_)
    for place, record in enumerate(chosen):
        on[place, list(switched_off(run, record.site))] = False
    if head != "mean":
        weights, on = weights[:, [head]], on[:, [head]]
    kept = weights[on] if on.any() else 0 * weights[:1, 0]
    return np.asarray(kept.mean(axis=0), dtype=np.float32)


_WHEN = Choice(
    title=mark("When the word is"),
    options={"written": mark("written"), "read": mark("read")},
    default="written",
    link="by",
)


def alignment(
    run: Run | Batch,
    layer: Annotated[Head, HeadOrMean(title="Layer", default="mean")],
    head: Annotated[Head, HeadOrMean(title="Head", default="mean")],
    *,
    row: int = 0,
    by: Annotated[str, _WHEN] = "written",
) -> go.Figure:
    """Source tokens left, target tokens right, and a line from each target token to the source
    token that it read most, wider and stronger the larger the weight (fixed scale, 0 to 1).

    layer, head: an index, or "mean" for the average over all of them; row: which text of a Batch.
    by: whose reading a token's line shows; a query at one position predicts the token at the next.
      "written": that of the query one position before, which predicted the token. The start token
        has no line, since nothing predicted it; the last written one (the end token) has one.
      "read": that of the token's own query, which predicts the next token. The start token has a
        line; a last token that the network did not read again has none.
    Raises ValueError, listing what is allowed, for a run without cross-attention and for an
    unknown layer, head, row or by.
    """
    found = alignment_links(run, layer, head, row=row, by=by)
    layers = "mean of all layers" if layer == "mean" else say("layer {layer}", layer=layer)
    heads = "mean of heads" if head == "mean" else say("head {head}", head=head)
    links = [(link.source, link.target, link.weight) for link in found.links]
    return columns_figure(
        f"Alignment: {layers}, {heads}",
        _WORDS[by][0],
        say("width and opacity: weight, 0 to 1"),
        _columns(found, by),
        drawn_lines(links, (1, 6), _OPACITIES),
        column_px=COLUMN_PX,
        below=72,
        meta={
            "source_labels": list(found.source_labels),
            "target_labels": list(found.target_labels),
            "links": [list(link) for link in found.links],
        },
    )


def _columns(found: AlignmentLinks, by: str) -> tuple[Column, Column]:
    read = [link.source for link in found.links]
    linked = {link.target for link in found.links}
    of_sources = [
        say(
            "{token}<br>read most by {count} target tokens",
            token=named("source", position, label),
            count=read.count(position),
        )
        for position, label in enumerate(found.source_labels)
    ]
    of_targets = [
        f"{named('target', position, label)}<br>"
        + (_reading(found, position, by) if position in linked else say(_why_not(found, by)))
        for position, label in enumerate(found.target_labels)
    ]
    return (
        Column(say("source"), found.source_labels, of_sources, set(read)),
        Column(say("target"), found.target_labels, of_targets, linked),
    )


def _why_not(found: AlignmentLinks, by: str) -> str:
    """Why a target token has no line."""
    return _WORDS[by][1] if found.links else mark("switched off")


def _reading(found: AlignmentLinks, position: int, by: str) -> str:
    """The query with the two tokens that it reads most."""
    at = position - 1 if by == "written" else position
    query, weights = named("query", at, found.target_labels[at]), found.weights[position]
    best = np.argsort(-weights, kind="stable")[:2]
    sources = ((named("source", key, found.source_labels[key]), weights[key]) for key in best)
    return "<br>".join(reading(query, source, weight) for source, weight in sources)

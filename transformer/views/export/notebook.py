"""Runs and batches as HTML in a notebook.

A batch gives the tokens of each text with its padding. A run gives two parts: its tokens, shaded by
probability, as plain HTML without any script; and all heads small with one of them large, in an
isolated frame with its own small script. Nothing is fetched, and the frame may not reach the
notebook around it.
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from transformer.checks import check_choice, check_whole
from transformer.runs.batch import Batch
from transformer.runs.head_data import (
    array,
    n_heads_at,
    records_of,
    switched_off,
    weights_read,
)
from transformer.runs.run import Run
from transformer.views.drawing.style import HOVER_CHARACTERS, shorten
from transformer.views.export import html as pages
from transformer.views.export import recorded
from transformer.views.export.bundle import bundle, read_module
from transformer.views.export.packing import Pack

MAX_CELLS = 150_000  # of all heads together: a byte each in the notebook's file
MAX_TOKENS = 500  # whose text is shown
HEIGHT = 470  # px of the frame
_TEMPLATE = "views/export/static/notebook.html"
SCRIPT = "views/export/static/notebook.js"
_TOKEN = (
    "display:inline-block;padding:0 3px;margin:1px;border-bottom:2px solid rgba(128,128,128,.5);"
    "border-radius:3px;white-space:pre;unicode-bidi:isolate;"
)


def html(item: Run | Batch) -> str:
    """A run or a batch for a notebook's cell, under 300 KB however long the text."""
    return _run(item) if isinstance(item, Run) else _batch(item)


def embedded(item: Run | Batch, height: int, theme: str | None = None) -> str:
    """The page of a run or a batch in a frame: about 1.2 MB and what the run takes."""
    height = check_whole("height", height, 100, 10_000)
    if theme is not None:
        check_choice("theme", theme, ("light", "dark"))
    page = pages.page(item)
    page = (
        page
        if theme is None
        else page.replace("<html", f'<html data-theme="{theme}" style="color-scheme:{theme}"', 1)
    )
    return (
        f'<iframe title="{escape(repr(item))}" sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:{height}px;border:0" srcdoc="{escape(page)}"></iframe>'
    )


def _batch(batch: Batch) -> str:
    """Its tokens, one line per text; padding is faint."""
    stacks = ("encoder", "decoder") if batch.target_labels else (batch.trace.sites[-1].stack,)
    lines, left = [], MAX_TOKENS
    for row in range(len(batch)):
        for stack in stacks:
            labels = batch.queries(stack, row)[:left]
            left -= len(labels)
            are_tokens = batch.is_token(stack)[row].tolist()
            tokens = (
                _token(label) if is_token else f'<span style="opacity:.3">{_token(label)}</span>'
                for label, is_token in zip(labels, are_tokens, strict=False)
            )
            lines.append(f"<p>{''.join(tokens)}</p>")
    return f"<div><p>{escape(repr(batch))}</p>{''.join(lines)}</div>"


def _run(run: Run) -> str:
    title = f"{escape(run.model)}: {escape(recorded.summary(run))}"
    frame = (
        f'<iframe title="Attention of every head" sandbox="allow-scripts" height="{HEIGHT}" '
        f'style="width:100%;border:0;background:#fff" srcdoc="{escape(_frame(run))}"></iframe>'
    )
    probabilities: list[float | None] = [None] * run.n_prompt
    probabilities += [step.chosen.probability for step in run.steps]
    last = list(zip(run.labels, probabilities, strict=True))[-MAX_TOKENS:]
    left_out = len(run.labels) - len(last)
    tokens = f"… {left_out} tokens before … " if left_out else ""
    tokens += "".join(_token(label, probability) for label, probability in last)
    source = "".join(_token(label) for label in run.source_labels)
    read = f"<p>{source}</p>" if source else ""
    return f"<div><p>{title}</p>{read}<p>{tokens}</p>{frame}</div>"


def _token(label: str, probability: float | None = None) -> str:
    """Given: underlined only. Generated: the stronger the shade, the likelier."""
    text = escape(shorten(label, HOVER_CHARACTERS))
    if probability is None:
        return f'<span style="{_TOKEN}">{text}</span>'
    shade = f"background:rgba(10,92,173,{0.04 + 0.4 * probability:.2f})"
    return f'<span style="{_TOKEN}{shade}" title="probability {probability:.4f}">{text}</span>'


def _frame(run: Run) -> str:
    """The document inside the frame."""
    pack = Pack()
    count = sum(n_heads_at(run.trace, site) for site in run.trace.sites)
    side = int((MAX_CELLS / max(1, count)) ** 0.5)
    kinds = [_kind(run, stack, kind, side, pack) for stack, kind in run.trace.kinds()]
    data = pack.text({"kinds": kinds})
    template = read_module(_TEMPLATE).replace("/*theme*/", read_module("web/theme.css"))
    before, between, after = template.replace("/*script*/", "/*data*/").split("/*data*/")
    return before + data + between + bundle(SCRIPT) + after


def _kind(run: Run, stack: str, kind: str, side: int, pack: Pack) -> dict[str, Any]:
    """The last `side` queries and keys of one kind of attention.

    A weight is sent as in `grid.Atlas`, one pixel per cell: right to within 0.004.
    """
    records = records_of(run, stack, kind)
    queries, keys = run.queries(stack), run.keys(stack, kind)
    read = [weights_read(run, record.site, record.pattern)[0] for record in records]
    weights = np.stack([array(layer) for layer in read])[..., -side:, -side:]
    allowed = np.stack([record.allowed[0].cpu().numpy() for record in records])
    return {
        "stack": stack,
        "kind": kind,
        "off": [list(switched_off(run, record.site)) for record in records],
        "query_labels": list(queries[-side:]),
        "key_labels": list(keys[-side:]),
        "queries_before": max(0, len(queries) - side),
        "keys_before": max(0, len(keys) - side),
        "pixels": pack.array(np.rint(255 * np.sqrt(weights)).astype(np.uint8)),
        "masked": pack.array(1 - allowed[:, -side:, -side:].astype(np.uint8)),
    }

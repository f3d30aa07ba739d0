"""How much each token of a text surprised the network: -log2 of the probability that the network
gave it.

`layout.meta`: labels (plain, unescaped text) and probabilities of the traced tokens, `given` (how
many of them were), `first` (the position of the first one in the whole text), and the summary of
`summarise`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer.messages import numeral, say, say_list, say_n
from transformer.model.summary import last_stack
from transformer.runs.run import Run
from transformer.views.drawing import style

TICK_CHARACTERS = 10
HATCH = "/"  # a given token's bar


def why_none(run: Run) -> str | None:
    """One sentence for a run in which no token has a surprisal; None for all others."""
    if run.config.family == "encoder":
        return say(
            "an encoder reads the whole text at once and predicts no next token, so no token "
            "can surprise it"
        )
    if run.surprisal is None:
        return (
            "this run has no surprisal yet, which takes the network; needed: the run "
            "that transformer.with_lens(model, run) gives"
        )
    if all(bits is None for bits in run.surprisal):
        return say("the text is too short: nothing comes before its only token")
    return None


def summarise(run: Run) -> dict[str, Any]:
    """The surprisal of a whole text. Raises ValueError for a run without any.

    mean_bits: over the tokens that have a surprisal. perplexity: 2 to that power.
    """
    every = [bits for bits in surprisal_of(run) if bits is not None]
    mean = sum(every) / len(every)
    return {"mean_bits": mean, "perplexity": 2**mean, "n_tokens": len(every)}


def surprisal(run: Run) -> go.Figure:
    """One bar per token, in bits; hatched: given, plain: generated. y is NaN for the first token.

    An encoder-decoder's are those of the decoder's text. Raises ValueError for a run without any.
    """
    summary = summarise(run)
    labels = run.queries(last_stack(run.config))
    each = surprisal_of(run)
    bits = np.array([math.nan if b is None else b for b in each], dtype=np.float64)
    are_given = [position < _n_given(run) for position in range(len(labels))]
    colours = style.LIGHT
    return style.figure(
        go.Bar(
            x=list(range(len(labels))),
            y=bits,
            name=say("surprisal (bits)"),
            customdata=[_hover(*of) for of in zip(labels, each, are_given, strict=True)],
            hovertemplate="%{customdata}<extra></extra>",
            marker={
                "color": [colours.muted if is_given else colours.accent for is_given in are_given],
                "pattern": {
                    "shape": [HATCH if is_given else "" for is_given in are_given],
                    "fillmode": "replace", "size": 6, "solidity": 0.45,
                },
            },
        ),
        say("Surprisal of each token, −log₂ p"),
        f"{in_words(summary)}<br>hatched: given; plain: generated",
        margin={"l": 60, "r": 16, "t": 92, "b": 110},
        width=80 + style.COLUMN_PX * len(labels),
        height=440,
        dragmode=False,
        bargap=0.2,
        showlegend=False,
        hovermode="x",
        xaxis=style.named_axis(
            say("token"), [style.label(text, TICK_CHARACTERS) for text in labels],
            tickangle=-90, fixedrange=True,
        ),
        yaxis=style.axis(
            say("surprisal (bits)"), showgrid=True, rangemode="tozero", fixedrange=True,
        ),
        shapes=[{
            "type": "line", "xref": "paper", "x0": 0, "x1": 1,
            "y0": summary["mean_bits"], "y1": summary["mean_bits"],
            "line": {"color": style.LIGHT.text, "width": 1.5, "dash": "dash"},
            "label": {
                "text": say("mean"), "textposition": "end", "font": {"size": style.FONT_SIZE},
                "yanchor": "bottom",
            },
        }],
        meta={
            "labels": list(labels),
            "probabilities": [None if b is None else 2.0**-b for b in each],
            "given": _n_given(run),
            "colours": {"given": colours.muted, "generated": colours.accent},
            "first": run.trace_start,
            "summary": summary,
        },
    )  # fmt: skip


def surprisal_of(run: Run) -> Sequence[float | None]:
    """The run's surprisal. Raises ValueError for a run without any."""
    reason = why_none(run)
    if run.surprisal is None or reason is not None:
        raise ValueError(reason)
    return run.surprisal


def _n_given(run: Run) -> int:
    """How many of the traced tokens were given."""
    return max(0, min(run.n_prompt - run.trace_start, len(surprisal_of(run))))


def in_words(summary: dict[str, Any]) -> str:
    """The summary as a sentence without its full stop."""
    return say_n(
        "{mean_bits} bits; perplexity {perplexity}, of {n} token",
        "mean {mean_bits} bits per token; perplexity {perplexity}, over {n} tokens",
        summary["n_tokens"],
        mean_bits=numeral(summary["mean_bits"], ".2f"),
        perplexity=numeral(summary["perplexity"], ".2f"),
    )


def _hover(label: str, bits: float | None, is_given: bool) -> str:
    name = style.hover(label)
    if bits is None:
        return f"{name}<br>{say('nothing predicted it')}"
    how = say("given") if is_given else say("generated")
    return (
        f"{say_list([name, how])}<br>{numeral(bits, '.3f')} {say('bits')}<br>"
        f"p = {numeral(2.0**-bits, '.4g')}"
    )

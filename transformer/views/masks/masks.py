"""Who may read whom: padding, causal and combined masks, the batch that is padded, and the weights
that the same scores would give without a mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import plotly.graph_objects as go

from transformer.analysis.mask_removal import (
    BoolArray,
    Removal,
    masks_of,
    masks_used,
    weight_on_padding,
    without_mask,
)
from transformer.checks import check_choice
from transformer.messages import mark, numeral, say, say_list, say_n
from transformer.model.sites import Site
from transformer.network_words import attention_name
from transformer.runs.batch import Batch
from transformer.runs.head_data import Head, SiteLike
from transformer.views.attention.heatmap import weight_colours
from transformer.views.declaration import Answer, View, picture
from transformer.views.drawing import style
from transformer.views.drawing.matrix import TEXT_LIMIT, cell_hover, hatching, matrix_figure
from transformer.views.parameters import HEAD, KIND, ROW, SITE, STACK, Choice, Int, Text

MASKS = ("padding", "causal", "combined")
_WHICH = Choice(
    options={"causal": "causal", "padding": "padding", "combined": "both"}, use="request"
)
WHOLE_STEPS = 1, 2, 5, 10, 20, 50, 100, 10**6  # of labelled positions; Plotly's own can be halves

SCALE_END = 4  # of which a cell is 1, on the scale of weights
_TITLES = {
    "padding": "Padding mask: no one reads keys that are padding",
    "causal": "Causal mask: no one reads keys that come later",
    "window": "Window: no one reads keys that are too far away",
    "both": "Causal mask and window: no one reads keys that come later or are too far away",
    "combined": "Combined mask: what both masks allow",
}


def mask_heatmap(
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    allowed: BoolArray,
    title: str,
) -> go.Figure:
    """A mask as cells: filled = may be read, hatched background = may not.

    allowed: (Tq, Tk) bool, True = may attend; z is 1 where allowed and NaN elsewhere. title: fixed
    text, never a token's. Raises ValueError if the labels do not fit the mask.
    """
    if allowed.shape != (len(query_labels), len(key_labels)):
        raise ValueError(
            f"a mask needs one label for each query and key; got {len(query_labels)} and "
            f"{len(key_labels)} labels for a mask of {allowed.shape[0]} x "
            f"{allowed.shape[1]}"
        )
    ending = f"<br>{say('allowed')} %{{customdata}}<extra></extra>"
    cells = _filled(
        allowed,
        hoverongaps=True,
        xgap=1 if len(key_labels) <= TEXT_LIMIT else 0,
        ygap=1 if len(query_labels) <= TEXT_LIMIT else 0,
        **cell_hover(query_labels, key_labels, ending, allowed.astype(np.uint8)),
    )
    says = "filled: may be read; hatched: hidden"
    return matrix_figure(cells, title, says, query_labels, key_labels, meta={})


def _filled(where: BoolArray, **more: Any) -> go.Heatmap:
    """Cells of one colour where something is, NaN elsewhere."""
    z = np.where(where, np.float32(1), np.float32(np.nan))
    return go.Heatmap(
        z=z, colorscale=style.WEIGHTS, zmin=0, zmax=SCALE_END, showscale=False, **more
    )


def mask_figure(
    batch: Batch,
    row: Annotated[int, ROW],
    which: Annotated[str, replace(_WHICH, default="combined")],
    *,
    stack: Annotated[str | None, STACK] = None,
    kind: Annotated[str, KIND] = "self",
    layer: Annotated[int, Int(title="Layer", use="request")] = 0,
) -> go.Figure:
    """One of the masks of one sentence. Raises ValueError for an unknown row, mask or attention."""
    check_choice("which", which, MASKS)
    stack = stack or batch.trace.kinds()[0][0]
    allowed = masks_of(batch, row, stack, kind, layer)[which]
    queries, keys = batch.queries(stack, row), batch.keys(stack, kind, row)
    return mask_heatmap(
        queries, keys, allowed, _TITLES[_named(batch, Site(stack, layer, kind), which)]
    )


def _named(batch: Batch, site: Site, which: str) -> str:
    """A mask's name: positions hide the future, what is outside a window, or both."""
    slides = site.kind == "self" and batch.config.window_of(site.layer) is not None
    if which != "causal" or not slides:
        return which
    return "window" if site.stack == "encoder" else "both"


def padded_batch(batch: Batch, *, stack: Annotated[str | None, STACK] = None) -> go.Figure:
    """What a stack (by default the first) read, sentence x position: filled = a token, hatched =
    padding.

    z is 1 for tokens, NaN for padding. Raises ValueError for a stack that the batch does not have.
    """
    stacks = tuple(dict.fromkeys(name for name, _ in batch.trace.kinds()))
    stack = stack or stacks[0]
    check_choice("stack", stack, stacks)
    real = batch.is_token(stack).cpu().numpy()
    n_rows, length = real.shape
    tokens = _tokens(batch, stack, real)
    cells = _filled(real, xgap=2, ygap=4, customdata=real.astype(np.uint8), **tokens)
    return style.figure(
        cells,
        f"Padded batch: {n_rows} sentences, each {length} tokens long",
        "filled: a token; hatched: padding",
        shapes=[hatching(n_rows, length)],
        xaxis=style.axis(
            say("position"), range=[-0.5, length - 0.5],
            tick0=0, dtick=next(step for step in WHOLE_STEPS if length <= 20 * step),
        ),
        yaxis=style.axis(
            say("sentence") if n_rows > 1 else "", range=[n_rows - 0.5, -0.5],
            tickmode="array", tickvals=list(range(n_rows)),
            ticktext=[str(row) for row in range(n_rows)],
        ),
    )  # fmt: skip


def _tokens(batch: Batch, stack: str, real: BoolArray) -> dict[str, object]:
    """The padded batch's tokens, in its cells and in the hover text, as far as there is room."""
    n_rows, length = real.shape
    text = [
        [style.label(token, 8) if real[row, place] else "" for place, token in enumerate(labels)]
        for row, labels in enumerate(batch.queries(stack, row) for row in range(n_rows))
    ]
    small = length <= TEXT_LIMIT
    where = say_list([f"{say('sentence')} %{{y:d}}", f"{say('position')} %{{x:d}}"])
    return {
        "text": text if small else None,
        "texttemplate": "%{text}" if small else None,
        "textfont": {"size": style.FONT_SIZE, "color": style.LIGHT.text},
        "hovertemplate": (say("{title}: {part}", title=where, part="%{text}") if small else where)
        + f"<br>{say('token')} %{{customdata}}<extra></extra>",
    }


_FREED_TO = {
    "padding": "padding",
    "causal": "the future",
    "window": "keys outside the window",
    "both": "the future and keys outside the window",
}
_MASK_NAMES = {"window": "window", "both": "causal mask"}


def mask_removed(
    batch: Batch,
    row: int,
    site: SiteLike,
    head: Head,
    which: str,
) -> go.Figure:
    """The weights of one head of one sentence without its padding or its causal mask.

    Cells that are still forbidden are NaN; the hover label has the network's own weight too. Only
    this head's softmax is computed again: in a network without the mask, the inputs of later layers
    would differ too. Raises ValueError as `without_mask` does.
    """
    removal = without_mask(batch, row, site, head, which)
    view = removal.view
    numbers = "%{customdata[0]:.4f} → %{customdata[1]:.4f}"
    ending = f"<br>{say('weight')} {numbers}<extra></extra>"
    both = np.stack([removal.real, removal.weights], axis=-1).astype(np.float32)
    cells = go.Heatmap(
        z=np.where(view.allowed | removal.freed, removal.weights, np.nan).astype(np.float32),
        hoverongaps=True,
        **weight_colours("linear"),
        **cell_hover(view.query_labels, view.key_labels, ending, both),
    )
    site, share = view.site, removal.mean_freed_weight
    whose = f"{attention_name(site.stack, site.kind)}, layer {site.layer}, head {view.head}"
    meta = {"site": str(site), "head": view.head, "which": which, "row": row}
    name = _named(batch, site, which)
    return matrix_figure(
        cells,
        f"Weights without the {_MASK_NAMES.get(name, f'{name} mask')}: {whose}",
        f"{100 * share:.1f} % of the weight would go to {_FREED_TO[name]}",
        view.query_labels,
        view.key_labels,
        meta=meta | {"share": share},
    )


def sentence_of(removal: Removal) -> str:
    """In words and with its number, what leaving the mask out would change for text queries."""
    count, weight = int(removal.text.sum()), removal.mean_freed_weight
    share = f"{numeral(100 * weight, '.1f')} %"
    if not removal.freed.any():
        return say("Here the mask hides nothing.")
    if removal.which == "padding" and not weight and _is_causal(removal.view.site):
        return _hidden_already()
    return say_n(
        "Without the mask, {share} of the weight of the {n} query that is text would go to what it "
        "hides.",
        "Without the mask, {share} of the weight would go to what it hides, on average over the "
        "{n} queries that are text.",
        count,
        share=share,
    )


def _is_causal(site: Site) -> bool:
    return (site.stack, site.kind) == ("decoder", "self")


def _hidden_already() -> str:
    """Why a decoder's text never reads padding on the right."""
    return say(
        "Padding stands on the right, where the causal mask hides it already; in an encoder, "
        "such as the translator's, this mask alone keeps the text from reading it."
    )


def answer_removal(
    item: Batch,
    *,
    row: Annotated[int, ROW],
    site: Annotated[str, SITE],
    head: Annotated[Head, HEAD],
    which: Annotated[str | None, _WHICH] = None,
) -> Answer:
    """One head's weights without one of its masks, what changes, and a sentence with the number.

    which: one of the masks that the network used in this attention, returned as `acting`; for
    another, or None, the last of them. Without any mask there is only the weight on padding.
    """
    acting = masks_used(item, item.trace[site].site)
    if (which == "padding" and which not in acting) or not acting:
        share = weight_on_padding(item, row, site, head)
        percent = f"{numeral(100 * share, '.1f')} %"
        said = say("The padding mask is off: {share} of the weight goes to padding.", share=percent)
        at = item.trace[site].site
        if not share and _is_causal(at) and not item.is_token(at.stack)[row].all():
            said = _hidden_already()
        return {"acting": list(acting), "which": None, "share": share, "sentence": said}
    chosen = which if which in acting else acting[-1]
    removal = without_mask(item, row, site, head, chosen)
    return {
        "figure": mask_removed(item, row, site, head, chosen),
        "acting": list(acting),
        "which": chosen,
        "share": removal.mean_freed_weight,
        "sentence": sentence_of(removal),
    }


VIEW = View(
    name="masks",
    tab=mark("Masks"),
    order=210,
    title=mark("Masks"),
    help=(
        "Which keys each query may read: padding hides filler, the causal mask hides the future."
    ),
    parameters=(
        Int(name="row", default=0, use="place", link="row"),
        Text(name="mask_site", use="place", link="mask_site"),
        Int(name="mask_head", default=0, use="place", link="mask_head"),
        Choice(
            name="without",
            title="Mask that is taken away",
            options={"causal": "causal", "padding": "padding"},
            optional=True,
            use="place",
            link="without",
        ),
    ),
    pictures=(
        picture(
            padded_batch,
            name="padded",
            title="Padded batch",
            help="Sentences of different length, filled up with padding to one length.",
        ),
        picture(
            mask_figure,
            name="mask",
            title=mark("Masks"),
            help="Which keys each query may read, by each mask and by both.",
        ),
        picture(
            answer_removal,
            figure=mask_removed,
            title="A mask taken away",
            help="The weights that the same scores would give without one mask.",
        ),
    ),
)

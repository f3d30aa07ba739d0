"""What one mask does: the weights that the same scores would give without it."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from transformer.analysis.mask_removal import Removal, acting_masks, without_mask
from transformer.checks import check_choice
from transformer.messages import mark, numeral, say
from transformer.network_words import attention_name
from transformer.runs.head_data import SiteLike
from transformer.runs.run import Batch
from transformer.views.attention.heatmap import weight_colours
from transformer.views.drawing import style
from transformer.views.drawing.matrix import cell_hover, matrix_figure

SHOWN = ("weights", "difference")
_TITLES = {
    ("padding", "weights"): mark("Weights without the padding mask: {whose}"),
    ("causal", "weights"): mark("Weights without the causal mask: {whose}"),
    ("padding", "difference"): mark(
        "What changes in the weights without the padding mask: {whose}"
    ),
    ("causal", "difference"): mark("What changes in the weights without the causal mask: {whose}"),
}
_FREED = {
    "padding": mark("{mean_freed_weight} % of the weight would go to padding"),
    "causal": mark("{mean_freed_weight} % of the weight would go to the future"),
}
_NONE = {
    "padding": mark("Here the padding mask hides nothing: no key of this sentence is padding."),
    "causal": mark("Here the causal mask hides nothing: no key lies in the future."),
}
_SENTENCES = {
    "padding": mark(
        "Without the padding mask, {share} of the weight would go to padding, on average over the "
        "{count} queries that are text."
    ),
    "causal": mark(
        "Without the causal mask, {share} of the weight would go to the future, on average over "
        "the {count} queries that are text."
    ),
}


def mask_removed(
    batch: Batch,
    row: int,
    site: SiteLike,
    head: int | str,
    which: str,
    *,
    show: str = "weights",
    dark: bool = False,
) -> go.Figure:
    """One head of one sentence without its padding or its causal mask.

    show: "weights" (colours fixed from 0 to 1, still forbidden cells NaN) or "difference" (weights
    without the mask - the network's own). Hover tells both. Only this head's softmax is done anew:
    in a network without the mask, the inputs of later layers would differ too.
    Raises ValueError as `without_mask` does, and for an unknown show.
    """
    check_choice("show", show, SHOWN)
    found = without_mask(batch, row, site, head, which)
    view, change = found.view, found.weights - found.real
    if show == "weights":
        values, colours = found.weights, weight_colours("linear")
    else:
        bar = style.colorbar(say("change of the weight"))
        values, colours = change, style.signed(style.bound_of(change)) | {"colorbar": bar}
    ending = say(
        "<br>without the mask %{customdata[0]:.4f}<br>with it %{customdata[1]:.4f}<extra></extra>"
    )
    both = np.stack([found.weights, found.real], axis=-1).astype(np.float32)
    cells = go.Heatmap(
        z=np.where(view.allowed | found.freed, values, np.nan).astype(np.float32),
        hoverongaps=True,
        **colours,
        **cell_hover(view.query_labels, view.key_labels, ending, both),
    )
    site, share = view.site, found.mean_freed_weight
    whose = say(
        "{attention}, layer {layer}, head {head}",
        attention=attention_name(site.stack, site.kind),
        layer=site.layer,
        head=view.head,
    )
    meta = {"site": str(site), "head": view.head, "which": which, "show": show, "row": row}
    return matrix_figure(
        cells,
        say(_TITLES[which, show], whose=whose),
        say(_FREED[which], mean_freed_weight=numeral(100 * share, ".1f")),
        view.query_labels,
        view.key_labels,
        dark=dark,
        meta=meta | {"share": share},
    )


def sentence_of(found: Removal) -> str:
    """In words and with its number, what leaving the mask out would change for text queries."""
    site, count = found.view.site, int(found.text.sum())
    share = f"{numeral(100 * found.mean_freed_weight, '.1f')} %"
    if not found.freed.any():
        return say(_NONE[found.which])
    start = say(_SENTENCES[found.which], share=share, count=count)
    if found.which == "padding" and "causal" in acting_masks(site):
        right = say(
            "Padding stands on the right, where the causal mask already hides it from the text; "
            "only queries that are padding themselves change."
        )
        return f"{start} {right}"
    return start

"""What one mask does: the weights that the same scores would give without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.figures import style
from transformer.figures.attention import TEXT_LIMIT, weight_colours
from transformer.figures.data import HeadView, SiteLike, check_choice, head_view
from transformer.figures.masks import masks_of
from transformer.figures.matrix import matrix_layout, reading_texts
from transformer.inference.run import Batch
from transformer.model.trace import Site

SHOWN = ("weights", "difference")
_FREED = {"padding": "padding", "causal": "the future"}
_NONE = {"padding": "no key of this sentence is padding", "causal": "no key lies in the future"}

Doubles = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Removal:
    """One head of one sentence, with one of its masks left out of the softmax.

    weights: (Tq, Tk) float64 without the mask, each row sums to 1; real: (Tq, Tk), the network's
    own. freed: (Tq, Tk) bool, the cells that only this mask had hidden. text: (Tq,) bool, which
    queries are text and not padding.
    """

    which: str
    view: HeadView
    weights: Doubles
    freed: NDArray[np.bool_]
    text: NDArray[np.bool_]

    @property
    def real(self) -> Doubles:
        """(Tq, Tk): the weights that the network used."""
        return self.view.weights.astype(np.float64)

    @property
    def freed_weight(self) -> Doubles:
        """(Tq,): how much of each query's weight would go to the freed keys."""
        return np.where(self.freed, self.weights, 0).sum(axis=1)

    @property
    def mean_freed_weight(self) -> float:
        """The same on average over the queries that are text: a share from 0 to 1."""
        return float(self.freed_weight[self.text].mean())


def acting_masks(site: Site) -> tuple[str, ...]:
    """Which masks act in this attention: the causal one in a decoder's self-attention alone."""
    causal = (site.stack, site.kind) == ("decoder", "self")
    return ("padding", "causal") if causal else ("padding",)


def without_mask(batch: Batch, row: int, site: SiteLike, head: int | str, which: str) -> Removal:
    """The weights that this head's own scores give when one mask is left out.

    row: which sentence; which: "padding" or "causal", one that acts in this attention. "mean" as
    head averages the heads' weights. The scores stay as the network computed them.
    Raises ValueError for an unknown row, site or head and for a mask that does not act here.
    """
    view = head_view(batch, site, head, row)
    check_choice("which", which, acting_masks(view.site))
    masks = masks_of(batch, row, view.site.stack, view.site.kind)
    kept = np.ones_like(view.allowed)
    for name in acting_masks(view.site):
        if name != which:
            kept &= masks[name]
    record = batch.trace[view.site]
    scores = record.scores[row].double().cpu().numpy()
    chosen = scores if head == "mean" else scores[int(head)][None]
    return Removal(
        which=which,
        view=view,
        weights=_softmax(chosen, kept).mean(axis=0),
        freed=kept & ~view.allowed,
        text=batch.real(view.site.stack)[row].cpu().numpy(),
    )


def _softmax(scores: Doubles, allowed: NDArray[np.bool_]) -> Doubles:
    """(H, Tq, Tk), with 0 where not allowed; a row with nothing allowed is uniform, as in the
    network."""
    filled = np.where(allowed, scores, float(np.finfo(np.float32).min))
    exps = np.exp(filled - filled.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


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
    view = found.view
    still = view.allowed | found.freed
    cells = go.Heatmap(
        z=np.where(still, _values(found, show), np.nan).astype(np.float32),
        hoverongaps=True,
        **_colours(found, show, dark),
        **_hover(found),
    )
    layout = matrix_layout(
        _title(found, show),
        f"{100 * found.mean_freed_weight:.1f} % of the weight would go to {_FREED[which]}",
        view.query_labels,
        view.key_labels,
        dark=dark,
        meta=_meta(found, show, row),
    )
    return go.Figure(data=[cells], layout=layout)


def _values(found: Removal, show: str) -> Doubles:
    return found.weights if show == "weights" else found.weights - found.real


def _title(found: Removal, show: str) -> str:
    site = found.view.site
    whose = f"{site.stack} {site.kind}-attention, layer {site.layer}, head {found.view.head}"
    what = "Weights" if show == "weights" else "What changes in the weights"
    return f"{what} without the {found.which} mask: {whose}"


def _colours(found: Removal, show: str, dark: bool) -> dict[str, Any]:
    if show == "weights":
        return weight_colours("linear")
    bound = float(np.abs(found.weights - found.real).max(initial=0.0)) or 1.0
    return {
        "colorscale": style.diverging(dark),
        "zmin": -bound,
        "zmax": bound,
        "colorbar": style.colorbar("change of the weight"),
    }


def _hover(found: Removal) -> dict[str, Any]:
    view = found.view
    numbers = np.stack([found.weights, found.real], axis=-1).astype(np.float32)
    ending = (
        "<br>without the mask %{customdata[0]:.4f}<br>with it %{customdata[1]:.4f}<extra></extra>"
    )
    where = "query %{y:d}, key %{x:d}"
    if max(found.weights.shape) > TEXT_LIMIT:
        return {"customdata": numbers, "hovertemplate": where + ending}
    text = reading_texts(view.query_labels, view.key_labels)
    return {"customdata": numbers, "hovertemplate": where + ": %{text}" + ending, "text": text}


def _meta(found: Removal, show: str, row: int) -> dict[str, Any]:
    return {
        "site": str(found.view.site),
        "head": found.view.head,
        "which": found.which,
        "show": show,
        "row": row,
        "share": found.mean_freed_weight,
    }


def sentence_of(found: Removal) -> str:
    """In words and with its number, what leaving the mask out would change for text queries."""
    site, count = found.view.site, int(found.text.sum())
    share = f"{100 * found.mean_freed_weight:.1f} %"
    if not found.freed.any():
        return f"Here the {found.which} mask hides nothing: {_NONE[found.which]}."
    start = (
        f"Without the {found.which} mask, {share} of the weight would go to "
        f"{_FREED[found.which]}, on average over the {count} queries that are text."
    )
    if found.which == "padding" and "causal" in acting_masks(site):
        return start + (
            " Padding stands on the right, where the causal mask hides it from text already; only"
            " queries that are padding themselves change."
        )
    return start

"""Masks of a padded batch."""

from __future__ import annotations

from transformer import figures
from transformer.figures.removal import SHOWN, acting_masks, sentence_of, without_mask
from transformer.ui.store import RunStore
from transformer.ui.views.answers import Answer, as_json


def mask(
    store: RunStore,
    *,
    batch: str,
    row: int,
    which: str,
    stack: str,
    kind: str,
    dark: bool = False,
) -> Answer:
    """One mask of one sentence of a batch, in one kind of attention."""
    figure = figures.mask_figure(store.batch(batch), row, which, dark, stack=stack, kind=kind)
    return {"figure": as_json(figure)}


def padded(store: RunStore, *, batch: str, stack: str, dark: bool = False) -> Answer:
    """The picture of the padded batch that a stack read."""
    return {"figure": as_json(figures.padded_batch(store.batch(batch), dark, stack=stack))}


def removal(
    store: RunStore,
    *,
    batch: str,
    row: int,
    site: str,
    head: int,
    which: str | None = None,
    dark: bool = False,
) -> Answer:
    """One head's weights without one of its masks, what changes, and a sentence with the number.

    which None: the last of the masks that act in this attention, which are told as `acting`.
    """
    item = store.batch(batch)
    acting = acting_masks(item.trace[site].site)
    chosen = acting[-1] if which is None else which
    found = without_mask(item, row, site, head, chosen)
    drawn = {
        show: as_json(figures.mask_removed(item, row, site, head, chosen, show=show, dark=dark))
        for show in SHOWN
    }
    return {
        "figures": drawn,
        "acting": list(acting),
        "which": chosen,
        "share": found.mean_freed_weight,
        "sentence": sentence_of(found),
    }

"""Masks of a padded batch."""

from __future__ import annotations

from transformer import figures
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

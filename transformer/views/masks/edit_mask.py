"""The mask that an attention used, to be edited cell by cell for another run."""

from __future__ import annotations

from typing import Annotated

from transformer.messages import mark
from transformer.runs.head_data import labels_of
from transformer.runs.run import Run
from transformer.views.attention.heatmap import mask_answer
from transformer.views.declaration import Answer, View, picture
from transformer.views.parameters import SITE


def answer_used_mask(item: Run, *, site: Annotated[str, SITE]) -> Answer:
    """The mask that an attention of the run used: one bit per cell, its tokens, and its window."""
    record = item.trace[site]
    window = item.config.window_of(record.site.layer) if record.site.kind == "self" else None
    allowed = record.allowed[0].cpu().numpy()
    queries, keys = labels_of(item, record.site, 0)
    labels = {"query_labels": list(queries), "key_labels": list(keys)}
    return mask_answer(allowed) | labels | {"window": window}


VIEW = View(
    name="edit_mask",
    tab=mark("What if?"),
    order=540,
    folded=True,
    title=mark("What if the mask were another?"),
    help="Forbid or allow cells, rows and columns of one attention's mask, and run again.",
    pictures=(picture(answer_used_mask),),
)

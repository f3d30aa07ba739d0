"""Masks of a padded batch."""

from __future__ import annotations

from transformer.analysis.mask_removal import masks_used, without_mask
from transformer.messages import mark
from transformer.runs.run import Batch
from transformer.views.declaration import Answer, Picture, View
from transformer.views.masks.masks import (
    SHOWN,
    mask_figure,
    mask_removed,
    padded_batch,
    sentence_of,
)
from transformer.views.parameters import HEAD, KIND, ROW, SITE, STACK, Choice, Int, Text


def answer_removal(
    item: Batch,
    *,
    row: int,
    site: str,
    head: int,
    which: str | None = None,
) -> Answer:
    """One head's weights without one of its masks, what changes, and a sentence with the number.

    which: one of the masks that the network used in this attention, which are told as `acting`;
    for another, or None, the last of them. Without any, that is all that is told.
    """
    acting = masks_used(item, item.trace[site].site)
    if not acting:
        return {"acting": [], "which": None}
    chosen = which if which in acting else acting[-1]
    found = without_mask(item, row, site, head, chosen)
    drawn = {show: mask_removed(item, row, site, head, chosen, show=show) for show in SHOWN}
    return {
        "figures": drawn,
        "acting": list(acting),
        "which": chosen,
        "share": found.mean_freed_weight,
        "sentence": sentence_of(found),
    }


_WHICH = {"causal": "causal", "padding": "padding", "combined": "both"}
VIEW = View(
    name="masks",
    tab=mark("Masks"),
    order=210,
    part="mask",
    title=mark("Masks"),
    help=mark(
        "Which keys each query may read: padding hides filler, the causal mask hides the future."
    ),
    parameters=(
        Int(name="row", default=0, use="place", link="row"),
        Text(name="mask_site", use="place", link="mask_site"),
        Int(name="mask_head", default=0, use="place", link="mask_head"),
        Choice(
            name="without",
            title=mark("Mask that is taken away"),
            options={"causal": mark("causal"), "padding": mark("padding")},
            optional=True,
            use="place",
            link="without",
        ),
    ),
    pictures=(
        Picture(
            name="padded",
            title=mark("Padded batch"),
            help=mark("Sentences of different length, filled up with padding to one length."),
            figure=padded_batch,
            subject="batch",
            parameters=(STACK,),
        ),
        Picture(
            name="mask",
            title=mark("Masks"),
            help=mark("Which keys each query may read, by each mask and by both."),
            figure=mask_figure,
            subject="batch",
            parameters=(
                ROW,
                Choice(name="which", options=_WHICH, default="combined", use="request"),
                STACK,
                KIND,
            ),
        ),
        Picture(
            name="removal",
            title=mark("A mask taken away"),
            help=mark("The weights that the same scores would give without one mask."),
            figure=mask_removed,
            answer=answer_removal,
            subject="batch",
            parameters=(
                ROW,
                SITE,
                HEAD,
                Choice(name="which", options=_WHICH, use="request", optional=True),
            ),
        ),
    ),
    gets=("batch",),
)

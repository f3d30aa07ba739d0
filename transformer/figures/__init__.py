"""Pictures of a run: pure functions from a Run, Batch or step to a Plotly figure.

    from transformer import figures

    figures.attention_heatmap(run, "decoder.0.self", 3).show()

To add one: a function in a file here, and a line in VIEWS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import plotly.graph_objects as go

from transformer.figures.alignment import alignment, alignment_links
from transformer.figures.attention import SCALES, STAGES, attention_heatmap
from transformer.figures.beams import beam_nodes, beam_tree
from transformer.figures.masks import MASKS, mask_figure, mask_heatmap, masks_of, padded_batch
from transformer.figures.positions import position_curves, position_matrix, position_similarity
from transformer.figures.prediction import candidates
from transformer.figures.thumbnails import Atlas, atlas, head_grid


class View(NamedTuple):
    """A figure function, what it is called, and one sentence of help."""

    function: Callable[..., go.Figure]
    title: str
    help: str


VIEWS: dict[str, View] = {
    "attention": View(
        attention_heatmap,
        "One head",
        "How much each query (row) reads each key (column): scores, masked scores, or weights.",
    ),
    "heads": View(
        head_grid,
        "All heads",
        "The weights of every head, layers down and heads across.",
    ),
    "alignment": View(
        alignment,
        "Alignment",
        "Cross-attention as lines: which source token each target token read most.",
    ),
    "mask": View(
        mask_figure,
        "Masks",
        "Which keys each query may read: padding hides filler, the causal mask hides the future.",
    ),
    "batch": View(
        padded_batch,
        "Padded batch",
        "Sentences of different length, filled up with padding to one length.",
    ),
    "positions": View(
        position_matrix,
        "Position matrix",
        "The numbers that tell the network where a token stands: one row a position.",
    ),
    "curves": View(
        position_curves,
        "Position curves",
        "Chosen dimensions of the position matrix as lines over the positions.",
    ),
    "similarity": View(
        position_similarity,
        "Similarity of positions",
        "The cosine between the vectors of every two positions.",
    ),
    "candidates": View(
        candidates,
        "Candidates",
        "The likeliest next tokens of a step, before and after temperature and filters.",
    ),
    "beams": View(
        beam_tree,
        "Beam search",
        "Which hypotheses went on, ended or were cut at each step, likeliest on top.",
    ),
}

__all__ = [
    "MASKS",
    "SCALES",
    "STAGES",
    "VIEWS",
    "Atlas",
    "View",
    "alignment",
    "alignment_links",
    "atlas",
    "attention_heatmap",
    "beam_nodes",
    "beam_tree",
    "candidates",
    "head_grid",
    "mask_figure",
    "mask_heatmap",
    "masks_of",
    "padded_batch",
    "position_curves",
    "position_matrix",
    "position_similarity",
]

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
from transformer.figures.architecture import architecture
from transformer.figures.attention import RANGES, SCALES, STAGES, attention_heatmap
from transformer.figures.beams import beam_nodes, beam_tree
from transformer.figures.compare import attention_difference
from transformer.figures.flow import attention_rollout, joint_attention, mean_attention
from transformer.figures.importance import foreseen, importance
from transformer.figures.inputs import input_strips, input_token
from transformer.figures.lens import logit_lens
from transformer.figures.masks import MASKS, mask_figure, mask_heatmap, masks_of, padded_batch
from transformer.figures.metrics import head_metrics, metrics_figure
from transformer.figures.outcomes import candidates_compared, probability_difference
from transformer.figures.patching import patching
from transformer.figures.positions import position_curves, position_matrix, position_similarity
from transformer.figures.prediction import candidates
from transformer.figures.query import query_lines, query_links
from transformer.figures.removal import mask_removed
from transformer.figures.rotation import position_shift
from transformer.figures.surprise import surprise
from transformer.figures.thumbnails import Atlas, atlas, head_grid
from transformer.figures.worked import row_arithmetic, worked_row


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
    "worked": View(
        worked_row,
        "One row, worked out",
        "From q and the keys to scores, weights and output, for one query of one head.",
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
    "lines": View(
        query_lines,
        "Lines",
        "One head as lines from a query to the keys that it reads, wider the larger the weight.",
    ),
    "mean": View(
        mean_attention,
        "Mean of heads",
        "The average of all heads of a layer, or of all layers: no single head need look like it.",
    ),
    "rollout": View(
        attention_rollout,
        "Rollout",
        "Mean weights and residual multiplied over layers; values and feed-forward are left out.",
    ),
    "joint": View(
        joint_attention,
        "Joint attention",
        "Mean weights multiplied over layers as if there were no residual connection.",
    ),
    "metrics": View(
        metrics_figure,
        "Head metrics",
        "One number for every head, such as its entropy, with an even head as the baseline.",
    ),
    "mask": View(
        mask_figure,
        "Masks",
        "Which keys each query may read: padding hides filler, the causal mask hides the future.",
    ),
    "removal": View(
        mask_removed,
        "A mask taken away",
        "The weights that the same scores would give without one mask, and what changes.",
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
    "inputs": View(
        input_strips,
        "What enters the first layer",
        "Token vectors, position vectors and their sum, one row a token.",
    ),
    "input": View(
        input_token,
        "What enters for one token",
        "One token's vector, its position's vector and their sum, as lines.",
    ),
    "shift": View(
        position_shift,
        "A step of positions",
        "The one matrix that moves the vector of any position by k positions.",
    ),
    "candidates": View(
        candidates,
        "Candidates",
        "The likeliest next tokens of a step, before and after temperature and filters.",
    ),
    "surprise": View(
        surprise,
        "Surprise",
        "How many bits each token of the text surprised the network by, −log₂ p.",
    ),
    "lens": View(
        logit_lens,
        "Logit lens",
        "What each layer would have said comes next, had the network ended there.",
    ),
    "importance": View(
        importance,
        "What each head matters",
        "The change of one token's log-probability when each head alone is silenced.",
    ),
    "foreseen": View(
        foreseen,
        "Intact and altered",
        "What comes next after the same text, by the intact and by the altered network.",
    ),
    "difference": View(
        attention_difference,
        "Attention of two runs",
        "The weights of a head in run B minus those in run A, on the tokens of both.",
    ),
    "outcomes": View(
        probability_difference,
        "Probabilities of two runs",
        "How much likelier run B found each generated token than run A did.",
    ),
    "weighed": View(
        candidates_compared,
        "Candidates of two runs",
        "What the next token could be, by a step of run A and by one of run B.",
    ),
    "patching": View(
        patching,
        "Patch",
        "The change of one token's log-probability by a patch at each layer and place.",
    ),
    "architecture": View(
        architecture,
        "Architecture",
        "The blocks of the network with their shapes and parameters, as data goes through them.",
    ),
    "beams": View(
        beam_tree,
        "Beam search",
        "Which hypotheses went on, ended or were cut at each step, likeliest on top.",
    ),
}

__all__ = [
    "MASKS",
    "RANGES",
    "SCALES",
    "STAGES",
    "VIEWS",
    "Atlas",
    "View",
    "alignment",
    "alignment_links",
    "architecture",
    "atlas",
    "attention_difference",
    "attention_heatmap",
    "attention_rollout",
    "beam_nodes",
    "beam_tree",
    "candidates",
    "candidates_compared",
    "foreseen",
    "head_grid",
    "head_metrics",
    "importance",
    "input_strips",
    "input_token",
    "joint_attention",
    "logit_lens",
    "mask_figure",
    "mask_heatmap",
    "mask_removed",
    "masks_of",
    "mean_attention",
    "metrics_figure",
    "padded_batch",
    "patching",
    "position_curves",
    "position_matrix",
    "position_shift",
    "position_similarity",
    "probability_difference",
    "query_lines",
    "query_links",
    "row_arithmetic",
    "surprise",
    "worked_row",
]

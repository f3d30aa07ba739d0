"""Figures without numbers, which a page without a server fills in (browser/frames.js).

Each is the figure that the server's page shows, of a model's stored run and batch: so a figure is
described once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import torch

from transformer.analysis.ablation import HeadImportance
from transformer.analysis.journey import journey
from transformer.analysis.mask_removal import masks_used
from transformer.analysis.masked_token import MaskedToken
from transformer.analysis.model_queries import ModelQueries
from transformer.analysis.nearest_tokens import NearestTokens
from transformer.analysis.patching import PatchEffect
from transformer.analysis.rotary import rotates
from transformer.model.positions import POSITIONS
from transformer.plain_text import COMMON_WORDS
from transformer.runs.batch import Batch
from transformer.runs.head_data import sites_of
from transformer.runs.run import Run
from transformer.runs.steps import BeamNode, Hypothesis, Search
from transformer.views.attention.head_metrics import draw_metric, measures, metrics_of
from transformer.views.attention.heatmap import head_frame
from transformer.views.attention.lines import answer_columns
from transformer.views.journey.contribution import contribution
from transformer.views.journey.passages import passages_of
from transformer.views.masks.masks import mask_heatmap, mask_removed, padded_batch
from transformer.views.model.architecture import answer_architecture
from transformer.views.model.equations import equation_outlines
from transformer.views.positions.encodings import (
    position_curves,
    position_matrix,
    position_similarity,
)
from transformer.views.positions.inputs import input_strips, input_token
from transformer.views.positions.nearest_tokens import nearest_tokens
from transformer.views.positions.rotary import answer_rotary
from transformer.views.positions.rotation import largest_shift, position_shift
from transformer.views.prediction.beams import STATES, beam_tree
from transformer.views.prediction.lens import logit_lens
from transformer.views.prediction.masked import masked
from transformer.views.prediction.surprisal import surprisal
from transformer.views.runs.attention_difference import attention_difference
from transformer.views.runs.compare import probability_difference
from transformer.views.whatif.ablation import importance
from transformer.views.whatif.breaks import answer_broken
from transformer.views.whatif.patching import TEACHING, patching

TWO_LABELS = ["", ""]  # labels
NUMBERS = ("x", "y", "z", "text", "customdata", "hovertext")  # of a trace


def frames_of(
    models: ModelQueries, run: Run, batch: Batch, *, measure: bool = True
) -> dict[str, Any]:
    """By name; and the whole answers of questions about the network alone.

    run: with its lens, where its network predicts tokens. measure: measure now what each broken
    idea costs, see `breaks.answer_broken`.
    """
    return {
        **recorded_frames(run, batch),
        **{name: _bare(figure) for name, figure in _figures(models, run)},
        "rotary": _rotary(run),
        "equations": equation_outlines(models, run),
        "passages": passages_of(models.model(run.model)),
        "neurons": models.model(run.model).neurons,
        "architecture": answer_architecture(run),
        "broken": answer_broken(models, run.model, measure=measure),
        "teaching": TEACHING.get(run.config.family),
        "words": COMMON_WORDS,
    }


def recorded_frames(run: Run, batch: Batch) -> dict[str, Any]:
    """Of figures whose numbers a run holds, by name: of attention, masks and added positions."""
    stack, kind = run.trace.kinds()[-1]
    return {
        "head": head_frame(TWO_LABELS, TWO_LABELS),
        "combined": head_frame(TWO_LABELS, TWO_LABELS, combined=True),
        **answer_columns(run, stack=stack, kind=kind),
        "measures": measures(),
        "metric_map": {f"{a} {b}": _maps(run, a, b) for a, b in run.trace.kinds()},
        **{name: _bare(figure) for name, figure in _recorded(run, batch)},
    }


def _recorded(run: Run, batch: Batch) -> Iterator[tuple[str, go.Figure]]:
    yield (
        "mask",
        mask_heatmap(TWO_LABELS, TWO_LABELS, torch.ones(2, 2, dtype=torch.bool).numpy(), ""),
    )
    yield "padded", padded_batch(batch)
    here = next(iter(batch.trace.records))
    yield "removed", mask_removed(batch, 0, here, 0, masks_used(batch, here)[-1])
    if run.position_matrices and POSITIONS[run.config.positions].adds:
        yield "matrix", position_matrix(run)
        yield "similarity", position_similarity(run)
        yield "curves", position_curves(run, [0])
        yield "strips", input_strips(run)
        yield "token", input_token(run)
        if largest_shift(run) > 0:
            yield "shift", position_shift(run, 1)


def _figures(models: ModelQueries, run: Run) -> Iterator[tuple[str, go.Figure]]:
    stack, kind = run.trace.kinds()[-1]
    yield "difference", attention_difference(run, run, sites_of(run, stack, kind)[0], 0)
    if run.config.head != "tokens":
        return
    near = NearestTokens(position=0, label="", ids=(0,), labels=("",), cosines=(1.0,))
    yield "nearest", nearest_tokens(run, near)
    yield "lens", logit_lens(run)
    sure = (1.0,)
    guess = MaskedToken(
        position=0, token=0, label="", ids=(0,), labels=("",), probabilities=sure, from_left=sure
    )
    yield "masked", masked(guess)
    if run.config.family == "encoder":
        return
    yield "surprisal", surprisal(run)
    layers, n_heads = run.config.n_layers_of, run.config.n_heads
    change = {(a, b): torch.zeros(layers(a), n_heads) for a, b in run.trace.kinds()}
    none = HeadImportance(position=1, target=0, log_probability=0.0, change=change)
    yield "importance", importance(none, stack, kind, "")
    flat = torch.zeros(layers(stack), 2)
    yield (
        "patching",
        patching(
            PatchEffect(target=0, before=0.0, other=0.0, change=flat), TWO_LABELS, TWO_LABELS, ""
        ),
    )
    parts = models.ask(journey, run).parts
    if parts is not None:
        yield "contribution", contribution(parts, "")
    yield "beams", beam_tree(replace(run, search=_SEARCH, candidate_labels={0: ""}))
    if run.steps:
        yield "outcomes", probability_difference(run, run)


def _maps(run: Run, stack: str, kind: str) -> dict[str, Any]:
    """The picture of each metric of every head, by the metric's name."""
    found = metrics_of(run, stack, kind)
    return {one.name: _bare(draw_metric(found, one.name)) for one in found.metrics}


# With an extension in each state.
_SEARCH = Search(
    hypotheses=(Hypothesis(ids=(0,), score=-1.0, normalised=-1.0, ended=True),),
    texts=("",),
    tree=(
        tuple(
            BeamNode(token=0, parent=-1, score=-1.0 - rank, state=state)
            for rank, state in enumerate(STATES)
        ),
    ),
)


def _rotary(run: Run) -> dict[str, Any] | None:
    """The pictures of rotary positions, by name; None where nothing is rotated."""
    site = next((site for site in run.trace.sites if rotates(run, site)), None)
    if site is None:
        return None
    answer = answer_rotary(run, site=str(site))
    return {name: _bare(answer[name]) for name in answer["says"]}


def _bare(figure: go.Figure) -> dict[str, Any]:
    """A figure without its numbers and its title, which the page says."""
    plain: dict[str, Any] = json.loads(figure.to_json())
    plain["layout"].pop("title", None)
    plain["layout"].pop("template", None)
    for trace in plain["data"]:
        for name in NUMBERS:
            trace.pop(name, None)
    return plain

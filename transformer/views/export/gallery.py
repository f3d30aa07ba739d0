"""Every picture of a run that can be drawn without asking what to choose."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import plotly.graph_objects as go

from transformer.messages import say, say_list
from transformer.model.positions import POSITIONS
from transformer.network_words import attention_name, stack_name
from transformer.runs.run import Run
from transformer.views.attention.attention_math import attention_math
from transformer.views.attention.head_metrics import draw_metric, metrics_of
from transformer.views.positions.encodings import position_similarity
from transformer.views.positions.inputs import input_strips
from transformer.views.positions.rotation import position_shift
from transformer.views.prediction.beams import beam_tree
from transformer.views.prediction.lens import logit_lens
from transformer.views.prediction.surprisal import surprisal, why_none
from transformer.views.registry import own_views


class GalleryItem(NamedTuple):
    """A figure with the key of its PICTURES entry, which names and explains it."""

    view: str
    figure: go.Figure
    part: str = ""  # the attention, metric or stack that it shows


def gallery(run: Run) -> Iterator[GalleryItem]:
    """Its prediction, all heads put together and measured, and its positions.

    What a model does not have (the surprisal of an encoder, the alignment of a text generator) and
    what a run does not have (its lens, see `analysis.with_lens`) is left out. One head large, masks
    and candidates need a choice and are not among them.
    """
    if why_none(run) is None:
        yield GalleryItem("surprisal", surprisal(run))
    if run.lens is not None:
        yield GalleryItem("lens", logit_lens(run))
    if run.search is not None:
        yield GalleryItem("beams", beam_tree(run))
    for stack, kind in run.trace.kinds():
        yield from _of_attention(run, stack, kind)
    encoding = POSITIONS[run.config.positions]
    for stack in run.position_matrices if encoding.adds else ():
        yield GalleryItem("inputs", input_strips(run, stack), stack_name(stack))
        yield GalleryItem("similarity", position_similarity(run, stack), stack_name(stack))
        if encoding.shift is not None:
            yield GalleryItem("shift", position_shift(run, 1, stack), stack_name(stack))
    for picture in (one for view in own_views() for one in view.pictures):  # by their defaults
        run_alone = picture.subject in ("run", "run or batch") and not picture.network
        if run_alone and (figure := picture.figure):
            with suppress(ValueError):  # of a run that it cannot draw
                yield GalleryItem(picture.name, figure(run, **picture.checked({})))


def _of_attention(run: Run, stack: str, kind: str) -> Iterator[GalleryItem]:
    found, name = metrics_of(run, stack, kind), attention_name(stack, kind)
    for metric in found.metrics:
        if all(math.isnan(head.values[metric.name]) for head in found.heads):
            continue  # such as of repeats, where nothing is repeated
        yield GalleryItem(
            "metrics", draw_metric(found, metric.name), say_list([say(metric.title), name])
        )
    if run.trace[stack, 0, kind].q is not None:
        yield GalleryItem("attention_math", attention_math(run, (stack, 0, kind), 0), name)

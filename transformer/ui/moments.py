"""What the view Moments asks the server: a recorded moment of the story model's training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from transformer.analysis.head_measures import ALL
from transformer.checks import check_choice, check_whole
from transformer.learning.moments import HeadNumber, Moments, story_moments
from transformer.learning.words import about, told_at
from transformer.messages import invalid, numeral, say
from transformer.views import VIEWS
from transformer.views.moments import moment_curves, recorded_head

DRAWN = ("previous", "induction", "first")  # metrics whose best head has a curve
OPENED = ("induction", "previous")  # whose best head is large at first


def moment(data: Mapping[str, Any]) -> dict[str, Any]:
    """{"step", "sentence", "layer", "head", "dark"}: what was kept of a moment.

    step None: the last one; layer, head None: the head that came to stand out. Raises ValueError
    for what was not kept.
    """
    moments = story_moments()
    if moments is None:
        raise invalid("no moments of a training come with this page")
    place, sentence, layer, head = _chosen(moments, data)
    now, read = moments.standings[place], moments.sentences[sentence]
    dark = data.get("dark") is True
    surprisal = read.surprisal[place]
    return {
        "about": about(moments),
        "steps": moments.steps, "total": moments.total, "step": now.step,
        "said": told_at(moments, place),
        "start": moments.start, "wrote": now.wrote.removeprefix(moments.start),
        "sentences": [one.text for one in moments.sentences],
        "labels": read.labels,
        "surprisal": [None if np.isnan(one) else round(float(one), 2) for one in surprisal],
        "mean": float(np.nanmean(surprisal)),
        "picture": read.atlas(place).answer(),
        "signs": [_sign(one) for one in now.best if one.clear],
        "layer": layer, "head": head,
        "large": recorded_head(
            read.weights(place, layer, head), read.labels, layer, head, dark=dark
        ),
        "curves": _curves(moments, now.step, dark),
    }  # fmt: skip


def _chosen(moments: Moments, data: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """(place of the moment, sentence, layer, head)."""
    values = {
        one.name: one.check(data.get(one.name, one.default)) for one in VIEWS["moments"].parameters
    }
    steps, (n_layers, n_heads) = moments.steps, moments.shape
    step = steps[-1] if values["step"] is None else values["step"]
    check_choice("step", step, steps)
    check_whole("sentence", values["sentence"], 0, len(moments.sentences) - 1)
    last = moments.standings[-1]
    found = [last.best_by(metric) for metric in OPENED]
    first = next((one for one in found if one is not None and one.clear), last.best[0])
    layer = first.layer if values["layer"] is None else values["layer"]
    head = first.head if values["head"] is None else values["head"]
    check_whole("layer", layer, 0, n_layers - 1)
    check_whole("head", head, 0, n_heads - 1)
    return steps.index(step), values["sentence"], layer, head


def _sign(one: HeadNumber) -> dict[str, Any]:
    metric = ALL[one.metric]
    label = say(
        "{does}: {value}", does=say(metric.label or metric.title), value=numeral(one.value, ".2f")
    )
    return {"layer": one.layer, "head": one.head, "sign": metric.sign, "label": label}


def _curves(moments: Moments, step: int, dark: bool) -> Any:
    def values(metric: str) -> list[float | None]:
        found = (one.best_by(metric) for one in moments.standings)
        return [None if one is None else one.value for one in found]

    return moment_curves(
        moments.curve,
        moments.steps,
        [one.loss for one in moments.standings],
        {say(ALL[metric].short): values(metric) for metric in DRAWN},
        total=moments.total,
        at=step,
        dark=dark,
    )

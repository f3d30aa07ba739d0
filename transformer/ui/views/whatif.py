"""What an alteration does: the only views that run the network, through the Experiments.

Each takes the Experiments first; `used_mask`, which only looks at a kept run, takes the store.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from transformer import figures
from transformer.figures.data import labels_of, record_of
from transformer.figures.importance import largest_change
from transformer.inference.effects import HeadImportance
from transformer.inference.run import Run
from transformer.model.interventions import BREAKS, Break, breaks_of
from transformer.ui.experiments import Experiments
from transformer.ui.store import RunStore
from transformer.ui.views.answers import Answer, as_json, binary

KEPT = 64  # importances, which do not change and take a second


def importance(
    experiments: Experiments,
    *,
    run: str,
    place: int,
    stack: str,
    kind: str,
    by: str = "zero",
    dark: bool = False,
) -> Answer:
    """What each head of a kind of attention matters for one token: numbers, picture, a sentence."""
    item = experiments.store.run(run)
    found = _importance(experiments, run, place, by)
    label = item.labels[place]
    figure = figures.importance(found, stack, kind, label, by=by, dark=dark)
    return {
        "figure": as_json(figure),
        "change": found.change[stack, kind].tolist(),
        "limit": largest_change(found),
        "label": label,
        "log_probability": found.log_probability,
    }


@functools.lru_cache(maxsize=KEPT)
def _importance(experiments: Experiments, run: str, place: int, by: str) -> HeadImportance:
    return experiments.importance(experiments.store.run(run), place, by)


def next_token(experiments: Experiments, *, run: str, place: int, dark: bool = False) -> Answer:
    """What the intact and the altered network say comes at `place`, after the run's own text."""
    item = experiments.store.run(run)
    found = experiments.next_token(item, place)
    labels = _labels(experiments, item, found.ids)
    return {
        "figure": as_json(figures.foreseen(found, labels, item.ids[place], dark=dark)),
        "label": item.labels[place],
        "intact": found.intact.tolist(),
        "altered": found.altered.tolist(),
        "labels": labels,
        "here": found.ids.index(item.ids[place]),
    }


def intact_text(experiments: Experiments, *, run: str) -> Answer:
    """What the intact network makes of the same request, and where the two texts part."""
    item = experiments.store.run(run)
    ids = experiments.intact_ids(item)
    same = next(
        (at for at, (a, b) in enumerate(zip(ids, item.ids, strict=False)) if a != b),
        min(len(ids), len(item.ids)),
    )
    return {
        "labels": _labels(experiments, item, ids),
        "n_prompt": item.n_prompt,
        "same": same,
        "equal": ids == item.ids,
    }


def broken(experiments: Experiments, *, model: str, measure: bool = False) -> Answer:
    """Every switch with its reason; the losses where they are known, or asked for by `measure`."""
    chosen = experiments.service.model(model)
    rows = experiments.broken(model) if measure else experiments.known_broken(model)
    losses = {row.what: row.loss for row in rows}
    sample = chosen.sample
    return {
        "rows": [
            {"what": what, "says": str(Break(what)), "why": BREAKS[what], "loss": losses.get(what)}
            for what in breaks_of(chosen.config)
        ],
        "intact": losses.get(None),
        "even": math.log(chosen.config.output_vocab_size),
        "about": sample.about if sample else None,
        "n_texts": len(sample.texts) if sample else 0,
    }


def broken_text(experiments: Experiments, *, run: str, what: str | None = None) -> Answer:
    """How the run's prompt goes on, greedily, without one idea (None: with all of them)."""
    item = experiments.store.run(run)
    ids = experiments.broken_ids(item, what)
    return {"labels": _labels(experiments, item, ids[item.n_prompt :])}


def used_mask(store: RunStore, *, run: str, site: str) -> Answer:
    """The mask that an attention of the run used: one bit a cell, and its tokens."""
    item = store.run(run)
    record = record_of(item, site)
    allowed = record.allowed[0].numpy()
    queries, keys = labels_of(item, record, 0)
    return {
        "shape": list(allowed.shape),
        "allowed": binary(np.packbits(allowed)),
        "query_labels": list(queries),
        "key_labels": list(keys),
    }


def _labels(experiments: Experiments, run: Run, ids: Sequence[int]) -> list[str]:
    return experiments.service.model(run.model).tokenizer.labels(ids)


VIEWS = (importance, next_token, intact_text, broken, broken_text)

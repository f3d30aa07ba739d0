"""A run's numbers as a saved page holds them, see `html.py`.

Of each head the file holds its queries and keys (half the size of the scores); the page works out
scores and weights from them, as the network did. A head whose recorded scores or weights differ
from that, after an intervention, is stored as recorded. Answers that need more than a run's numbers
are stored whole.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch

from transformer.interventions.descriptions import reads_padding
from transformer.messages import (
    say,
    say_list,
    say_n,
)
from transformer.model.functional import masked_softmax
from transformer.model.positions import POSITIONS
from transformer.model.trace import AttentionRecord
from transformer.network_words import depth_in_words, stack_name
from transformer.runs.batch import Batch
from transformer.runs.external_attention import GIVEN
from transformer.runs.head_data import array, records_of, weights_read
from transformer.runs.request import method_words
from transformer.runs.run import Run
from transformer.runs.steps import GenerationStep
from transformer.tokenizer import HIDDEN, MASK
from transformer.views.attention.heatmap import mask_answer
from transformer.views.declaration import Answer, View
from transformer.views.export.packing import Pack, rounded
from transformer.views.masks.masks import padded_batch
from transformer.views.model.architecture import answer_architecture
from transformer.views.positions.inputs import input_parts
from transformer.views.prediction.surprisal import why_none
from transformer.views.registry import PICTURES, own_views
from transformer.views.run_facts import facts_of

SCORE_TOLERANCE = (
    2e-5  # of the largest score: worked-out scores this near are taken for the recorded ones
)


def content(run: Run, pack: Pack, row: str = "0") -> dict[str, Any]:
    """What the page knows of a run, as plain JSON values; arrays go to the pack. row: its name in
    the page."""
    stack = run.trace.sites[-1].stack
    facts = facts_of(run) | _first_seen(run) | {"run": row, "task": "", "opening": {}}
    length = len(run.queries(stack))
    return {
        "summary": summary(run),
        "run": facts | {"request": {"model": run.model}},
        "lengths": {"encoder": len(run.source_labels), stack: length},
        "inputs": _inputs(run, pack),
        "normalised": run.config.norm_embeddings,
        "kinds": [_attention(run, stack, kind, pack) for stack, kind in run.trace.kinds()],
        "steps": [_step(run, step) for step in run.steps],
        "answers": [
            [name, data, _stored(answer, pack)] for name, data, answer in stored_answers(run)
        ],
    }  # fmt: skip


def batch_content(batch: Batch, texts: list[dict[str, Any]], pack: Pack) -> dict[str, Any]:
    """What the page knows of all texts together, and the pictures of their padding."""
    facts = texts[0]["run"]
    shared = {name: facts[name] for name in ("model", "kinds", "stacks", "n_heads", "windows")}
    padded = [
        ["padded", {"stack": stack}, _stored({"figure": padded_batch(batch, stack=stack)}, pack)]
        for stack in facts["stacks"]
    ]
    return shared | {
        "batch": "batch",
        "padding_hidden": not any(map(reads_padding, batch.request.interventions)),
        "texts": list(batch.texts),
        "outputs": list(batch.outputs),
        "lengths": batch.padding.sum(dim=1).tolist(),
        "answers": padded,
    }


def _first_seen(run: Run) -> dict[str, Any]:
    """Which tokens hide others, and which is shown first; as `Model.last_read`."""
    special, is_end = run.special_positions()["special"], frozenset(run.special_ids)
    hidden = [at for at in special if run.labels[at] in (HIDDEN, MASK)]
    if run.config.family == "encoder":
        plain = (at for at in range(len(run.ids)) if at not in special)
        return {"hidden": hidden, "last_read": next(iter((*hidden, *plain)), 0)}
    last = min(len(run.ids), run.trace_start + run.config.output_max_len) - 1
    ended = last > run.trace_start and run.ids[last] in is_end
    return {"hidden": hidden, "last_read": last - ended}


def as_batch(run: Run) -> Batch:
    """A batch of this run's text alone, as far as it is traced."""

    def tokens(ids: tuple[int, ...]) -> dict[str, Any]:
        return {"ids": torch.tensor([ids]), "padding": torch.ones(1, len(ids), dtype=torch.bool)}

    labels = run.queries(run.trace.sites[-1].stack)
    own = tokens(run.ids[run.trace_start :][: len(labels)])
    named: dict[str, Any] = {**own, "labels": (labels,)}
    if run.source_ids:
        named = {**tokens(run.source_ids), "labels": (run.source_labels,)}
        named |= {f"target_{name}": value for name, value in own.items()}
        named["target_labels"] = (labels,)
    return Batch(
        model=run.model,
        config=run.config,
        texts=(run.request.text,),
        request=run.request,
        trace=run.trace,
        position_matrices=run.position_matrices,
        special_ids=run.special_ids,
        **named,
    )


def summary(run: Run) -> str:
    """The model's shape and the run's settings in one line."""
    config = run.config
    layers = depth_in_words(config.n_layers, config.output_n_layers)
    heads = say_n("{n} head", "{n} heads", config.n_heads)
    if run.stopped == GIVEN:
        return say("{layers} × {heads} of attention made elsewhere", layers=layers, heads=heads)
    parts = [
        say(
            "{family}, {layers} × {heads} × {d_model}",
            family=stack_name(config.family),
            layers=layers,
            heads=heads,
            d_model=config.d_model,
        )
    ]
    if run.steps:
        parts.append(
            say_n(
                "{request}; seed {seed}; {n} token generated",
                "{request}; seed {seed}; {n} tokens generated",
                len(run.steps),
                request=method_words(run.request),
                seed=run.request.seed,
            )
        )
    if run.request.interventions:
        changes = say_list(map(str, run.request.interventions))
        parts.append(say("altered: {interventions}", interventions=changes))
    return say_list(parts, ";")


def _inputs(run: Run, pack: Pack) -> dict[str, Any]:
    """What enters each stack's first layer, where positions are added."""
    if not POSITIONS[run.config.positions].adds or not run.trace.embed:
        return {}
    result = {}
    for stack, matrix in run.position_matrices.items():
        parts = input_parts(run, stack)
        result[stack] = {
            "matrix": pack.array(rounded(array(matrix))),
            "token": pack.array(rounded(parts.token)),
            "difference": parts.difference,
        }
    return result


def _attention(run: Run, stack: str, kind: str, pack: Pack) -> dict[str, Any]:
    records = records_of(run, stack, kind)
    masks = [mask_answer(record.allowed[0].cpu().numpy()) for record in records]
    return {
        "stack": stack,
        "kind": kind,
        "n_layers": len(records),
        "shape": masks[0]["shape"],
        "masks": [pack.array(mask["allowed"]) for mask in masks],
        "layers": [heads_of(_read(run, record), pack) for record in records],
    }


def _read(run: Run, record: AttentionRecord) -> AttentionRecord:
    """The record with the weights of switched-off heads set to 0."""
    return dataclasses.replace(record, pattern=weights_read(run, record.site, record.pattern))


def heads_of(record: AttentionRecord, pack: Pack) -> dict[str, Any]:
    """One layer's heads, in as few numbers as give all of them back.

    queries and keys (H, T, D) where the scores are their products, with dimension 0 of the values
    (H, Tk) for the arithmetic of a row; else scores (H, Tq, Tk). And weights (H, Tq, Tk) where they
    are not the masked softmax of the scores.
    """
    scores, weights = array(record.scores[0]), array(record.pattern[0])
    softmax = array(masked_softmax(record.scores[0].cpu(), record.allowed[0].cpu()))
    parts = {"scores": scores}
    if record.q is not None and record.k is not None:
        q, k = array(record.q[0]), array(record.k[0])
        largest = max(1.0, float(np.abs(scores).max()))
        if np.abs(_products(q, k) - scores).max() <= SCORE_TOLERANCE * largest:
            rough = rounded(q), rounded(k)  # if that changes no weight
            products = torch.from_numpy(_products(*rough))
            again = array(masked_softmax(products, record.allowed[0].cpu()))
            q, k = rough if np.abs(again - softmax).max() <= SCORE_TOLERANCE / 2 else (q, k)
            parts = {"queries": q, "keys": k}
            if record.v is not None:
                parts["values"] = rounded(array(record.v[0])[..., 0])
    if np.abs(softmax - weights).max() > SCORE_TOLERANCE:
        parts["weights"] = weights
    return {name: pack.array(values) for name, values in parts.items()}


def _products(q: Any, k: Any) -> Any:
    return q @ k.swapaxes(1, 2) / np.sqrt(np.float32(q.shape[-1]))


def _step(run: Run, step: GenerationStep) -> dict[str, Any]:
    return {
        "token": step.token,
        "window": list(step.window),
        "n_kept": step.n_kept,
        "candidates": [
            {
                "id": candidate.id,
                "label": run.candidate_labels[candidate.id],
                "probability": candidate.probability,
                "sampling_probability": candidate.sampling_probability,
            }
            for candidate in step.candidates
        ],
    }


# ---- answers that are stored whole ----


def stored_answers(run: Run) -> Iterator[tuple[str, dict[str, Any], Answer]]:
    """Answers to questions of the page, each with its picture's name and what it is asked with."""
    if run.stopped == GIVEN:
        return
    yield "architecture", {}, answer_architecture(run)
    if why_none(run) is None:
        yield "surprisal", {}, PICTURES["surprisal"].ask(run, given={})
    if run.lens is not None:
        size = len(run.queries(run.trace.sites[-1].stack))
        step = PICTURES["lens"].ask(run, given={})["columns"]
        for first in range(0, size, step):
            yield "lens", {"first": first}, PICTURES["lens"].ask(run, given={"first": first})
    if run.search is not None:
        yield "beams", {}, PICTURES["beams"].ask(run, given={})
    for view in own_views():
        for name, answer in drawn_by_default(view, run).items():
            yield name, {}, answer


def drawn_by_default(view: View, run: Run) -> dict[str, Answer]:
    """The answers of a view of another folder by their defaults, by picture."""
    drawn = {}
    for picture in view.pictures:
        if picture.subject in ("run", "run or batch") and not picture.network:
            with suppress(ValueError):  # of a run that it cannot draw
                drawn[picture.name] = picture.ask(run, given={})
    return drawn


def _stored(value: Any, pack: Pack) -> Any:
    """An answer as plain values; arrays go to the pack."""
    if isinstance(value, go.Figure):
        return pack.plain(json.loads(value.to_json()))
    if isinstance(value, dict):
        return {name: _stored(part, pack) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return pack.array(value)
    if isinstance(value, list | tuple):
        return [_stored(part, pack) for part in value]
    return value.item() if isinstance(value, np.generic) else value

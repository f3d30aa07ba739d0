"""Named, typed endpoints for programs: the same models, runs and sentences as the page.

Indices count from 0, as in Python. A visitor's mistake raises an error with the same sentence that
the Python call raises. What is said of the parameters stands where Gradio looks for it, under Args,
for the page's own description of the API and for the tools.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import gradio as gr
import numpy as np
from gradio.context import LocalContext
from gradio.events import api

from transformer.checks import check_choice
from transformer.inference.deadline import until
from transformer.ui.api_values import (
    attention_values,
    batch_values,
    fill_values,
    numbers,
    position_values,
    run_values,
)
from transformer.ui.api_whatif import endpoints as what_if
from transformer.ui.experiments import Experiments
from transformer.ui.limits import AT_ONCE, MAX_LISTED, sentence_of, table
from transformer.ui.page_data import model_facts
from transformer.ui.service import Service
from transformer.ui.tools import CALLER
from transformer.ui.turns import Turns
from transformer.ui.view_functions import answer
from transformer.ui.visitors import ASKER, Visitors
from transformer.views import PICTURES, VIEWS
from transformer.views.declaration import is_figure


def add_endpoints(service: Service, experiments: Experiments) -> None:
    """Register the endpoints; call inside a `gr.Blocks` context."""
    default = next(iter(service.models))
    families = {name: model.config.family for name, model in service.models.items()}
    translator = next((n for n, family in families.items() if family == "encoder-decoder"), default)
    encoder = next((n for n, family in families.items() if family == "encoder"), default)

    def models() -> list[dict[str, Any]]:
        """The models that can be used, with their configuration."""
        return [model_facts(model) for model in service.models.values()]

    def generate(
        text: str,
        model: str = default,
        max_new_tokens: int = 40,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        seed: int = 0,
        beams: int = 1,
        length_penalty: float = 1.0,
        forced_tokens: list[int] | None = None,
        interventions: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Continue a text. Greedy at temperature 0 or without temperature, top_k, top_p and min_p.

        Gives text, tokens, how many of them were given, why it stopped, every step with its
        candidates, the hypotheses of a search, and the run's id for /attention. An intervention is,
        e.g., {"type": "silence", "stack": "decoder", "layer": 2, "heads": [3]}.

        Args:
            text: what to continue, or what a translator translates
            model: name of one of /models
            max_new_tokens: tokens to generate at most, 1 to 200
            temperature: above 1 evens the probabilities out, below 1 sharpens them, 0 is greedy
            top_k: draw from so many of the likeliest tokens
            top_p: draw from the likeliest tokens that together reach this probability
            min_p: draw from tokens at least this share as likely as the likeliest
            seed: the same seed draws the same tokens
            beams: 2 or more, with a translator: a beam search that keeps so many hypotheses
            length_penalty: power of the length by which a search divides a hypothesis' score
            forced_tokens: ids of tokens that come first, whatever the network says of them
            interventions: what to alter in the network for this run alone
        """
        run = service.generate(
            model,
            text,
            max_new_tokens=max_new_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            seed=seed,
            beams=beams,
            length_penalty=length_penalty,
            forced_tokens=forced_tokens or (),
            interventions=interventions or (),
        )
        return run_values(run, service.store.put(run, _visitor()))

    def translate(
        texts: list[str],
        model: str = translator,
        beams: int = 4,
        length_penalty: float = 1.0,
        max_new_tokens: int = 100,
    ) -> list[dict[str, Any]]:
        """Translate several texts in one padded batch; each gets the result that it gets alone.

        For each: what /generate gives, with the n-best list of hypotheses. What it gives of a text
        of several sentences is the network's reading of the whole; `one_by_one` joins the
        translations of its sentences, each read alone, which are better. It is null for one.

        Args:
            texts: 1 to 8 of them
            model: name of one of /models, an encoder-decoder
            beams: hypotheses that the search keeps; 1 is greedy
            length_penalty: power of the length by which the search divides a hypothesis' score
            max_new_tokens: tokens of a translation at most, 1 to 200
        """
        settings: dict[str, Any] = {
            "beams": beams, "length_penalty": length_penalty, "max_new_tokens": max_new_tokens,
        }  # fmt: skip
        runs = service.translate(model, texts, **settings)
        keys = service.store.put_all(runs, _visitor())
        return [
            run_values(run, key)
            | {"one_by_one": service.one_by_one(model, run.request.text, **settings)}
            for run, key in zip(runs, keys, strict=True)
        ]

    def trace(
        text: str, model: str = default, interventions: list[dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        """Read a text without continuing it, altered if told so; the id is for /attention.

        Args:
            text: what to read
            model: name of one of /models
            interventions: what to alter in the network for this run alone, as in /generate
        """
        run = service.read(model, text, interventions or ())
        return run_values(run, service.store.put(run, _visitor()))

    def fill(text: str, model: str = encoder, n_best: int = 5) -> dict[str, Any]:
        """What stands at each [MASK] of a text, by a model that reads both sides of it.

        Gives the text with the likeliest token at each place, and for each place the likeliest
        tokens; each is guessed by itself, so that two of them need not fit together.

        Args:
            text: with [MASK] where a word is hidden
            model: name of one of /models, an encoder alone
            n_best: tokens that are given for each place, 1 to 50
        """
        return fill_values(service.fill(model, text, n_best))

    def batch(
        texts: list[str],
        model: str = default,
        interventions: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Read several texts as one padded batch, altered if told so; the id is for /attention.

        A translator translates them first (greedily) and reads sources and translations.

        Args:
            texts: 1 to 8 of them
            model: name of one of /models
            interventions: what to alter in the network for this run alone, as in /generate
        """
        read = service.batch(model, texts, interventions or ())
        return batch_values(read, service.store.put(read, _visitor()))

    def attention(
        run: str,
        site: str = "decoder.0.self",
        head: int = 0,
        row: int = 0,
        packed: bool = False,
    ) -> dict[str, Any]:
        """One head of a run or batch: scores before the mask, weights, and what is allowed.

        Rows are queries, columns keys.

        Args:
            run: the id that /generate, /translate, /trace or /batch gave
            site: STACK.LAYER.KIND, with a kind of self or cross, counted from 0
            head: counted from 0
            row: the sentence of a batch, counted from 0
            packed: each matrix as shape, dtype and base64 instead of nested lists, as one of more
                than 16,384 numbers must be
        """
        return attention_values(service.store.any(run), site, head, row, packed=packed)

    def positions(run: str, stack: str = "decoder", packed: bool = False) -> dict[str, Any]:
        """What a stack adds to its tokens to say where they stand: a row a position.

        Args:
            run: the id that /generate, /translate or /trace gave
            stack: encoder or decoder
            packed: as in /attention
        """
        return position_values(service.store.run(run), stack, packed=packed)

    def views() -> list[dict[str, Any]]:
        """Every view of the page as it declares itself: its pictures, and what each may be told."""
        return [one.schema() for one in VIEWS.values()]

    def view(picture: str, run: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        """A picture of a run, batch or model: its figure as Plotly's JSON, and its numbers.

        Args:
            picture: the name of one of a view's pictures, see /views
            run: the id that /generate, /translate, /trace or /batch gave, or a model's name
            parameters: what the picture is told, by name, as /views lists it
        """
        check_choice("picture", picture, PICTURES)
        asked = PICTURES[picture]
        subject = asked.takes if asked.takes in ("batch", "model") else "run"
        found = answer(experiments, asked, {**(parameters or {}), subject: run})
        return {name: _listed(value) for name, value in found.items()}

    def limits() -> dict[str, dict[str, Any]]:
        """How much may be asked at once: each limit with its unit, and what happens beyond it."""
        return table()

    asking, score = what_if(service, experiments)
    running: tuple[Callable[..., Any], ...] = (generate, translate, trace, fill, batch, score)
    looking: tuple[Callable[..., Any], ...] = (models, attention, positions, limits, views)
    for function in running:
        timed = _with_deadline(service.visitors, function, service.turns["model"])
        _add(timed, concurrency_limit=AT_ONCE, concurrency_id="model")
    for function in (*asking, view):  # they take no place of the others
        _add(_with_deadline(service.visitors, function), concurrency_id="experiments")
    for function in looking:
        _add(function)


def _add(function: Callable[..., Any], **settings: Any) -> None:
    endpoint = _with_sentences(function)
    api(endpoint, api_name=function.__name__, **settings)


def _with_sentences(function: Callable[..., Any]) -> Callable[..., Any]:
    """Pass a ValueError's sentence on to the client, which would else see no reason."""

    @functools.wraps(function)
    def endpoint(*args: Any, **kwargs: Any) -> Any:
        ASKER.set(_visitor())  # of this call's own context
        try:
            return function(*args, **kwargs)
        except (ValueError, RecursionError) as error:
            raise gr.Error(sentence_of(error), print_exception=False) from error

    return endpoint


def _with_deadline(
    visitors: Visitors, function: Callable[..., Any], turns: Turns | None = None
) -> Callable[..., Any]:
    """End what it generates when its time is up, or when the program that asked has gone."""

    @functools.wraps(function)
    def endpoint(*args: Any, **kwargs: Any) -> Any:
        with visitors.request(_visitor(), turns) as deadline, until(deadline):
            return function(*args, **kwargs)

    return endpoint


def _listed(value: Any) -> Any:
    """A figure as plain values, an array as lists or, a large one, packed; the rest as it is."""
    if isinstance(value, np.ndarray):
        return numbers(value, packed=value.size > MAX_LISTED)
    if is_figure(value):
        return json.loads(str(value.to_json(validate=False)))
    if isinstance(value, dict):
        return {name: _listed(one) for name, one in value.items()}
    return value


def _visitor() -> str:
    """The session of the request that this thread answers; "" outside of one.

    Nobody's either for a tool's call: all of them come through one session.
    """
    request = LocalContext.request.get(None)
    if request is None or request.headers.get(CALLER[0]) == CALLER[1]:
        return ""
    return str(request.session_hash)

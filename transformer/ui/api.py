"""Named, typed endpoints for programs: the same models, runs and sentences as the page.

Indices count from 0, as in Python. A visitor's mistake raises an error with the same sentence that
the Python call raises. What is said of the parameters stands where Gradio looks for it, under Args,
for the page's own description of the API and for the tools.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gradio as gr
from gradio.context import LocalContext
from gradio.events import api

from transformer.inference.patience import until
from transformer.ui.api_values import attention_values, batch_values, position_values, run_values
from transformer.ui.api_whatif import endpoints as what_if
from transformer.ui.experiments import Experiments
from transformer.ui.facts import model_facts
from transformer.ui.limits import AT_ONCE, sentence_of, table
from transformer.ui.service import Service
from transformer.ui.tools import CALLER
from transformer.ui.visitors import Visitors


def add_endpoints(service: Service, experiments: Experiments) -> None:
    """Register the endpoints; call inside a `gr.Blocks` context."""
    default = next(iter(service.models))
    families = {name: model.config.family for name, model in service.models.items()}
    translator = next((n for n, family in families.items() if family == "encoder-decoder"), default)

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
        taken: list[int] | None = None,
        interventions: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Continue a text. Greedy unless temperature, top_k, top_p or min_p is given.

        Gives text, tokens, how many of them were given, why it stopped, every step with its
        candidates, the hypotheses of a search, and the run's id for /attention. An intervention is,
        e.g., {"type": "silence", "stack": "decoder", "layer": 2, "heads": [3]}.

        Args:
            text: what to continue, or what a translator translates
            model: name of one of /models
            max_new_tokens: tokens to generate at most, 1 to 200
            temperature: above 1 evens the probabilities out, below 1 sharpens them
            top_k: draw from so many of the likeliest tokens
            top_p: draw from the likeliest tokens that together reach this probability
            min_p: draw from tokens at least this share as likely as the likeliest
            seed: the same seed draws the same tokens
            beams: 2 or more, with a translator: a beam search that keeps so many hypotheses
            length_penalty: power of the length by which a search divides a hypothesis' score
            taken: ids of tokens that come first, whatever the network says of them
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
            taken=taken or (),
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

        For each: what /generate gives, with the n-best list of hypotheses.

        Args:
            texts: 1 to 8 of them
            model: name of one of /models, an encoder-decoder
            beams: hypotheses that the search keeps; 1 is greedy
            length_penalty: power of the length by which the search divides a hypothesis' score
            max_new_tokens: tokens of a translation at most, 1 to 200
        """
        runs = service.translate(
            model,
            texts,
            beams=beams,
            length_penalty=length_penalty,
            max_new_tokens=max_new_tokens,
        )
        return [run_values(run, service.store.put(run, _visitor())) for run in runs]

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
        run: str, site: str = "decoder.0.self", head: int = 0, row: int = 0
    ) -> dict[str, Any]:
        """One head of a run or batch: scores before the mask, weights, and what is allowed.

        Rows are queries, columns keys.

        Args:
            run: the id that /generate, /translate, /trace or /batch gave
            site: STACK.LAYER.KIND, with a kind of self or cross, counted from 0
            head: counted from 0
            row: the sentence of a batch, counted from 0
        """
        return attention_values(service.store.any(run), site, head, row)

    def positions(run: str, stack: str = "decoder") -> dict[str, Any]:
        """What a stack adds to its tokens to say where they stand: a row a position.

        Args:
            run: the id that /generate, /translate or /trace gave
            stack: encoder or decoder
        """
        return position_values(service.store.run(run), stack)

    def limits() -> dict[str, dict[str, Any]]:
        """How much may be asked at once: each limit with its unit, and what happens beyond it."""
        return table()

    running: tuple[Callable[..., Any], ...] = (
        generate, translate, trace, batch, *what_if(service, experiments),
    )  # fmt: skip
    looking: tuple[Callable[..., Any], ...] = (models, attention, positions, limits)
    for function in running:
        patient = _with_patience(service.visitors, function)
        _add(patient, concurrency_limit=AT_ONCE, concurrency_id="model")
    for function in looking:
        _add(function)


def _add(function: Callable[..., Any], **settings: Any) -> None:
    endpoint = _with_sentences(function)
    api(endpoint, api_name=function.__name__, **settings)


def _with_sentences(function: Callable[..., Any]) -> Callable[..., Any]:
    """Pass a ValueError's sentence on to the client, which would else see no reason."""

    @functools.wraps(function)
    def endpoint(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (ValueError, RecursionError) as error:
            raise gr.Error(sentence_of(error), print_exception=False) from error

    return endpoint


def _with_patience(visitors: Visitors, function: Callable[..., Any]) -> Callable[..., Any]:
    """End what it generates when its time is up, or when the program that asked has gone."""

    @functools.wraps(function)
    def endpoint(*args: Any, **kwargs: Any) -> Any:
        with visitors.request(_visitor()) as patience, until(patience):
            return function(*args, **kwargs)

    return endpoint


def _visitor() -> str:
    """The session of the request that this thread answers; "" outside of one.

    Nobody's either for a tool's call: all of them come through one session.
    """
    request = LocalContext.request.get(None)
    if request is None or request.headers.get(CALLER[0]) == CALLER[1]:
        return ""
    return str(request.session_hash)

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
from gradio.events import api

from transformer.inference.deadline import until
from transformer.ui import api_kept, api_runs, api_whatif
from transformer.ui.experiments import Experiments
from transformer.ui.fair_scheduler import FairScheduler
from transformer.ui.limits import AT_ONCE, sentence_of
from transformer.ui.service import Service
from transformer.ui.visitors import ASKER, Visitors


def add_endpoints(service: Service, experiments: Experiments) -> None:
    """Register the endpoints; call inside a `gr.Blocks` context."""
    asking, score = api_whatif.endpoints(service, experiments)
    looking, view = api_kept.endpoints(service, experiments)
    for function in api_runs.endpoints(service):
        timed = _with_deadline(service.visitors, function, service.shares)
        _add(timed, concurrency_limit=AT_ONCE, concurrency_id="model")
    # They take no place of the others: who held one while waiting for one of these, and the other
    # way round, would wait for ever.
    for function in (*asking, score, view):
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
        try:
            return function(*args, **kwargs)
        except (ValueError, RecursionError) as error:
            raise gr.Error(sentence_of(error), print_exception=False) from error

    return endpoint


def _with_deadline(
    visitors: Visitors, function: Callable[..., Any], shares: FairScheduler | None = None
) -> Callable[..., Any]:
    """End what it generates when its time is up, or when the program that asked has gone."""

    @functools.wraps(function)
    def endpoint(*args: Any, **kwargs: Any) -> Any:
        with visitors.request(ASKER.get(), shares) as deadline, until(deadline):
            return function(*args, **kwargs)

    return endpoint

"""Any server answers for any run: what the page knows of it makes the same one again."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import loops
import pytest
from serving import tiny_translator

from transformer import Model
from transformer.inference import deadline
from transformer.model.interventions import Silence, to_dict
from transformer.runs.plain_values import values_of
from transformer.runs.run import Batch, Run
from transformer.ui import handlers
from transformer.ui.again import MOST, MadeAgain
from transformer.ui.experiments import Experiments
from transformer.ui.fair_scheduler import Resource
from transformer.ui.page_data import run_facts
from transformer.ui.service import Service
from transformer.ui.store import RunExpired
from transformer.ui.view_functions import functions

ALTERED = [to_dict(Silence("decoder", 0, [1]))]
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("tiny", {"max_new_tokens": 6}),
    ("tiny", {"max_new_tokens": 6, "temperature": 0.9, "top_k": 9, "min_p": 0.01, "seed": 4}),
    ("tiny", {"max_new_tokens": 6, "forced_tokens": [5, 6], "interventions": ALTERED}),
    ("tiny-translator", {"max_new_tokens": 6, "beams": 3, "length_penalty": 0.5}),
]


@pytest.fixture(scope="module")
def models(tiny_model: Model, tiny_encoder: Model) -> list[Model]:
    return [tiny_model, tiny_translator(), tiny_encoder]


@pytest.fixture
def here(models: list[Model]) -> Service:
    return Service(models)


@pytest.fixture
def there(models: list[Model]) -> Service:
    """Another server with the same models."""
    return Service(models)


def same(left: Run, right: Run) -> bool:
    sites = left.trace.sites
    return values_of(left) == values_of(right) and all(
        left.trace[site].weights.equal(right.trace[site].weights) for site in sites
    )


@pytest.mark.parametrize(("name", "settings"), REQUESTS)
def test_another_server_makes_the_same_run_under_the_same_id(
    here: Service, there: Service, name: str, settings: dict[str, Any]
) -> None:
    run = here.generate(name, "The fox", **settings)
    key = here.store.put(run)
    facts = run_facts(run, key)
    MadeAgain(there).make({key: facts["again"]})
    assert same(there.store.run(key), run)


def test_a_text_that_was_only_read_is_read_again(here: Service, there: Service) -> None:
    for name, altered in (("tiny-encoder", ()), ("tiny", ALTERED)):
        run = here.read(name, "The fox", altered)
        key = here.store.put(run)
        MadeAgain(there).make({key: run_facts(run, key)["again"]})
        assert same(there.store.run(key), run)


@pytest.mark.parametrize("name", ["tiny", "tiny-translator"])
@pytest.mark.parametrize("hidden", [True, False])
def test_a_batch_is_read_again_as_it_was(
    here: Service, there: Service, name: str, hidden: bool
) -> None:
    facts, _ = handlers.read_batch(here, "me", name, "The fox\nTom ran home", padding_hidden=hidden)
    assert facts is not None
    key = facts["batch"]
    MadeAgain(there).make({key: facts["again"]})
    first, again = here.store.batch(key), there.store.batch(key)
    assert isinstance(again, Batch)
    assert first.labels == again.labels
    for site in first.trace.sites:
        assert first.trace[site].weights.equal(again.trace[site].weights)


def test_a_question_about_a_run_that_is_not_there_is_answered_once_it_says_how_it_was_made(
    here: Service, there: Service
) -> None:
    run = here.generate("tiny", "The fox", max_new_tokens=4)
    key = here.store.put(run)
    ours, theirs = functions(Experiments(here)), functions(Experiments(there))
    asked = {"run": key, "site": "decoder.1.self", "head": 2, "numbers": True, "cells": False}
    assert theirs["heatmap"](asked)["gone"]
    made = {key: run_facts(run, key)["again"]}
    answered = theirs["heatmap"](asked | {"made": made})
    assert answered == ours["heatmap"](asked)
    assert theirs["heatmap"](asked) == answered  # it is kept there now
    assert theirs["kept"]({"runs": [key]}) == {"kept": [True]}


def test_stored_examples_are_known_everywhere(here: Service, there: Service) -> None:
    assert here.examples == there.examples
    assert len({key for keys in here.examples.values() for key in keys}) == 2 * len(here.examples)


def test_a_run_that_was_stopped_early_is_made_as_far_as_it_came(
    here: Service, there: Service
) -> None:
    running = handlers.generate(here, "me", "tiny", "The fox", {"max_new_tokens": 30})
    next(running)
    here.visitors.stop("me")
    *_, (facts, _, _) = running
    assert facts is not None
    assert facts["stopped"] == "cancelled"
    MadeAgain(there).make({facts["run"]: facts["again"]})
    assert list(there.store.run(facts["run"]).labels) == facts["labels"]


def test_many_questions_at_once_make_a_run_once(
    there: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    generate = there.generate

    def counted(name: str, text: str, **settings: Any) -> Run:
        calls.append(text)
        return generate(name, text, **settings)

    monkeypatch.setattr(there, "generate", counted)
    again = MadeAgain(there)
    made = {"a" * 22: {"model": "tiny", "text": "Hello", "settings": {"max_new_tokens": 9}}}
    threads = [threading.Thread(target=again.make, args=[made]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert calls == ["Hello"]
    assert there.store.has("a" * 22)


def test_where_too_many_are_made_the_page_is_told_to_ask_on(there: Service) -> None:
    there.shares["model"].resource = Resource(0, threads=0)
    with pytest.raises(RunExpired, match="The server is busy with other requests"):
        MadeAgain(there).make({"d" * 22: GOOD})


def test_an_idle_view_of_a_run_that_is_not_there_is_answered_too(
    here: Service, there: Service
) -> None:
    run = here.generate("tiny", "The fox", max_new_tokens=4)
    key = here.store.put(run)
    asked = {"run": key, "stack": "decoder", "kind": "self"}
    metrics = functions(Experiments(there))["metrics"]
    assert inspect.iscoroutinefunction(metrics)
    assert loops.run(metrics(asked))["gone"]
    assert "busy" not in str(loops.run(metrics(asked | {"made": {key: {"model": "no"}}})))
    made = {key: run_facts(run, key)["again"]}
    assert "error" not in loops.run(metrics(asked | {"made": made}))


def test_nothing_is_kept_of_a_run_for_which_nobody_waits(there: Service) -> None:
    gone = threading.Event()
    gone.set()
    made = {"b" * 22: {"model": "tiny", "text": "Hello", "settings": {"max_new_tokens": 9}}}
    with (
        deadline.until(deadline.Deadline(60, gone)),
        pytest.raises(ValueError, match="nobody waits"),
    ):
        MadeAgain(there).make(made)
    assert not there.store.has("b" * 22)


GOOD = {"model": "tiny", "text": "Hello", "settings": {"max_new_tokens": 3}}


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        ([], "must be an object of at most 3 runs"),
        ({f"{place:022}": GOOD for place in range(MOST + 1)}, "at most 3 runs"),
        ({"short": GOOD}, "by its id"),
        ({"../../etc/passwd-aaaaaa": GOOD}, "by its id"),
        ({"c" * 22: 7}, "how it was made"),
        ({"c" * 22: GOOD | {"model": "none"}}, "model must be one of"),
        ({"c" * 22: GOOD | {"settings": 3}}, "settings must be an object"),
        ({"c" * 22: GOOD | {"settings": {"name": "x"}}}, "settings must be an object"),
        ({"c" * 22: GOOD | {"settings": {"max_new_tokens": 10**9}}}, "max_new_tokens"),
        ({"c" * 22: GOOD | {"text": "x" * 3000}}, "at most 2,000 characters"),
        ({"c" * 22: {"model": "tiny", "texts": 5}}, "must be a list"),
        ({"c" * 22: {}}, "model must be one of"),
    ],
)
def test_what_makes_no_run_gets_a_sentence(there: Service, made: Any, sentence: str) -> None:
    asked = {"run": "c" * 22, "site": "decoder.0.self", "head": 0, "made": made}
    assert sentence in functions(Experiments(there))["heatmap"](asked)["error"]
    assert not there.store.has("c" * 22)

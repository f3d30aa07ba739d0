"""A run from the page's state, and again from what the page knows of it: on any server the same."""

import threading
from typing import Any

import pytest
from kit import aio
from kit.client import CONTROLS
from kit.serving import tiny_translator

from transformer import Model
from transformer.inference import deadline
from transformer.ui import handlers
from transformer.ui.errors import RunExpired
from transformer.ui.fair_scheduler import Resource
from transformer.ui.limits import MAX_MADE
from transformer.ui.link import read_state
from transformer.ui.page_data import run_facts
from transformer.ui.page_request import Regenerator, run_of, settings_of
from transformer.ui.resources import resource_app
from transformer.ui.service import Service


@pytest.fixture(scope="module")
def models(tiny_model: Model, tiny_encoder: Model) -> list[Model]:
    return [tiny_model, tiny_translator(), tiny_encoder]


@pytest.fixture(scope="module")
def here(models: list[Model]) -> Service:
    return Service(models)


@pytest.fixture
def there(models: list[Model]) -> Service:
    """Another server with the same models."""
    return Service(models)


GOOD = {"model": "tiny", "text": "Hello", "method": "greedy", "length": "3"}


@pytest.mark.parametrize("hidden", [True, False])
def test_a_batch_is_read_again_as_it_was(here: Service, there: Service, hidden: bool) -> None:
    for name in ("tiny", "tiny-translator"):
        lines = "The fox\nTom ran home"
        facts, _ = handlers.read_batch(here, "me", name, lines, padding_hidden=hidden)
        assert facts is not None
        key = facts["batch"]
        Regenerator(there).make({key: facts["link"] | {n: facts[n] for n in ("model", "alter")}})
        first, again = here.store.batch(key), there.store.batch(key)
        assert first.labels == again.labels
        for site in first.trace.sites:
            assert first.trace[site].pattern.equal(again.trace[site].pattern)


def test_an_unknown_run_is_regenerated_from_its_request(here: Service, there: Service) -> None:
    run = here.generate("tiny", "The fox", max_new_tokens=4)
    key = here.store.put(run)
    asked = {"run": key, "site": "decoder.1.self", "head": 1, "numbers": True}
    made = asked | {"made": {key: run_facts(run, key, here.model("tiny"))["link"]}}
    app = resource_app(there)
    answers = (aio.answer(app, "heatmap", "POST", json=data) for data in (asked, made, asked))
    lost, first, again = answers
    assert (lost.status_code, first.status_code) == (410, 200)
    assert again.content == first.content  # it is kept there now
    assert there.store.run(key).ids == run.ids


def test_every_server_has_the_same_examples_and_opens_with_them(
    here: Service, there: Service
) -> None:
    assert here.examples == there.examples
    for name, (run, _) in here.examples.items():
        asked = read_state({"model": name, "tab": "masks"})
        assert run_of(there, asked) is there.store.run(run)


def test_a_busy_server_asks_the_page_to_retry_a_regeneration(there: Service) -> None:
    there.shares["model"].resource = Resource(0, threads=0)
    with pytest.raises(RunExpired, match="The server is busy with other requests"):
        Regenerator(there).make({"d" * 22: GOOD})


def test_an_abandoned_regeneration_keeps_nothing(there: Service) -> None:
    gone = threading.Event()
    gone.set()
    with (
        deadline.until(deadline.Deadline(60, gone)),
        pytest.raises(ValueError, match="nobody waits"),
    ):
        Regenerator(there).make({"b" * 22: GOOD})
    assert not there.store.has("b" * 22)


NO_RUNS: list[tuple[Any, str]] = [
    ([], "must be an object of at most 3 runs"),
    ({f"{place:022}": GOOD for place in range(MAX_MADE + 1)}, "at most 3 runs"),
    ({"../../etc/passwd-aaaaaa": GOOD}, "by its id"),
    ({"c" * 22: 7}, "how it was made"),
    ({"c" * 22: GOOD | {"model": "none"}}, "model must be one of"),
    ({"c" * 22: GOOD | {"length": 3}}, "how it was made"),
    ({"c" * 22: GOOD | {"name": "x"}}, "is unknown or unreadable"),
    ({"c" * 22: GOOD | {"length": "1000000000"}}, "max_new_tokens"),
    ({"c" * 22: GOOD | {"text": "x" * 3000}}, "at most 2,000 characters"),
    ({"c" * 22: {"model": "tiny", "lines": "a\n" * 9}}, "from 1 to 8 texts"),
    ({"c" * 22: {"model": "tiny", "lines": "a" * 16_001}}, "at most 16,000 characters"),
]


def test_an_invalid_regeneration_is_refused(there: Service) -> None:
    for made, sentence in NO_RUNS:
        with pytest.raises(ValueError, match=sentence):
            Regenerator(there).make(made)
        assert not there.store.has("c" * 22)


def test_invalid_controls_are_refused() -> None:
    for changed, altered, sentence in (
        ({"temperature": None}, {}, "temperature is empty: give a number"),
        ({"length": None, "method": "greedy"}, {}, "max_new_tokens is empty"),
        ({"method": ["sample"]}, {}, "method must be one of"),
        ({}, {"seed": [1]}, r"an object with \['interventions', 'forced_tokens'\]; got"),
        ({}, "x", "an object with"),
    ):
        with pytest.raises(ValueError, match=sentence):
            settings_of(CONTROLS | changed, altered)

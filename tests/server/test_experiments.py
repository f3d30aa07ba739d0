"""Questions that need the network, as the page asks them: right answers, or one sentence."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from kit.client import asking
from kit.serving import tiny_translator

from transformer import Model
from transformer.analysis import text_before
from transformer.inference import deadline
from transformer.interventions.descriptions import Ablate
from transformer.server.http.slots import Caller
from transformer.server.kept import experiments as module
from transformer.server.kept.service import Service
from transformer.views.whatif.breaks import answer_intact_text

SETTINGS = {"max_new_tokens": 8, "temperature": 0.9, "top_k": 20, "seed": 5}
SILENCE = Ablate("decoder", 0, [0, 1])


@pytest.fixture(scope="module")
def service(tiny_model: Model, tiny_encoder: Model) -> Service:
    return Service([tiny_model, tiny_translator(), tiny_encoder])


@pytest.fixture
def altered(service: Service) -> str:
    """The id of a run with two heads silent."""
    run = service.generate("tiny", "The fox", **SETTINGS, interventions=[SILENCE])
    return service.store.put(run)


def ask(service: Service, view: str, **data: Any) -> dict[str, Any]:
    """As the page asks."""
    return asking(service, view)(data)


QUESTIONS = {
    "importance": {"stack": "decoder", "kind": "self"},
    "patching": {"other": "The bird"},
}


def question(service: Service, name: str, run: str, place: int = 4) -> dict[str, Any]:
    return ask(service, name, run=run, position=place, **QUESTIONS[name])


@pytest.fixture
def fresh(service: Service) -> str:
    """The id of a run of which no importance is known yet."""
    return service.store.put(service.generate("tiny", "The fox", **SETTINGS))


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_experiment_ends_at_its_deadline_or_when_cancelled(service, name, fresh, monkeypatch):
    """Between two of its batches, not only before the first one."""
    monkeypatch.setattr(service.queries, "_seconds", -1.0)
    sentence = "this takes longer than one request may: take a shorter text"
    assert question(service, name, fresh) == {"error": sentence}
    assert ask(service, "broken_text", run=fresh) == {"error": sentence}
    monkeypatch.undo()
    monkeypatch.setattr(text_before, "MAX_WEIGHTS", 1)  # one variant a batch
    network = type(service.model("tiny").network)
    forward, gone, read = network.forward, threading.Event(), []

    def counted(*args: Any, **settings: Any) -> Any:
        read.append(1)
        if len(read) == 3:
            gone.set()
        return forward(*args, **settings)

    monkeypatch.setattr(network, "forward", counted)
    with deadline.until(deadline.Deadline(60, gone)):
        assert question(service, name, fresh) == {"error": "nobody waits for this any more"}
    assert len(read) == 3
    assert "figure" in question(service, name, fresh)


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_experiment_too_large_for_its_time_is_refused_at_once(service, name, fresh, monkeypatch):
    tiny = service.model("tiny")
    variants = {"importance": 2 * 2, "patching": 2 * 4}[name]  # layers x heads; layers x places
    monkeypatch.setattr(module, "MAX_OPERATIONS", 2 * tiny.n_parameters * variants * 4 - 1)
    monkeypatch.setattr(service.queries, "_ask", None)  # would be a TypeError
    sentence = question(service, name, fresh)["error"]
    assert sentence.startswith(f"this would read {variants * 4:,} tokens, about ")
    with pytest.raises(TypeError, match="NoneType"):
        question(service, name, fresh, 3)


@pytest.mark.parametrize(("cut", "more", "same"), [(-1, [], -1), (0, [5], 0), (3, [5], 3)])
def test_texts_part_where_their_tokens_do_or_the_shorter_ends(service, altered, cut, more, same):
    run = service.store.run(altered)
    ids = [*run.ids[: cut or None], *more]
    models: Any = SimpleNamespace(ask=lambda *_, **__: ids, model=service.model)
    answer = answer_intact_text(models, run)
    assert answer["same"] == (same if same > 0 else len(run.ids) + same)
    assert len(answer["labels"]) == len(ids)


def test_experiments_run_one_at_a_time_with_bounded_waiting(service, altered, monkeypatch):
    gone = threading.Event()
    gone.set()
    other = service.shares["experiments"].join(Caller("another"))
    with deadline.until(deadline.Deadline(60, gone)):  # who has gone does not wait
        assert "The server is busy" in ask(service, "intact_text", run=altered)["error"]
    monkeypatch.setattr(module, "PATIENCE_S", 0.01)
    assert "The server is busy" in ask(service, "broken_text", run=altered)["error"]
    other.leave()
    assert "error" not in ask(service, "broken_text", run=altered)

"""What the tab Learn asks: whose training it is, what is told, and the model that it gives."""

from __future__ import annotations

import base64
import io
import os
import re
import signal
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import transformer
from transformer import Model
from transformer.learning import trainer as trainer_module
from transformer.learning.plan import Plan
from transformer.learning.recorded import PLANS, make
from transformer.learning.trainer import Trainer
from transformer.training.exercises import EXERCISES
from transformer.ui import handlers, learning, limits
from transformer.ui.examples import example_of
from transformer.ui.open_link import opened
from transformer.ui.service import Service
from transformer.ui.sessions import ADDRESS, current_session, shares
from transformer.ui.trainings import Trainings

pytestmark = pytest.mark.slow

TINY = {"task": "copy", "n_steps": 40, "width": 8, "n_heads": 1, "n_layers": 1}
LONG_S = 240  # that a busy machine may need to start a process


@contextmanager
def asked_by(who: ContextVar[str], name: str) -> Iterator[None]:
    token = who.set(name)
    try:
        yield
    finally:
        who.reset(token)


visiting, coming_from = partial(asked_by, current_session), partial(asked_by, ADDRESS)


def wait_until(asked: Callable[[], object]) -> None:
    give_up = time.monotonic() + LONG_S
    while not asked():
        assert time.monotonic() < give_up
        time.sleep(0.02)


@pytest.fixture
def service(tiny_model: Model) -> Iterator[Service]:
    made = Service([tiny_model])
    yield made
    for training in made.budget.of(limits.TRAININGS):
        made.trainings.leave(training.visitor)
    for trainer in made.trainings._free:
        trainer.close()


def until(service: Service, key: str, state: str) -> dict[str, Any]:
    """What is told once a training is in this state and something is known of it."""
    give_up = time.monotonic() + LONG_S
    while (facts := learning.learned(service, {"id": key}))["state"] != state or not facts["kept"]:
        assert facts["state"] != "ended", facts["why"]
        assert time.monotonic() < give_up
        time.sleep(0.05)
    return facts


# --- a training of a process of its own -----------------------------------------------------------


def test_a_training_rests_makes_a_step_goes_on_and_is_a_model_afterwards(
    service: Service, tmp_path: Path
) -> None:
    with visiting("me"):
        key = learning.train(service, {"plan": {**TINY, "n_steps": 2000}, "question": "ab"})["id"]
        learning.steer(service, {"id": key, "do": "pause"})
        rests = until(service, key, "paused")
        assert rests["step"] == rests["at"] == rests["kept"][-1]
        assert (rests["question"], rests["wanted"]) == ("ab", "ab")
        learning.steer(service, {"id": key, "do": "step"})
        while (facts := learning.learned(service, {"id": key}))["step"] == rests["step"]:
            time.sleep(0.05)
        assert facts["step"] == rests["step"] + 1
        learning.steer(service, {"id": key, "do": "stop"})
        while (stopped := learning.learned(service, {"id": key}))["state"] != "ended":
            time.sleep(0.05)
        assert stopped["at"] == facts["step"] == stopped["kept"][-1]
        assert stopped["why"] == "Stopped."
        early = learning.learned(service, {"id": key, "at": 1, "question": "abcd"})
        assert (early["at"], early["wanted"]) == (1, "abcd")
        assert early["said"][0].startswith("After step 1 of 2,000: loss ")
        packed = learning.checkpoint(service, {"id": key, "at": 1})
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(packed["base64"]))) as files:
        files.extractall(tmp_path)
    loaded = transformer.load(tmp_path / "copy-1")
    assert loaded.metadata is not None
    assert (loaded.metadata["exercise"], loaded.metadata["steps"]) == ("copy", 1)
    assert example_of(loaded).text == EXERCISES["copy"].example + "="


def test_the_process_learns_what_the_same_plan_learns_here(service: Service) -> None:
    plan = Plan(**TINY)
    here = make(plan)
    with visiting("me"):
        key = learning.train(service, {"plan": TINY})["id"]
        while learning.learned(service, {"id": key})["state"] != "ended":
            time.sleep(0.05)
        there = learning._training(service, key)
    assert there.why == "done"
    assert there.record.losses == pytest.approx(here.losses, rel=1e-4)
    assert sorted(there.record.snapshots) == sorted(here.snapshots) == plan.kept()


# --- turns, without a process ---------------------------------------------------------------------


class Still(Trainer):
    """A process that trains nothing and does what it is told."""

    def begin(self, key: str, job: Any) -> None:
        self.key = key
        self._hear(key, "state", "running")

    def tell(self, key: str, what: str, value: Any = None) -> None:
        if what == "stop" and key == self.key:
            self.key = ""
            self._hear(key, "end", "stopped")
        elif what == "pause":
            self._hear(key, "state", "paused")


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Trainings:
    monkeypatch.setattr("transformer.ui.trainings.Trainer", Still)
    return Trainings(shares()["trainings"])


def test_one_is_trained_at_a_time_and_the_others_are_told_how_many_are_before_them(
    turns: Trainings,
) -> None:
    plan = Plan(**TINY)
    first, second, third = (turns.begin(name, plan) for name in ("a", "b", "c"))
    assert [one.state for one in (first, second, third)] == ["running", "waiting", "waiting"]
    assert [turns.before(one) for one in (first, second, third)] == [0, 1, 2]
    turns.leave("a")
    assert [one.state for one in (first, second, third)] == ["ended", "running", "waiting"]
    turns.steer(third, "stop")
    assert (third.state, turns._line.counts()) == ("ended", {"running": 1, "waiting": 0})
    for place in range(limits.MAX_TRAININGS_WAITING):
        turns.begin(f"visitor {place}", plan)
    with pytest.raises(ValueError, match="16 trainings are waiting; see a recorded run"):
        turns.begin("one more", plan)


def test_one_address_with_thirty_trainings_leaves_the_next_place_to_another(
    turns: Trainings,
) -> None:
    plan, many = Plan(**TINY), []
    with coming_from("127.0.0.1"):
        for place in range(30):
            with suppress(ValueError):
                many.append(turns.begin(f"visitor {place}", plan))
    assert len(many) == 1 + limits.MAX_TRAININGS_WAITING
    with coming_from("127.0.0.2"):
        other = turns.begin("other", plan)
    assert (many[-1].state, many[-1].why) == ("ended", "pushed out")
    assert (turns.before(other), turns.before(many[1])) == (1, 2)
    turns.leave("visitor 0")
    assert (other.state, many[1].state) == ("running", "waiting")
    turns.leave("other")
    assert many[1].state == "running"


def test_a_process_that_is_stopped_loses_its_place_to_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trainer_module, "SILENT_S", 2.0)
    two = Trainings(shares()["trainings"])
    try:
        stuck = two.begin("a", Plan(**TINY | {"n_steps": 2000}))
        wait_until(lambda: stuck.record.losses)
        process = stuck.trainer._process
        next_one = two.begin("b", Plan(**TINY))
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: next_one.state != "waiting")  # on a busy machine it may have ended too
        assert (stuck.state, stuck.why, process.wait(5)) == ("ended", "broken", -signal.SIGKILL)
    finally:
        for visitor in "ab":
            two.leave(visitor)
        for one in two._free + [one.trainer for one in two._underway.values()]:
            if one is not None:
                one.close()


def test_a_visitor_has_one_training_and_nobody_else_finds_it(turns: Trainings) -> None:
    plan = Plan(**TINY)
    first = turns.begin("a", plan)
    with pytest.raises(ValueError, match="no longer keeps this training"):
        turns.find("b", first.key)
    second = turns.begin("a", plan)
    assert turns.find("a", second.key).state == "running"
    with pytest.raises(ValueError, match="no longer keeps this training"):
        turns.find("a", first.key)
    with pytest.raises(ValueError, match=r"do must be one of \['pause', .*\]; got 'fly'"):
        turns.steer(second, "fly")
    with pytest.raises(ValueError, match="nothing can be trained on this server"):
        Trainings(shares(trainings=0)["trainings"]).begin("a", plan)


def test_what_rests_while_others_wait_or_is_looked_at_by_nobody_ends(
    turns: Trainings, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, now = Plan(**TINY), time.monotonic()
    resting, waiting = turns.begin("a", plan), turns.begin("b", plan)
    turns.steer(resting, "pause")
    for later, states in ((59, ("paused", "waiting")), (61, ("ended", "running"))):
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        turns.find("a", resting.key)
        turns.find("b", waiting.key)
        turns.sweep()
        assert (resting.state, waiting.state) == states
    assert resting.why == "crowded"
    monkeypatch.setattr(time, "monotonic", lambda: now + 61 + 91)
    turns.sweep()
    assert waiting.state == "ended"
    monkeypatch.setattr(time, "monotonic", lambda: now + 61 + 91 + limits.MAX_AGE_S)
    with pytest.raises(ValueError, match="no longer keeps this training"):
        turns.find("b", waiting.key)


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (None, "a training must be an object of"),
        ({"preset": "gpt"}, "with a task"),
        ({**TINY, "fly": 1}, "a training must be an object of"),
        ({**TINY, "n_steps": 2001}, "n_steps must be a whole number from 1 to 2,000; got 2001"),
        ({**TINY, "n_heads": 3}, "n_heads must divide d_model; got d_model=8, n_heads=3"),
    ],
)
def test_what_cannot_be_trained_is_told_in_a_sentence(
    service: Service, plan: Any, told: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        learning.train(service, {"plan": plan})


# --- recorded trainings, and models of a visit ----------------------------------------------------


@pytest.mark.parametrize("task", PLANS)
def test_a_recorded_training_can_be_looked_at_by_all(service: Service, task: str) -> None:
    facts = learning.learned(service, {"id": f"recorded-{task}"})
    assert (facts["state"], facts["at"]) == ("ended", facts["total"])
    assert facts["answer"] == facts["wanted"]
    first = learning.learned(service, {"id": f"recorded-{task}", "at": 1})
    assert first["answer"] != first["wanted"]
    assert set(first["pictures"]) == set(facts["pictures"]) != set()


def test_eight_visits_at_once_have_each_their_own_network(service: Service) -> None:
    together = threading.Barrier(8)
    found: dict[str, tuple[str, str]] = {}

    def visit(name: str, step: int) -> None:
        with visiting(name):
            together.wait()
            model = learning.adopt(service, {"id": "recorded-copy", "at": step})["model"]
            (*_, (facts, _, _)) = handlers.generate(
                service, name, model, "bdface=", {"max_new_tokens": 8}
            )
            assert facts is not None
            found[name] = (model, "".join(facts["labels"]))

    steps = PLANS["copy"].kept()[-8:]
    threads = [
        threading.Thread(target=visit, args=(f"visitor {place}", step))
        for place, step in enumerate(steps)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    for name, (model, text) in found.items():
        assert [own for _, own in service.names(name)] == ["tiny", model]
        alone = service.own.find(model, name).model.generate("bdface=", max_new_tokens=8)
        assert text == "".join(alone.labels)
        for other in found:
            *_, (facts, status, _) = handlers.generate(
                service, other, model, "ab=", {"max_new_tokens": 4}
            )
            assert (status["kind"] == "error") == (other != name)
            assert (facts is None) == (other != name)
    assert [own for _, own in service.names("somebody else")] == ["tiny"]


def test_a_link_to_another_visits_network_says_whose_it_was(service: Service) -> None:
    with visiting("me"):
        model = learning.adopt(service, {"id": "recorded-induction", "at": None})["model"]
    settings = dict(
        method="greedy", temperature=0.7, top_k=0, top_p=1, beams=4, penalty=1, length=5, seed=0
    )
    mine = [*opened(service, "me", f"model={model}", settings)]
    assert mine[-1]["share"]["problems"] == []
    assert mine[0]["model"].value == model
    theirs = [*opened(service, "you", f"model={model}", settings)]
    assert theirs[0]["model"].value == "tiny"
    (problem,) = theirs[-1]["share"]["problems"]
    assert "was trained in a visit: it belonged to that visit alone" in problem


def test_a_visits_networks_go_soon_after_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with visiting("me"):
        one = learning.adopt(service, {"id": "recorded-copy", "at": 1})["model"]
    now = time.monotonic()
    service.sessions.leave("me")
    monkeypatch.setattr(time, "monotonic", lambda: now + limits.LEFT_AGE_S + 1)
    service.sweep()
    assert service.budget.held()["models"]["count"] == 0
    with pytest.raises(ValueError, match="belonged to that visit alone"):
        service.model(one, "me")


def test_silencing_every_head_of_a_network_that_learned_ends_its_right_answers(
    service: Service,
) -> None:
    with visiting("me"):
        model = learning.adopt(service, {"id": "recorded-copy", "at": None})["model"]
        site = learning.learned(service, {"id": "recorded-copy"})["best"]["site"]
        stack, layer, kind = site.split(".")
        heads = list(range(service.model(model).config.n_heads))
        silence = {"type": "ablate", "stack": stack, "layer": int(layer), "heads": heads}
        silence |= {"kind": kind}
        found = learning.examined(service, {"model": model, "interventions": [silence]})
    assert found["intact"] >= 97
    assert found["altered"] < 60
    with visiting("me"), pytest.raises(ValueError, match="tiny has learned none of the exercises"):
        learning.examined(service, {"model": "tiny"})

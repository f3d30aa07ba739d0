"""The server side of the tab Learn: who owns a training, its progress, and its model."""

import base64
import io
import math
import os
import resource
import signal
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit import aio, prefork
from kit.client import visiting

import transformer
from transformer import Model
from transformer.inference.deadline import renewed
from transformer.learning import Plan, train
from transformer.learning.exercises import EXERCISES
from transformer.learning.training import BUNDLED
from transformer.learning.worker import BROKEN, STOPPED, Trainer
from transformer.server.http import limits
from transformer.server.http.requests import answering, shares
from transformer.server.http.slots import Caller
from transformer.server.kept.page_models import example_of
from transformer.server.kept.service import Service
from transformer.server.kept.store import RECORDS, MemoryBudget
from transformer.server.kept.trainings import CROWDED, PUSHED_OUT, Trainings
from transformer.server.learn import learning
from transformer.server.page import presses

pytestmark = pytest.mark.slow

TINY = {"task": "copy", "n_steps": 40, "width": 8, "n_heads": 1, "n_layers": 1}


@pytest.fixture
def service(tiny_model: Model) -> Service:
    return Service([tiny_model])


# --- trainings in a separate process --------------------------------------------------------------


@pytest.fixture(scope="module")
def trains(tiny_model: Model) -> Iterator[Service]:
    """Its process is used again: none starts as quickly."""
    made = Service([tiny_model])
    yield made
    made.trainings.close()


def test_a_training_is_stopped_and_is_a_model_afterwards(trains, tmp_path):
    """And the next one, in the same process, learns what the same plan learns here."""
    service, facts = trains, dict[str, Any]()
    with visiting("me"):
        key = learning.train(service, {"plan": {**TINY, "n_steps": 2000}})["id"]

        def stands(state: str) -> bool:
            facts.update(learning.learned(service, {"id": key}))
            return facts["state"] == state and bool(facts["kept"])

        learning.steer(service, {"id": key, "do": "pause"})
        aio.wait_until(lambda: stands("paused"))
        learning.steer(service, {"id": key, "do": "stop"})
        aio.wait_until(lambda: stands("ended"))
        assert facts["at"] == facts["step"] == facts["kept"][-1]
        assert facts["why"] == "Stopped."
        early = learning.learned(service, {"id": key, "at": 1, "question": "abcd"})
        assert (early["at"], early["wanted"]) == (1, "abcd")
        packed = learning.checkpoint(service, {"id": key, "at": 1})
        most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, most[1]))  # as on a full disk
        try:
            with pytest.raises(ValueError, match="has no room to write the checkpoint"):
                learning.checkpoint(service, {"id": key, "at": 1})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, most)

        key = learning.train(service, {"plan": TINY})["id"]
        aio.wait_until(lambda: stands("ended"))
        there = learning._training(service, key).record
    *_, here = train(Plan(**TINY))
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(packed["base64"]))) as files:
        files.extractall(tmp_path)
    loaded = transformer.load(tmp_path / "copy-1")
    assert loaded.metadata is not None
    assert (loaded.metadata["exercise"], loaded.metadata["steps"]) == ("copy", 1)
    assert example_of(loaded).text == EXERCISES["copy"].example + "="
    assert facts["why"] == "All steps are done."
    assert there.losses == pytest.approx(here.losses, rel=1e-4)
    assert there.measurements[-1].accuracy == here.measurements[-1].accuracy
    assert sorted(there.networks) == sorted(here.networks) == here.plan.kept()
    np.testing.assert_allclose(there.networks[1], here.networks[1], atol=1e-3)


def test_a_process_that_is_stopped_loses_its_place_to_the_next_one(trains):
    stuck = trains.trainings.begin("a", Plan(**TINY | {"n_steps": 2000}))
    aio.wait_until(lambda: stuck.record.losses)
    process = stuck.trainer._process
    next_one = trains.trainings.begin("b", Plan(**TINY))
    os.kill(process.pid, signal.SIGSTOP)
    aio.wait_until(lambda: trains.trainings.sweep() or stuck.state == "ended")
    # on a busy machine it may have ended too
    aio.wait_until(lambda: next_one.state != "waiting")
    assert (stuck.state, stuck.why, process.wait(5)) == ("ended", BROKEN, -signal.SIGKILL)


ENDS = """
import os, signal
from transformer.learning.worker import Trainer
trainer = Trainer()
trainer._process = trainer._started()
os.kill(trainer._process.pid, signal.SIGSTOP)
print(trainer._process.pid, flush=True)
"""


def test_a_process_that_cannot_be_started_ends_its_training(service, monkeypatch):
    def no_memory(*_: Any, **__: Any) -> Any:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr("transformer.learning.worker.subprocess.Popen", no_memory)
    with visiting("me"):
        for _ in range(2):  # its place is free again
            key = learning.train(service, {"plan": TINY})["id"]
            facts = learning.learned(service, {"id": key})
            assert (facts["state"], facts["why"]) == ("ended", BROKEN[0])
    assert service.shares["trainings"].counts() == {"running": 0, "waiting": 0}


def test_a_stopped_process_ends_with_the_server():
    done = prefork.run([sys.executable, "-c", ENDS])
    state = Path(f"/proc/{int(done.stdout)}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


# --- turns, without a process ---------------------------------------------------------------------


class Still(Trainer):
    """A worker that trains nothing and obeys at once."""

    def begin(self, plan: Plan, seconds: float, hear: Any) -> None:
        self.hear = hear
        hear("running", None, None)

    def tell(self, *command: Any) -> None:
        if command == ("stop",):
            self.hear("ended", STOPPED, None)
        elif command == ("pause",):
            self.hear("paused", None, None)


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Trainings:
    monkeypatch.setattr("transformer.server.kept.trainings.Trainer", Still)
    return Trainings(shares()["trainings"], MemoryBudget())


def test_trainings_run_one_at_a_time_and_know_their_place_in_line(turns):
    plan = Plan(**TINY)
    first, second, third = (turns.begin(name, plan) for name in ("a", "b", "c"))
    assert [one.state for one in (first, second, third)] == ["running", "waiting", "waiting"]
    assert [turns.before(one) for one in (first, second, third)] == [0, 1, 2]
    turns.leave("a")
    assert [one.state for one in (first, second, third)] == ["ended", "running", "waiting"]
    turns.steer(third, "stop")
    assert (third.state, turns._slots.counts()) == ("ended", {"running": 1, "waiting": 0})
    for place in range(limits.MAX_LONG_WAITING):
        turns.begin(f"visitor {place}", plan)
    with pytest.raises(ValueError, match="16 training runs are waiting; look at a recorded one"):
        turns.begin("one more", plan)


def test_a_training_whose_process_still_starts_is_stopped_at_once(turns, monkeypatch):
    monkeypatch.setattr(
        Still, "begin", lambda self, plan, seconds, hear: vars(self).update(hear=hear)
    )
    monkeypatch.setattr(Still, "tell", lambda self, *command: None)
    first, second = (turns.begin(name, Plan(**TINY)) for name in ("a", "b"))
    process = first.trainer
    turns.steer(first, "stop")
    process.hear("running", None, None)
    assert (first.state, first.why, second.trainer) == ("ended", STOPPED, None)
    process.hear("ended", STOPPED, None)  # now it is free for the next one
    assert (first.state, second.trainer) == ("ended", process)


def test_a_visitor_has_one_training_that_no_other_can_find(turns):
    plan = Plan(**TINY)
    first, second = turns.begin("a", plan), turns.begin("a", plan)
    assert turns.find("a", second.key).state == "running"
    for visitor, key in (("b", second.key), ("a", first.key)):
        with pytest.raises(ValueError, match="no longer keeps this training run"):
            turns.find(visitor, key)
    with pytest.raises(ValueError, match=r"do must be one of \['pause', .*\]; got 'fly'"):
        turns.steer(second, "fly")
    with pytest.raises(ValueError, match="nothing can be trained on this server"):
        Trainings(shares(trainings=0)["trainings"], MemoryBudget()).begin("a", plan)


def test_programs_without_a_session_each_have_their_own_training(turns):
    plan = Plan(**TINY)
    first, second = turns.begin("", plan), turns.begin("", plan)
    assert [one.state for one in (first, second)] == ["running", "waiting"]
    assert turns.find("", first.key) is first
    assert turns.find("", second.key) is second
    turns.leave("")
    assert first.state == "running"


def test_a_training_ends_whose_beginner_left_without_its_key(turns):
    gone = threading.Event()
    with renewed(math.inf, gone):
        training = turns.begin("a", Plan(**TINY))
    turns.sweep()
    assert training.state == "running"
    gone.set()
    turns.sweep()
    assert (training.state, turns._slots.counts()["running"]) == ("ended", 0)


def test_paused_or_unwatched_trainings_end_while_others_wait(turns, monkeypatch):
    plan, now = Plan(**TINY), time.monotonic()
    resting, waiting = turns.begin("a", plan), turns.begin("b", plan)
    turns.steer(resting, "pause")
    for later, states in ((59, ("paused", "waiting")), (61, ("ended", "running"))):
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        turns.find("a", resting.key)
        turns.find("b", waiting.key)
        turns.sweep()
        assert (resting.state, waiting.state) == states
    assert resting.why == CROWDED
    monkeypatch.setattr(time, "monotonic", lambda: now + 61 + 91)
    turns.sweep()
    assert waiting.state == "ended"
    monkeypatch.setattr(time, "monotonic", lambda: now + 61 + 91 + limits.MAX_AGE_S)
    with pytest.raises(ValueError, match="no longer keeps this training run"):
        turns.find("b", waiting.key)


def test_a_process_without_a_training_is_ended_after_two_minutes(turns, monkeypatch):
    closed, now = list[Trainer](), time.monotonic()
    monkeypatch.setattr(Still, "close", lambda self: closed.append(self))
    training = turns.begin("a", Plan(**TINY))
    for later, state, n_closed in (
        (80, "running", 0), (160, "running", 0), (160, "stop", 0), (279, "ended", 0),
        (281, "ended", 1),
    ):  # fmt: skip
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        turns.find("a", training.key)
        if state == "stop":
            turns.steer(training, "stop")
        turns.sweep()
        assert (training.state, len(closed)) == (state.replace("stop", "ended"), n_closed)


def test_a_newcomer_takes_the_place_of_the_address_with_most_trainings(turns):
    plan = Plan(**TINY)
    crowd = [turns.begin(f"visitor {n}", plan) for n in range(1 + limits.MAX_LONG_WAITING)]
    with answering(Caller(address="elsewhere")):
        newcomer = turns.begin("newcomer", plan)
    assert (crowd[-1].state, crowd[-1].why) == ("ended", PUSHED_OUT)
    assert {training.state for training in (*crowd[1:-1], newcomer)} == {"waiting"}
    assert turns._slots.counts()["waiting"] == limits.MAX_LONG_WAITING


def test_an_impossible_plan_is_refused(service):
    for plan, sentence in (
        ({"preset": "gpt"}, "with a task"),
        ({**TINY, "fly": 1}, "a training must be an object of"),
        ({**TINY, "n_steps": 2001}, "n_steps must be a whole number from 1 to 2,000; got 2001"),
        ({**TINY, "n_heads": 3}, "n_heads must divide d_model; got d_model=8, n_heads=3"),
    ):
        with pytest.raises(ValueError, match=sentence):
            learning.train(service, {"plan": plan})


# --- recorded trainings, and models of a visit ----------------------------------------------------


def test_a_recorded_training_can_be_looked_at_by_all_and_is_counted_once(service):
    for task in BUNDLED:
        facts = learning.learned(service, {"id": f"recorded-{task}"})
        assert (facts["state"], facts["at"]) == ("ended", facts["total"])
        assert facts["answer"] == facts["wanted"]
        first = learning.learned(service, {"id": f"recorded-{task}", "at": 1})
        assert first["answer"] != first["wanted"]
        assert set(first["pictures"]) == set(facts["pictures"]) != set()
    held = service.budget.held()[RECORDS]
    assert held["count"] == len(BUNDLED)
    assert 1_000_000 < held["bytes"] < 4_000_000


def test_held_out_questions_are_counted_with_and_without_a_head(service):
    with visiting("me"):
        model = learning.adopt(service, {"id": "recorded-copy", "at": None})["model"]
        heads = {"type": "ablate", "stack": "decoder", "layer": 0, "heads": [0, 1, 2, 3]}
        share = learning._training(service, "recorded-copy").record.measurements[-1].accuracy
        for interventions, is_less in (([], False), ([heads], True)):
            question = {"model": model, "interventions": interventions}
            counts = learning.examined(service, question)
            assert (counts["task"], counts["asked"]) == ("copy", 100)
            assert counts["intact"] == pytest.approx(100 * share, abs=2)
            assert (counts["altered"] < counts["intact"] - 20) == is_less
        forbidden = {"type": "mask", "stack": "decoder", "forbid": [[2, 1]]}
        with pytest.raises(ValueError, match="only with ablations and switches"):
            learning.examined(service, {"model": model, "interventions": [forbidden]})
        with pytest.raises(ValueError, match="tiny has learned none of the exercises"):
            learning.examined(service, {"model": "tiny"})


def test_each_visit_has_its_own_network_that_no_other_visit_can_use(service):
    names, steps = ("me", "you"), BUNDLED["copy"].kept()[-2:]
    models = {}
    for name, step in zip(names, steps, strict=True):
        with visiting(name):
            models[name] = learning.adopt(service, {"id": "recorded-copy", "at": step})["model"]
    for name, model in models.items():
        assert [own for _, own in service.names(name)] == ["tiny", model]
        alone = service.own.find(model, name).model.generate("bdface=", max_new_tokens=8)
        with pytest.raises(ValueError, match="opens only in the visit that trained it"):
            service.model(model)  # of no session
        for other in ("", *names):
            with visiting(other):
                *_, last = presses.generate(service, other, model, "bdface=", {"max_new_tokens": 8})
            if other == name:
                assert last["tokens"]["labels"] == list(alone.labels)
            else:
                assert (last["status"]["kind"], last["running"]) == ("error", False)
                assert "tokens" not in last
            with visiting(other):
                page = presses.example_page(service, other, model, {})
            assert page["controls"]["model"]["value"] == (model if other == name else "tiny")
            problems = "".join(page["problems"])
            assert ("opens only in the visit that trained it" in problems) == (other != name)
    assert [own for _, own in service.names("somebody else")] == ["tiny"]


def test_a_visits_networks_are_deleted_soon_after_it(service, monkeypatch):
    with visiting("me"):
        one = learning.adopt(service, {"id": "recorded-copy", "at": 1})["model"]
    now = time.monotonic()
    service.requests.leave("me")
    monkeypatch.setattr(time, "monotonic", lambda: now + limits.LEFT_AGE_S + 1)
    service.sweep()
    assert service.budget.held()["models"]["count"] == 0
    with pytest.raises(ValueError, match="opens only in the visit that trained it"):
        service.model(one, "me")

"""Trainings of visitors and the models they have trained.

A few trainings run at a time; only the visit that began one finds it, by its id.
"""

from __future__ import annotations

import dataclasses
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from transformer.checks import InvalidRequest, check_choice, shortened
from transformer.inference.model import Model
from transformer.learning.exercises import check_question
from transformer.learning.stepwise import Plan
from transformer.learning.training_record import Pictures, Record
from transformer.learning.worker import STOPPED, Job, Trainer
from transformer.messages import language
from transformer.runs.memo import bytes_of
from transformer.server.errors import Busy
from transformer.server.limits import (
    ABSENT_S,
    MAX_RECORDED_BYTES,
    MAX_TRAINING_S,
    MAX_TRAININGS_WAITING,
    PAUSE_S,
)
from transformer.server.sessions import caller
from transformer.server.slots import Place, Slots
from transformer.server.store import MODELS, TRAININGS, MemoryBudget

WAITING, RUNNING, PAUSED, ENDED = "waiting", "running", "paused", "ended"
DO = ("pause", "go", "step", "stop")
CROWDED = "crowded"  # why a paused training ended: others waited
PUSHED_OUT = "pushed out"  # why one that waited ended: another address or session had fewer
IDLE_S = 120.0  # after which a process that trains nothing is ended
SIGN = "~"  # between a model's readable name and its random part
MODULE_BYTES = 3_000  # of one module of a network, apart from its weights


@dataclass(kw_only=True, slots=True, eq=False)
class Training:
    """One visitor's. changed: how often there was news. why: it ended so; else "".

    passing: the step at which it rests, whose network is kept only until it goes on.
    """

    key: str
    visitor: str
    record: Record
    question: str
    state: str = WAITING
    why: str = ""
    answer: str = ""
    pictures: Pictures = field(default_factory=dict)
    place: Place | None = None
    trainer: Trainer | None = None
    passing: int | None = None
    changed: int = 0
    rested_at: float = 0.0
    seen_at: float = field(default_factory=time.monotonic)

    def hear(self, what: str, value: Any) -> None:
        """Take a message of its process, see learning.worker."""
        if what == "report":
            if self.passing is not None and self.passing < value.step:
                self.record.snapshots.pop(self.passing, None)
                self.passing = None
            value.put_into(self.record)
            if value.weights is not None and value.step not in self.record.plan.kept():
                self.passing = value.step
            self.answer, self.pictures = value.answer, value.pictures
        elif what == "state":
            self.state = value
            self.rested_at = time.monotonic()
        elif self.state != ENDED:
            self.state, self.why = ENDED, value
        self.changed += 1


class Trainings:
    """One a server. slots: as many trainings as it has run at the same time; the others
    wait, and see how many are before them.

    A visitor has one: a second replaces it. Its results stay in the memory budget; a training whose
    results are evicted there is ended.
    """

    def __init__(
        self, slots: Slots, seconds: float = MAX_TRAINING_S, budget: MemoryBudget | None = None
    ) -> None:
        self._seconds, self._budget = seconds, budget or MemoryBudget()
        self._lock = threading.RLock()
        self._underway: dict[str, Training] = {}  # waiting or running, also of visitors who left
        self._slots, self._at_once = slots, slots.at_once
        self._free = [Trainer(self._hear) for _ in range(self._at_once)]
        self._used_at = time.monotonic()

    def begin(self, visitor: str, plan: Plan, question: str = "") -> Training:
        """Train it now or as soon as there is room. Raises ValueError where too many wait."""
        question = check_question(plan.exercise, question or plan.exercise.example)
        with self._lock:
            for old in self._budget.of(TRAININGS, visitor):
                self._budget.discard(TRAININGS, old.key)
                self._end(old, STOPPED)
            if not self._at_once:
                raise InvalidRequest(
                    "no_training", "nothing can be trained on this server; see a recorded run"
                )
            key, record, words = secrets.token_urlsafe(16), Record(plan=plan), language()
            training = Training(key=key, visitor=visitor, record=record, question=question)
            self._underway[key] = training
            self._budget.put(TRAININGS, key, training, 0, visitor)
            who = caller()._replace(session=visitor)
            try:
                training.place = place = self._slots.join(who)
            except Busy:
                del self._underway[key]
                self._budget.discard(TRAININGS, key)
                raise InvalidRequest(
                    "busy",
                    "{most} trainings are waiting; see a recorded run, or try again soon",
                    most=MAX_TRAININGS_WAITING,
                ) from None
            place.ready.add_done_callback(lambda _: self._turn(training, place, words))
            return training

    def find(self, visitor: str, key: object) -> Training:
        """A visitor's own. Raises ValueError for any other id."""
        with self._lock:
            training: Training | None = self._budget.get(TRAININGS, str(key))
            if training is None or training.visitor != visitor:
                raise InvalidRequest(
                    "training_expired",
                    "the server no longer keeps this training; begin it again",
                )
            training.seen_at = time.monotonic()
            return training

    def steer(self, training: Training, do: object) -> None:
        """Pause, go on, make one step, or stop. Raises ValueError for anything else."""
        check_choice("do", do, DO)
        with self._lock:
            if do == "stop" and training.state == WAITING:
                self._end(training, STOPPED)
            elif training.trainer is not None:
                training.trainer.tell(training.key, str(do))

    def ask(self, training: Training, question: object) -> None:
        """Change the question that the network answers. Raises ValueError for an unreadable one."""
        question = check_question(training.record.plan.exercise, question)
        with self._lock:
            if question != training.question:
                training.question, training.answer = question, ""
                if training.trainer is not None:
                    training.trainer.tell(training.key, "ask", question)

    def before(self, training: Training) -> int:
        """How many trainings end before this one begins, at least."""
        return self._slots.before(training.place) if training.place is not None else 0

    def leave(self, visitor: str) -> None:
        """End the training of a visitor who has left."""
        with self._lock:
            for one in self._budget.of(TRAININGS, visitor):
                self.steer(one, "stop")

    def sweep(self) -> None:
        """End trainings that are abandoned, paused too long, or dropped by the memory budget."""
        now, others_wait = time.monotonic(), self._slots.counts()["waiting"] > 0
        with self._lock:
            for one in list(self._underway.values()):
                is_kept = self._budget.has(TRAININGS, one.key)
                if not is_kept or now - one.seen_at > ABSENT_S:
                    self._end(one, STOPPED)
                elif one.state == PAUSED and others_wait and now - one.rested_at > PAUSE_S:
                    one.why = CROWDED
                    self.steer(one, "stop")
            if len(self._free) == self._at_once and now - self._used_at > IDLE_S:
                self.close()

    def close(self) -> None:
        """End the processes that train nothing."""
        with self._lock:
            for trainer in self._free:
                trainer.close()

    def _end(self, training: Training, why: str) -> None:
        if training.trainer is not None:
            training.trainer.tell(training.key, "stop")
        elif training.state == WAITING:
            training.hear("end", why)
            self._underway.pop(training.key, None)
            if training.place is not None:
                training.place.leave()

    def _turn(self, training: Training, place: Place, words: str) -> None:
        """It has a place now, or is refused one."""
        with self._lock:
            if place.refused or training.state == ENDED:
                self._end(training, PUSHED_OUT)
                place.leave()
                return
            plan, question, seconds = training.record.plan, training.question, self._seconds
            job = Job(plan=plan, question=question, seconds=seconds, language=words)
            training.trainer = self._free.pop()
            training.trainer.begin(training.key, job)

    def _hear(self, key: str, what: str, value: Any) -> None:
        with self._lock:
            training = self._underway.get(key)
            if training is None:
                return
            training.hear(what, training.why or value if what == "end" else value)
            self._budget.resize(TRAININGS, key, training.record.size)
            if what == "end":
                del self._underway[key]
                assert training.trainer is not None
                self._free.append(training.trainer)
                training.trainer, self._used_at = None, time.monotonic()
                if training.place is not None:
                    training.place.leave()


@dataclass(kw_only=True, slots=True, eq=False)
class Own:
    """A model of a visit. label: what the list of models calls it. example: the ids of the run and
    the batch that the page first shows of it, as long as they are kept."""

    model: Model
    visitor: str
    label: str
    example: tuple[str, str] = ("", "")


class OwnModels:
    """Trained models by name, in a memory budget; names hold 96 random bits."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget

    def add(self, visitor: str, label: str, make: Callable[[str], Model], about: str) -> Model:
        """Keep a model for a visitor; beyond their limit the oldest is evicted.

        make: gives the model of a name, which begins with `about`.
        """
        model = make(f"{about}{SIGN}{secrets.token_urlsafe(12)}")
        model = dataclasses.replace(model, most_recorded_bytes=MAX_RECORDED_BYTES)
        n_bytes = model.weight_bytes + MODULE_BYTES * sum(1 for _ in model.network.modules())
        n_bytes += bytes_of((model.card, model.metadata, model.sample))
        own = Own(model=model, visitor=visitor, label=label)
        self._budget.put(MODELS, model.name, own, n_bytes, visitor)
        return model

    def find(self, name: str, visitor: str | None = None) -> Own:
        """The model of a name. visitor: the session that asks, by default the current one; "" finds
        every visit's. Raises ValueError for a model that is gone or another visit's."""
        who = caller().session if visitor is None else visitor
        own: Own | None = self._budget.get(MODELS, name)
        if own is None or (who and who != own.visitor):
            raise InvalidRequest(
                "model_expired",
                "model {name} was trained in a visit: it belonged to that visit alone, and "
                "is gone with it; train one anew in the tab Learn",
                name=shortened(name.partition(SIGN)[0]),
            )
        return own

    def of(self, visitor: str) -> list[Own]:
        """A visitor's models, oldest first."""
        return self._budget.of(MODELS, visitor) if visitor else []


def is_own(name: object) -> bool:
    """Whether a name may be that of a model of a visit."""
    return isinstance(name, str) and SIGN in name

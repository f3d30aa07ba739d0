"""Training runs of visitors, and the models they have trained.

A few trainings run at a time; only the visit that began one finds it, by its id.
"""

from __future__ import annotations

import dataclasses
import secrets
import threading
import time
from dataclasses import dataclass, field

from transformer.checks import InvalidRequest, check_choice, shortened
from transformer.inference.deadline import current
from transformer.inference.model import Model
from transformer.learning.training import Plan, Record
from transformer.learning.worker import ENDED, PAUSED, STOPPED, Trainer, Why
from transformer.messages import mark
from transformer.runs.memo import bytes_of
from transformer.server.http.errors import Busy
from transformer.server.http.limits import (
    ABSENT_S,
    MAX_LONG_WAITING,
    MAX_RECORDED_BYTES,
    MAX_TRAINING_S,
)
from transformer.server.http.requests import caller
from transformer.server.http.slots import Place, Slots
from transformer.server.kept.store import MODELS, TRAININGS, MemoryBudget

WAITING = "waiting"  # before those of a process
COMMANDS = ("pause", "go", "step", "stop")
CROWDED: Why = (mark("Ended: it was paused for a minute while others waited."), {})
PUSHED_OUT: Why = (
    mark("Visitors with fewer training runs waiting took its place; start it again."),
    {},
)
IDLE_S = 120.0  # after which a process that trains nothing is ended
NAME_SEPARATOR = "~"  # between a model's readable name and its random part
MODULE_BYTES = 3_000  # of one module of a network, apart from its weights


@dataclass(kw_only=True, slots=True, eq=False)
class Training:
    """One visitor's training run. why: the reason for which it ended, or is to end. gone: set if
    the visitor left before knowing its key."""

    key: str
    visitor: str
    record: Record
    state: str = WAITING
    why: Why | None = None
    place: Place | None = None
    trainer: Trainer | None = None
    rested_at: float = 0.0
    seen_at: float = field(default_factory=time.monotonic)
    gone: threading.Event | None = None


class Trainings:
    """One per server. slots: how many trainings run at once; the others wait in line.

    A visitor has one: a second replaces it. Programs without a session are told apart by the
    trainings' ids alone. A training whose results the memory budget evicts is ended.
    """

    def __init__(self, slots: Slots, budget: MemoryBudget) -> None:
        self._slots, self._budget = slots, budget
        self._lock = threading.RLock()
        self._underway: set[Training] = set()  # waiting or running, also of visitors who left
        self._trainers = [Trainer() for _ in range(slots.at_once)]
        self._free = [*self._trainers]
        self._used_at = time.monotonic()

    def begin(self, visitor: str, plan: Plan) -> Training:
        """Train it now or as soon as there is room. Raises ValueError where too many wait."""
        training = Training(
            key=secrets.token_urlsafe(16),
            visitor=visitor,
            record=Record(plan=plan),
            gone=current().flag,
        )
        with self._lock:
            if visitor:
                self.leave(visitor)
            if not self._trainers:
                raise InvalidRequest(
                    "no_training",
                    "nothing can be trained on this server; look at a recorded training run",
                )
            try:
                training.place = self._slots.join(caller()._replace(session=visitor))
            except Busy:
                raise InvalidRequest(
                    "busy",
                    "{most} training runs are waiting; look at a recorded one, or try again soon",
                    most=MAX_LONG_WAITING,
                ) from None
            self._underway.add(training)
            self._budget.put(TRAININGS, training.key, training, 0, visitor or None)
            training.place.ready.add_done_callback(lambda _: self._turn(training))
            return training

    def find(self, visitor: str, key: object) -> Training:
        """A visitor's own training run. Raises ValueError for any other id."""
        with self._lock:
            training: Training | None = self._budget.get(TRAININGS, str(key))
            if training is None or training.visitor != visitor:
                raise InvalidRequest(
                    "training_expired",
                    "the server no longer keeps this training run; start it again",
                )
            training.seen_at = time.monotonic()
            return training

    def steer(self, training: Training, do: object) -> None:
        """Pause, go on, make one step, or stop. Raises ValueError for anything else."""
        check_choice("do", do, COMMANDS)
        with self._lock:
            if training.trainer is not None:
                training.trainer.tell(do)
                if do == "stop" and training.state == WAITING:  # its process takes seconds to start
                    training.state, training.why = ENDED, STOPPED
            elif do == "stop" and training.state == WAITING:
                self._end(training, STOPPED)

    def before(self, training: Training) -> int:
        """The least number of training runs that end before this one begins."""
        return self._slots.before(training.place) if training.place is not None else 0

    def leave(self, visitor: str) -> None:
        """End a visitor's training run."""
        for training in self._budget.of(TRAININGS, visitor):
            self.steer(training, "stop")

    def sweep(self) -> None:
        """End training runs that are abandoned, paused too long, or dropped by the memory budget,
        and processes that are stuck or have nothing to do."""
        for trainer in self._trainers:  # without the lock: who holds it may wait for a stuck one
            trainer.check()
        now, others_wait = time.monotonic(), self._slots.counts()["waiting"] > 0
        with self._lock:
            for training in [*self._underway]:
                is_kept = self._budget.has(TRAININGS, training.key)
                has_left = training.gone is not None and training.gone.is_set()
                if not is_kept or has_left or now - training.seen_at > ABSENT_S:
                    self.steer(training, "stop")
                elif (
                    training.state == PAUSED
                    and others_wait
                    and now - training.rested_at > MAX_TRAINING_S
                ):
                    training.why = CROWDED
                    self.steer(training, "stop")
            if len(self._free) == len(self._trainers) and now - self._used_at > IDLE_S:
                self.close()

    def close(self) -> None:
        """End the processes."""
        for trainer in self._trainers:
            trainer.close()

    def _turn(self, training: Training) -> None:
        """It has a place now, or is refused one."""
        with self._lock:
            if training.state == ENDED:
                return
            assert training.place is not None
            if training.place.refused:
                self._end(training, PUSHED_OUT)
                return
            training.trainer = self._free.pop()

            def hear(state: str, why: Why | None, part: Record | None) -> None:
                with self._lock:
                    self._hear(training, state, why, part)

            training.trainer.begin(training.record.plan, MAX_TRAINING_S, hear)

    def _hear(self, training: Training, state: str, why: Why | None, part: Record | None) -> None:
        """Take a message of its process."""
        if training.state == ENDED and why is None:
            return
        if state == PAUSED != training.state:
            training.rested_at = time.monotonic()
        training.state = state
        if part is not None:
            training.record.extend(part)
            self._budget.resize(TRAININGS, training.key, bytes_of(training.record))
        if why is not None and training.trainer is not None:
            self._free.append(training.trainer)
            training.trainer, self._used_at = None, time.monotonic()
            self._end(training, training.why or why)

    def _end(self, training: Training, why: Why) -> None:
        training.state, training.why = ENDED, why
        self._underway.discard(training)
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

    def add(self, visitor: str, label: str, model: Model) -> Model:
        """Keep a model, under a new name, for a visitor; beyond their limit the oldest is
        evicted."""
        name = f"{model.name}{NAME_SEPARATOR}{secrets.token_urlsafe(12)}"
        model = dataclasses.replace(model, name=name, most_recorded_bytes=MAX_RECORDED_BYTES)
        n_bytes = model.weight_bytes + MODULE_BYTES * sum(1 for _ in model.network.modules())
        n_bytes += bytes_of((model.card, model.metadata, model.sample))
        own = Own(model=model, visitor=visitor, label=label)
        self._budget.put(MODELS, model.name, own, n_bytes, visitor or None)
        return model

    def find(self, name: str, visitor: str | None = None) -> Own:
        """The model of a name. visitor: the session that asks, by default the current one. Raises
        ValueError for a model that is gone or another visit's."""
        who = caller().session if visitor is None else visitor
        own: Own | None = self._budget.get(MODELS, name)
        if own is None or who != own.visitor:
            raise InvalidRequest(
                "model_expired",
                "model {name} opens only in the visit that trained it, and only as long as the "
                "server keeps it; train one anew in the tab Learn",
                name=shortened(name.partition(NAME_SEPARATOR)[0]),
            )
        return own

    def of(self, visitor: str) -> list[Own]:
        """A visitor's models, oldest first."""
        return self._budget.of(MODELS, visitor) if visitor else []


def is_own(name: object) -> bool:
    """Whether a name may be that of a model of a visit."""
    return isinstance(name, str) and NAME_SEPARATOR in name

"""The requests of the tab Learn, each within the caller's visit: plain values in and out."""

from __future__ import annotations

import base64
import dataclasses
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer.checks import InvalidRequest, check_choice
from transformer.interventions.descriptions import Ablate, Break, interventions_of
from transformer.interventions.hooks import hooks_of
from transformer.learning.exercises import EXERCISES, answer_of, held_out, share_right
from transformer.learning.stepwise import Plan
from transformer.learning.summary import summary
from transformer.learning.training_record import BUNDLED, Record, Snapshot, bundled_recording
from transformer.learning.worker import BROKEN, DONE, LATE, STOPPED
from transformer.messages import mark, numeral, say
from transformer.server.examples import example_of
from transformer.server.limits import MAX_TRAINING_S, check_interventions
from transformer.server.service import Service
from transformer.server.sessions import caller
from transformer.server.store import RECORDS
from transformer.server.trainings import CROWDED, ENDED, PUSHED_OUT, WAITING, Training
from transformer.views.learn import learning_curves
from transformer.views.registry import VIEWS

RECORDED = "recorded-"  # before an exercise: the id of the training that comes with the page
ASKED = 100  # held-out questions
WHY = {
    DONE: mark("All steps are done."),
    STOPPED: mark("Stopped."),
    LATE: mark("Ended after the {seconds} s that one training may take."),
    CROWDED: mark("Ended: it was paused for a minute while others waited."),
    PUSHED_OUT: mark("Visitors with fewer trainings waiting took its place; start it again."),
    BROKEN: mark("The process that trained it has ended; begin it again."),
}
Answer = dict[str, Any]


def train(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"plan", "question"}: begin a training, in place of this visit's last one."""
    plan = plan_of(data.get("plan"))
    question = data.get("question", "")
    usable = isinstance(question, str) and set(question) <= set(plan.exercise.letters)
    training = service.trainings.begin(caller().session, plan, question if usable else "")
    return {"id": training.key}


def steer(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"id", "do"}: pause, go, step or stop."""
    training = service.trainings.find(caller().session, data.get("id"))
    service.trainings.steer(training, data.get("do"))
    return {}


def learned(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"id", "at", "question", "known"}: the state of a training.

    at: a step whose network is kept, None for the last one. known: the last answer's "changed";
    if it is unchanged, the answer holds nothing else.
    """
    training = _training(service, data.get("id"))
    at, question = data.get("at"), data.get("question")
    if question is not None:
        service.trainings.ask(training, question)
    record, why = training.record, WHY.get(training.why, training.why)
    facts: Answer = {
        "id": training.key, "state": training.state, "changed": training.changed,
        "why": say(why, seconds=numeral(MAX_TRAINING_S, ".0f")) if why else "",
        "before": service.trainings.before(training) if training.state == WAITING else 0,
        "step": record.step, "total": record.plan.n_steps,
    }  # fmt: skip
    if data.get("known") == facts["changed"]:
        return facts
    step = record.step if at is None else _kept(record, at).step
    pictures = training.pictures if at is None else {}
    if not pictures and record.snapshots:
        pictures = _kept(record, at).pictures
    best = record.measured_by(step)  # with the head that reads what comes next, where there is one
    reads, measured = record.plan.exercise.reads, list(record.measurements)
    curves = learning_curves(
        list(record.losses),
        [one.step for one in measured],
        [one.accuracy for one in measured],
        total=record.plan.n_steps,
        score=[one.score for one in measured],
        score_name=say(reads) if reads else "",
        at=None if at is None else step,
    )
    return facts | {
        "at": step,
        "kept": sorted(record.snapshots),
        "plan": dataclasses.asdict(record.plan),
        "task": say(record.plan.exercise.words),
        "said": summary(record, step) if step else [],
        "question": training.question,
        "wanted": record.plan.exercise.solve(training.question),
        "answer": _answer(training, at),
        "best": dataclasses.asdict(best) if best is not None and best.site else None,
        "pictures": {kind: one.answer() for kind, one in pictures.items()},
        "curves": curves,
    }


def adopt(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"id", "at"}: the network of a step becomes a model of this visit; its name, and what
    it is to be asked first."""
    visitor, (record, step) = caller().session, _chosen(service, data)
    exercise = record.plan.exercise
    label = say("{task}, step {step} (yours)", task=say(exercise.title), step=numeral(step))
    model = service.own.add(
        visitor, label, lambda name: record.model(step, name), f"{exercise.name}-{step}"
    )
    length = example_of(model).settings["max_new_tokens"]
    return {"model": model.name, "label": label, "length": length, "task": exercise.name}


def checkpoint(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"id", "at"}: the same network as a checkpoint folder, zipped."""
    record, step = _chosen(service, data)
    name = f"{record.plan.task}-{step}"
    try:
        with tempfile.TemporaryDirectory() as folder:
            record.model(step, name).save(Path(folder) / name, dtype="float16")
            packed = Path(shutil.make_archive(f"{folder}/packed", "zip", folder, name))
            sent = base64.b64encode(packed.read_bytes()).decode("ascii")
    except OSError as error:  # a full disk
        raise InvalidRequest("no_room", "the server has no room to write the checkpoint") from error
    return {"name": f"{name}.zip", "type": "application/zip", "base64": sent}


def examined(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"model", "interventions"}: how many held-out questions a network answers right, intact
    and so altered. Raises ValueError for one that has learned no exercise."""
    model = service.model(data.get("model"))
    task = (model.metadata or {}).get("exercise")
    if task not in EXERCISES:
        raise ValueError(f"{model.name} has learned none of the exercises")
    given = data.get("interventions", ())
    check_interventions(given)
    altered = interventions_of(given)
    if not all(isinstance(one, Ablate | Break) for one in altered):
        raise InvalidRequest(
            "not_alike", "only ablated heads and switches act on every question alike"
        )
    exercise, hooks = EXERCISES[task], hooks_of(altered, model.config)
    rows = held_out(exercise, ASKED)
    intact = share_right(model.network, exercise, rows)
    after = share_right(model.network, exercise, rows, hooks) if hooks else intact
    return {
        "task": task, "asked": ASKED, "intact": round(intact * ASKED),
        "altered": round(after * ASKED),
    }  # fmt: skip


def _training(service: Service, key: Any) -> Training:
    task = str(key).removeprefix(RECORDED)
    if key == task or task not in BUNDLED:
        return service.trainings.find(caller().session, key)
    record: Record | None = service.budget.get(RECORDS, task)
    if record is None:
        record = bundled_recording(task)
        service.budget.put(RECORDS, task, record, record.size)
    question = EXERCISES[task].example
    return Training(
        key=str(key), visitor="", record=record, question=question, state=ENDED, why=DONE
    )


def _chosen(service: Service, data: Mapping[str, Any]) -> tuple[Record, int]:
    record = _training(service, data.get("id")).record
    return record, _kept(record, data.get("at")).step


def plan_of(values: Any) -> Plan:
    """A plan from plain values. Raises ValueError for an unknown field, or for a value that the
    tab's controls do not allow."""
    fields = [field.name for field in dataclasses.fields(Plan)]
    if not isinstance(values, Mapping) or not set(values) <= set(fields) or "task" not in values:
        raise ValueError(f"a training must be an object of {fields}, with a task")
    for parameter in VIEWS["learn"].parameters:
        if parameter.name in values:
            parameter.check(values[parameter.name])
    return Plan(**values)


def _kept(record: Record, at: Any) -> Snapshot:
    """The network of a step, None: the last one. Raises ValueError for one that is not kept."""
    steps = sorted(record.snapshots)
    step = steps[-1] if at is None and steps else at
    check_choice("at", step, steps)
    return record.snapshots[step]


def _answer(training: Training, at: Any) -> str:
    """To the training's question: of a network that is kept, or as the process last told."""
    record = training.record
    if at is None and training.state != ENDED:
        return training.answer
    if not record.snapshots:
        return ""
    model = record.model(_kept(record, at).step, "asked")
    return answer_of(model, record.plan.exercise, training.question)

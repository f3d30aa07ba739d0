"""The requests of the tab Learn, each within the caller's visit: plain values in and out."""

from __future__ import annotations

import base64
import dataclasses
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer.checks import InvalidRequest
from transformer.interventions.descriptions import Ablate, Break, interventions_of
from transformer.interventions.hooks import hooks_of
from transformer.learning.exercises import (
    EXERCISES,
    HELD_OUT,
    answer_of,
    check_question,
    n_right,
)
from transformer.learning.summary import summary
from transformer.learning.training import BUNDLED, Plan, Record, bundled_recording, pictures_of
from transformer.learning.worker import DONE, ENDED
from transformer.messages import numeral, say, say_error
from transformer.runs.memo import bytes_of
from transformer.server.http.requests import caller
from transformer.server.kept.page_models import example_of
from transformer.server.kept.service import Service, check_interventions
from transformer.server.kept.store import RECORDS
from transformer.server.kept.trainings import Training
from transformer.views.declaration import Answer
from transformer.views.learn import learning_curves
from transformer.views.registry import VIEWS

RECORDED = "recorded-"  # before an exercise: the id of the training that comes with the page


def train(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"plan"}: begin a training, in place of this visit's last one."""
    return {"id": service.trainings.begin(caller().session, plan_of(data.get("plan"))).key}


def steer(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"id", "do"}: pause, go, step or stop."""
    training = service.trainings.find(caller().session, data.get("id"))
    service.trainings.steer(training, data.get("do"))
    return {}


def learned(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"id", "at", "question"}: the state of a training, and what its network of a step says.

    at: a step whose network is kept, None for the last one. question: None for the example.
    """
    training, at, question = (
        _training(service, data.get("id")), data.get("at"), data.get("question"),
    )  # fmt: skip
    state = training.state  # before the rest: once it has ended, nothing is added
    record, exercise = training.record, training.record.plan.exercise
    question = check_question(exercise, exercise.example if question is None else question)
    model = None if at is None and not record.networks else record.model(at)
    step = 0 if model is None else (model.metadata or {})["steps"]
    best, measured = record.measured_by(step), list(record.measurements)
    curves = learning_curves(
        list(record.losses),
        [measurement.step for measurement in measured],
        [measurement.accuracy for measurement in measured],
        total=record.plan.n_steps,
        score=[measurement.score for measurement in measured],
        score_name=say(exercise.reads) if exercise.reads else "",
        at=None if at is None else step,
    )
    pictures = {} if model is None else pictures_of(model, exercise)
    return {
        "id": training.key,
        "state": state,
        "why": _why(training),
        "before": service.trainings.before(training),
        "step": record.step,
        "total": record.plan.n_steps,
        "at": step,
        "kept": sorted(record.networks),
        "plan": dataclasses.asdict(record.plan),
        "task": say(exercise.words),
        "said": summary(record, step),
        "question": question,
        "wanted": exercise.solve(question),
        "answer": "" if model is None else answer_of(model, exercise, question),
        "best": dataclasses.asdict(best) if best is not None and best.site else None,
        "pictures": {kind: picture.answer() for kind, picture in pictures.items()},
        "curves": curves,
    }


def adopt(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"id", "at"}: the network of a step becomes a model of this visit; its name, and what
    it is to be asked first."""
    record = _training(service, data.get("id")).record
    model, exercise = record.model(data.get("at")), record.plan.exercise
    step = numeral((model.metadata or {})["steps"])
    label = say("{task}, step {step} (yours)", task=say(exercise.title), step=step)
    model = service.own.add(caller().session, label, model)
    return {
        "model": model.name, "label": label, "task": exercise.name,
        "max_new_tokens": example_of(model).settings["max_new_tokens"],
    }  # fmt: skip


def checkpoint(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"id", "at"}: the same network as a checkpoint folder, zipped."""
    model = _training(service, data.get("id")).record.model(data.get("at"))
    try:
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / model.name, dtype="float16")
            packed = Path(shutil.make_archive(f"{folder}/packed", "zip", folder, model.name))
            sent = base64.b64encode(packed.read_bytes()).decode("ascii")
    except OSError as error:  # a full disk
        raise InvalidRequest("no_room", "the server has no room to write the checkpoint") from error
    return {"name": f"{model.name}.zip", "type": "application/zip", "base64": sent}


def examined(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"model", "interventions"}: how many held-out questions a network answers right, intact and
    with these alterations. Raises ValueError for one that has learned no exercise."""
    model = service.model(data.get("model"))
    task = (model.metadata or {}).get("exercise")
    if task not in EXERCISES:
        raise ValueError(f"{model.name} has learned none of the exercises")
    described = data.get("interventions", ())
    check_interventions(described)
    altered = interventions_of(described)
    if not all(isinstance(intervention, Ablate | Break) for intervention in altered):
        raise InvalidRequest(
            "not_alike",
            "held-out questions can be tested only with ablations and switches; "
            "other changes fit one text only",
        )
    exercise, hooks = EXERCISES[task], hooks_of(altered, model.config)
    intact = n_right(model.network, exercise)
    after = n_right(model.network, exercise, hooks) if hooks else intact
    return {"task": task, "asked": HELD_OUT, "intact": intact, "altered": after}


def _training(service: Service, key: Any) -> Training:
    task = str(key).removeprefix(RECORDED)
    if key == task or task not in BUNDLED:
        return service.trainings.find(caller().session, key)
    record: Record | None = service.budget.get(RECORDS, task)
    if record is None:
        record = bundled_recording(task)
        service.budget.put(RECORDS, task, record, bytes_of(record))
    return Training(key=str(key), visitor="", record=record, state=ENDED, why=DONE)


def _why(training: Training) -> str:
    """Why a training ended, in a sentence; "" if it goes on."""
    if training.why is None:
        return ""
    sentence, values = training.why
    return say_error(InvalidRequest("ended", sentence, **values))


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

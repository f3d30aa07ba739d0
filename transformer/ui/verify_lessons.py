"""Whether lessons can be held: every state opens, every check can be passed, and failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from transformer.learning.recorded import recorded
from transformer.lessons.checks import Answer, Check
from transformer.lessons.lesson import Lesson, Step
from transformer.lessons.quantities import Ground
from transformer.lessons.said import Said
from transformer.messages import invalid, speaking
from transformer.runs.head_data import check_head
from transformer.runs.run import Run
from transformer.ui.examples import example_of
from transformer.ui.experiments import Experiments
from transformer.ui.handlers import altered_settings, settings_of
from transformer.ui.lessons import state_of
from transformer.ui.link import SETTINGS, read_link
from transformer.ui.settings import STARTS

LEAST_HINTS = 2  # the third shows the answer, which is worked out
CHECKER = ""  # nobody's visit


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What the check of a step found. problem: a sentence; empty: it can be held."""

    step: int
    title: str
    says: str = ""
    problem: str = ""


def verify(lesson: Lesson, experiments: Experiments) -> Iterator[Found]:
    """Each step, as a visitor meets it."""
    titles = [part.title for part in next(iter(lesson.words.values()))[1:]]
    ground = None
    for number, (step, title) in enumerate(zip(lesson.steps, titles, strict=True), 1):
        try:
            ground = _opened(experiments, step, ground)
            after, says = _held(experiments, lesson, step, ground)
            if step.check is not None:
                _enough_hints(lesson, number)
            yield Found(step=number, title=title, says=says)
            ground = after
        except (ValueError, KeyError) as error:
            yield Found(step=number, title=title, problem=str(error))


def _opened(experiments: Experiments, step: Step, before: Ground | None) -> Ground:
    """What the page shows once the step's state is opened."""
    if not step.state:
        if before is None:
            raise invalid("the first step needs a state")
        return before
    return shown_by(experiments, state_of(step.state))


def shown_by(experiments: Experiments, fields: Mapping[str, str]) -> Ground:
    """The run and the batch that a state of the page shows. Raises ValueError for none."""
    service = experiments.service
    link = read_link(urlencode(fields))
    name = link.model or next(iter(service.models))
    example = example_of(service.model(name))
    run = service.store.run(service.example(name)[0])
    if link.asks_for_a_run:
        text = example.text if link.text is None else link.text
        values = {"method": example.methods[0], **STARTS} | link.settings
        settings = altered_settings(
            settings_of(*(values[one] for one in SETTINGS)),
            {"interventions": link.interventions, "forced_tokens": link.forced_tokens},
        )
        if service.model(name).config.family == "encoder":
            run = service.read(name, text)
        else:
            run = service.generate(name, text, **settings)
    lines = link.lines.split("\n") if link.lines else None
    batch = service.batch(name, lines) if lines else service.store.batch(service.example(name)[1])
    _check_places(run, link.view)
    return Ground(run=run, lab=experiments, batch=batch)


def _check_places(run: Run, view: Mapping[str, str]) -> None:
    """Raise ValueError for a head or a token that the run does not have."""
    site = view.get("site")
    if site is not None:
        check_head(int(view.get("head", "0")), run.trace[site].weights.shape[1])
    token = view.get("token", "0")
    if token.isdecimal() and int(token) >= len(run.labels):
        last = len(run.labels) - 1
        raise invalid("token must be at most {last}; got {got}", last=last, got=token)


def _held(
    experiments: Experiments, lesson: Lesson, step: Step, ground: Ground
) -> tuple[Ground, str]:
    """Pass it and fail it, in every language; the page afterwards, and what was said."""
    check = step.check
    if check is None:
        return ground, ""
    after = _solved(experiments, step, ground) if isinstance(check, Said) else ground
    right = {} if isinstance(check, Said) else check.right_answer(ground)
    wrong = _wrong(check, ground)
    said = ""
    for language in lesson.languages:
        with speaking(language):
            passed, failed = check.grade(after, right or {}), check.grade(ground, wrong)
        said = said or passed.says
        if not passed.right:
            raise invalid("the answer to it is not right: {says}", says=passed.says)
        if failed.right:
            raise invalid("it cannot be failed: {says}", says=failed.says)
    _not_there_yet(check, step, ground)
    return after, said


def _solved(experiments: Experiments, step: Step, ground: Ground) -> Ground:
    if isinstance(step.solution, Mapping) and "learn" in step.solution:
        return Ground(run=_learned(experiments, step.solution, ground), lab=experiments)
    if not step.solution:
        raise invalid("it needs a solution: a state of the page that answers it")
    return shown_by(experiments, state_of(step.solution))


def _learned(experiments: Experiments, solution: Mapping[str, Any], ground: Ground) -> Run:
    """The example of a network that a recorded training ended with, as the page would adopt it."""
    service, task = experiments.service, solution["learn"]
    record = recorded(task)
    step = max(record.snapshots)
    if ground.run.model.startswith(f"{task}-"):
        name = ground.run.model
    else:
        name = service.adopt(
            CHECKER, task, lambda name: record.model(step, name), f"{task}-{step}"
        ).name
    example = service.store.run(service.example(name)[0])
    if "alter" not in solution:
        return example
    length = example.request.max_new_tokens
    return service.generate(
        name, example.request.text, max_new_tokens=length, interventions=solution["alter"]
    )


def _wrong(check: Check, ground: Ground) -> Answer:
    """An answer that is not right."""
    for answer in check.answers(ground):
        if not check.grade(ground, answer).right:
            return answer
    raise invalid("it cannot be failed: every answer is right")


def _not_there_yet(check: Check, step: Step, ground: Ground) -> None:
    """Raise ValueError where the page, as the step opens it, answers already."""
    fields = state_of(step.state)
    start: dict[str, Any] = {}
    if check.kind == "head" and fields:
        start = {"site": fields.get("site") or str(ground.run.trace.sites[0])}
        start["head"] = int(fields.get("head", "0"))
    elif check.kind == "token" and fields.get("token", "").isdecimal():
        start = {"token": int(fields["token"]), "stack": "own"}
    if start and check.grade(ground, start).right:
        raise invalid("the page answers it already as it opens: {start}", start=start)


def _enough_hints(lesson: Lesson, step: int) -> None:
    for language, parts in lesson.words.items():
        if len(parts[step].hints) < LEAST_HINTS:
            raise invalid(
                "{language}: a check has at least {least} hints",
                language=language,
                least=LEAST_HINTS,
            )

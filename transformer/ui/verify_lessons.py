"""Whether lessons can be held: every state opens, every check can be passed, and failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from transformer.learning.recorded import recorded
from transformer.lessons.checks import Answer, Check, Choose
from transformer.lessons.lesson import Lesson, Step
from transformer.lessons.quantities import Ground
from transformer.lessons.said import Said
from transformer.messages import invalid, speaking
from transformer.model.sites import Site
from transformer.runs.head_data import check_head
from transformer.runs.run import Run
from transformer.ui.examples import example_of
from transformer.ui.experiments import Experiments
from transformer.ui.handlers import altered_settings, settings_of
from transformer.ui.lessons import answer_of, first_row, state_of
from transformer.ui.link import SETTINGS, read_link
from transformer.ui.settings import STARTS
from transformer.ui.tour import shown_first
from transformer.views import VIEWS

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
                _check_selected(step.check, state_of(step.state), ground)
                for hint, given in step.hints.items():
                    _check_hint(experiments, step, ground, hint, state_of(given))
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


def _check_hint(
    experiments: Experiments, step: Step, ground: Ground, hint: int, given: dict[str, str]
) -> None:
    """Follow a hint: open or click what it names. Raises ValueError if that answers wrongly."""
    check, fields = step.check, state_of(step.state) | given
    assert check is not None
    try:
        if isinstance(check, Said):
            led = check.grade(shown_by(experiments, fields), {})
        else:
            _check_places(ground.run, fields)
            answer = _click(check, given, ground.run)
            if not answer:
                return _check_selected(check, fields, ground)
            led = check.grade(ground, answer)
        if not led.right:
            raise ValueError(led.says)
    except ValueError as error:
        raise invalid("hint {n}: {error}", n=hint, error=error) from error


def _click(check: Check, given: Mapping[str, str], run: Run) -> Answer:
    """What a hint says to click; empty: it says nothing of that."""
    if check.kind == "cell" and "cell" in given:
        site = check.arguments["site"]  # type: ignore[attr-defined]
        return answer_of({"site": site, "cell": given["cell"]}, check, run)
    if check.kind == "head" and {"site", "head"} <= given.keys():
        return {"site": given["site"], "head": int(given["head"])}
    if check.kind == "token" and "token" in given:
        stack, _, token = given["token"].rpartition(".")
        return {"stack": stack or "own", "token": int(token)}
    return {}


def _check_selected(check: Check, fields: Mapping[str, str], ground: Ground) -> None:
    """Raise ValueError where another row, head or token is selected than the check is about."""
    if isinstance(check, Said):
        return
    asked = dict(check.arguments)  # type: ignore[attr-defined]
    if isinstance(check, Choose):
        asked = dict(check.measured()[0 if check.bounds else check.best(ground)])
    for name, shown in _selected(fields, ground.run).items():
        if name in asked and asked[name] != shown:
            raise invalid(
                "{name} {shown} is selected; the question is about {asked}",
                name=name, shown=shown, asked=asked[name],
            )  # fmt: skip


def _selected(fields: Mapping[str, str], run: Run) -> dict[str, Any]:
    """What a state of the page selects, by the names of the quantities' arguments."""
    masks = fields.get("tab") == "masks"
    site = fields.get("mask_site" if masks else "site")
    found: dict[str, Any] = {"site": site, "head": fields.get("mask_head" if masks else "head")}
    found["sentence"] = fields.get("row") if masks else None
    stack, _, token = fields.get("token", "").rpartition(".")
    if token.isdecimal() and not stack:
        place = int(token)
        found |= {
            "token": place,
            "position": place,
            "query": max(0, place - _rows_above(fields, run)),
        }
    if "cell" in fields:
        first = first_row(run, Site.parse(site)) if site else 0
        row, _, column = fields["cell"].partition(",")
        found |= {"query": int(row) + first, "key": int(column)}
    return {
        name: int(one) if name != "site" else one for name, one in found.items() if one is not None
    }


def _rows_above(fields: Mapping[str, str], run: Run) -> int:
    """By how many rows a token's weights stand above its own: 1 in the picture of what each token
    was written from."""
    controls = VIEWS["attention"].controls()
    first = {name: str(controls[name].default) for name in ("picture", "by")}
    shown = first | shown_first(run.model, run.config) | dict(fields)
    return int((shown["picture"], shown["by"]) == ("alignment", "written"))


def _enough_hints(lesson: Lesson, step: int) -> None:
    for language, parts in lesson.words.items():
        if len(parts[step].hints) < LEAST_HINTS:
            raise invalid(
                "{language}: a check has at least {least} hints",
                language=language,
                least=LEAST_HINTS,
            )

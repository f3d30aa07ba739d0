"""Check lessons with the models that they need: every state opens, every check can be passed and
failed, every hint leads to the answer, every number in a text is what the model gives.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from transformer.checkpoint import bundled_names
from transformer.command_line import Parser
from transformer.inference.model import load
from transformer.learning.stepwise import Plan
from transformer.learning.training_record import Record, bundled_recording, watched
from transformer.lessons import FOLDER, read_folder
from transformer.lessons.attention_measures import first_row
from transformer.lessons.checks import Answer, Check, Choose
from transformer.lessons.lesson import Lesson, Step
from transformer.lessons.measures import GradingContext, counted, of
from transformer.lessons.output_check import OutputCheck, written
from transformer.messages import speaking
from transformer.runs.run import Run
from transformer.server.examples import shown_first
from transformer.server.lessons import answer_of, check_places, shown_by
from transformer.server.service import Service
from transformer.views.registry import VIEWS

LEAST_HINTS = 2  # the third shows the answer, which is worked out
CHECKER = ""  # the session of no visit


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The result for one step. problem: a sentence, or "" if the step works."""

    step: int
    title: str
    says: str = ""
    problem: str = ""


def verify(lesson: Lesson, service: Service) -> Iterator[Found]:
    """Check each step as a visitor would take it."""
    titles = [part.title for part in next(iter(lesson.words.values()))[1:]]
    context = None
    for number, (step, title) in enumerate(zip(lesson.steps, titles, strict=True), 1):
        try:
            context = _opened(service, step, context)
            _check_numbers(service, lesson, number, context)
            after, says = _held(service, lesson, step, context)
            if step.check is not None:
                for language, parts in lesson.words.items():
                    if len(parts[number].hints) < LEAST_HINTS:
                        raise ValueError(f"{language}: a check has at least {LEAST_HINTS} hints")
                _check_selected(step.check, step.state, context)
                for hint, given in step.hints.items():
                    _check_hint(service, step, context, hint, given)
            yield Found(step=number, title=title, says=says)
            context = after
        except (ValueError, KeyError) as error:
            yield Found(step=number, title=title, problem=str(error))


def _opened(service: Service, step: Step, before: GradingContext | None) -> GradingContext:
    """The run that the page shows after opening a step's state."""
    if not step.state:
        if before is None:
            raise ValueError("the first step needs a state")
        return before
    return shown_by(service, step.state)


def _held(
    service: Service, lesson: Lesson, step: Step, context: GradingContext
) -> tuple[GradingContext, str]:
    """Pass and fail the check, in every language; returns the page afterwards and the verdict."""
    check = step.check
    if check is None:
        return context, ""
    after = _solved(service, step, context) if isinstance(check, OutputCheck) else context
    right = {} if isinstance(check, OutputCheck) else check.right_answer(context)
    given = check.answers(context)
    wrong = next((one for one in given if not check.grade(context, one).right), None)
    if wrong is None:
        raise ValueError("it cannot be failed: every answer is right")
    said = ""
    for language in lesson.languages:
        with speaking(language):
            passed, failed = check.grade(after, right or {}), check.grade(context, wrong)
        said = said or passed.says
        if not passed.right:
            raise ValueError(f"the answer to it is not right: {passed.says}")
        if failed.right:
            raise ValueError(f"it cannot be failed: {failed.says}")
    _not_there_yet(check, step, context)
    return after, said


def _solved(service: Service, step: Step, context: GradingContext) -> GradingContext:
    if "train" in step.solution:
        return GradingContext(run=_trained(service, step.solution["train"]), models=service.queries)
    if "learn" in step.solution:
        return GradingContext(run=_learned(service, step.solution, context), models=service.queries)
    if not step.solution:
        raise ValueError("it needs a solution: a state of the page that answers it")
    return shown_by(service, {**step.state, **step.solution})


def _learned(service: Service, solution: Mapping[str, Any], context: GradingContext) -> Run:
    """The example run of a bundled recording's last network, as the page would show it."""
    task = solution["learn"]
    record = bundled_recording(task)
    step = max(record.snapshots)
    if context.run.model.startswith(f"{task}-"):
        name = context.run.model
    else:
        name = service.own.add(
            CHECKER, task, lambda name: record.model(step, name), f"{task}-{step}"
        ).name
    example = service.store.run(service.example(name)[0])
    if "alter" not in solution:
        return example
    length = example.request.max_new_tokens
    return service.generate(
        name, example.request.text, max_new_tokens=length, interventions=solution["alter"]
    )


def _trained(service: Service, values: Mapping[str, Any]) -> Run:
    """The example run of a network that is trained by this plan to the end."""
    plan = Plan(**values)
    record = Record(plan=plan)
    for report in watched(plan):
        report.put_into(record)
    step = max(record.snapshots)
    name = service.own.add(
        CHECKER, plan.task, lambda name: record.model(step, name), f"{plan.task}-{step}"
    ).name
    return service.store.run(service.example(name)[0])


_NUMBER = re.compile(r"(?<![\d·.,])\d+(?:,\d{3})*(?:\.\d+)?(?![\d·])(?: ?%)?")
_NAMED = re.compile(r"\([^()]*\b(?:19|20)\d\d\)|\b(?:layer|head|step|token|seed)s? \d+|`[^`]*`")
SMALL = 12  # numbers up to this one may count what the reader sees


def _check_numbers(service: Service, lesson: Lesson, number: int, context: GradingContext) -> None:
    """Raise ValueError unless each number in a step's text is measured, and so large."""
    step, words = lesson.steps[number - 1], next(iter(lesson.words.values()))[number]
    text = " ".join(words.texts)
    for one in step.measured:
        says = str(one["says"])
        if says not in text:
            raise ValueError(f"{says} is measured and not in the text")
        shown = context
        if one.get("state"):
            shown = shown_by(service, {**step.state, **one["state"]})
        asked = {name: value for name, value in one.items() if name not in ("says", "of", "state")}
        if "of" in one:
            _check_number(says, of(shown, one["of"], asked))
        elif says not in written(shown):
            raise ValueError(f"the network says {written(shown)}; the text {says}")
    measured = {one for given in step.measured for one in _NUMBER.findall(str(given["says"]))}
    measured |= {*_NUMBER.findall(f"{step.state} {step.measured} {step.check}")}  # what is set
    for found in _NUMBER.findall(_NAMED.sub("", " ".join(words.explains))):
        if found not in measured and not (found.isdecimal() and int(found) <= SMALL):
            raise ValueError(f"{found} is in the text and not measured")


def _check_number(says: str, value: float) -> None:
    digits = _NUMBER.findall(says)[0]  # "7 of 100"
    value *= 100 if digits.endswith("%") else 1
    digits = digits.rstrip(" %").replace(",", "")
    room = 0.5001 * 10 ** -len(digits.partition(".")[2])
    if abs(abs(value) - float(digits)) > room:
        raise ValueError(f"the text says {says}; measured: {value:.6g}")


def _not_there_yet(check: Check, step: Step, context: GradingContext) -> None:
    """Raise ValueError if the page already answers the check when the step opens."""
    fields = step.state
    first = {"site": str(context.run.trace.sites[0]), "head": 0} if fields else {}
    start = _click(check, {**first, **fields}, context.run)
    if start and check.grade(context, start).right:
        raise ValueError(f"the page answers it already as it opens: {start}")


def _check_hint(
    service: Service, step: Step, context: GradingContext, hint: int, given: Mapping[str, Any]
) -> None:
    """Follow a hint. Raises ValueError if what it names is a wrong answer."""
    check, fields = step.check, {**step.state, **given}
    assert check is not None
    try:
        if isinstance(check, OutputCheck):
            led = check.grade(shown_by(service, fields), {})
        else:
            check_places(context.run, fields)
            answer = _click(check, given, context.run)
            if not answer:
                return _check_selected(check, fields, context)
            led = check.grade(context, answer)
        if not led.right:
            raise ValueError(led.says)
    except ValueError as error:
        raise ValueError(f"hint {hint}: {error}") from error


def _click(check: Check, given: Mapping[str, Any], run: Run) -> Answer:
    """The click that a hint or a state gives; {} if it gives none."""
    if check.kind == "cell" and "cell" in given:
        site = check.arguments["site"]
        return answer_of({"site": site, "cell": given["cell"]}, check, run)
    if check.kind == "head" and {"site", "head"} <= given.keys():
        return {"site": given["site"], "head": given["head"]}
    if check.kind == "token" and "read" in given:
        stack, _, token = str(given["read"]).rpartition(".")
        return {"stack": stack or "own", "token": int(token)} if token else {}
    return {}


def _check_selected(check: Check, fields: Mapping[str, Any], context: GradingContext) -> None:
    """Raise ValueError if the state selects another row, head or token than the check measures."""
    if isinstance(check, OutputCheck):
        return
    asked = dict(check.arguments)
    if isinstance(check, Choose):
        asked = dict(check.measured()[0 if check.bounds else check.best(context)])
    asked = counted(context, asked)
    for name, shown in _selected(fields, context.run).items():
        if name in asked and asked[name] != shown:
            raise ValueError(f"{name} {shown} is selected; the question is about {asked[name]}")


def _selected(fields: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """A state's selection, by the names of the measures' arguments."""
    masks = fields.get("tab") == "masks"
    site = fields.get("mask_site" if masks else "site")
    found: dict[str, Any] = {"site": site, "head": fields.get("mask_head" if masks else "head")}
    stack, _, token = str(fields.get("read", "")).rpartition(".")
    if token.isdecimal() and not stack:
        place = int(token)
        # With "alignment" by "written", a token's weights are one row above the token's.
        controls = VIEWS["attention"].controls()
        usual = {name: str(controls[name].default) for name in ("picture", "by")}
        shown = usual | shown_first(run.model, run.config) | dict(fields)
        above = int((shown["picture"], shown["by"]) == ("alignment", "written"))
        found |= {"token": place, "query": max(0, place - above)}
    if "cell" in fields:
        first = first_row(run, site) if site else 0
        row, _, column = fields["cell"].partition(",")
        found |= {"query": int(row) + first, "key": int(column)}
    return {
        name: int(one) if name != "site" else one for name, one in found.items() if one is not None
    }


def check(folder: str, names: list[str]) -> int:
    """Print a line for every step; returns the number of faulty ones."""
    lessons = read_folder(folder)
    service = _served(names)
    bad = 0
    for lesson in lessons.values():
        spoken = ", ".join(lesson.languages)
        print(f"{lesson.name} ({lesson.minutes} minutes; {spoken})")
        for found in verify(lesson, service):
            told = found.problem or found.says or "nothing is asked"
            print(f"  {'!' if found.problem else ' '} {found.step} {found.title}: {told}")
            bad += bool(found.problem)
    print(f"{bad} steps cannot be held." if bad else "Every step can be held.")
    return bad


def _served(names: list[str]) -> Service:
    return Service([load(name) for name in names], trainings=0)


def main() -> None:
    """The command line."""
    parser = Parser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=str(FOLDER), help="default: the bundled ones")
    parser.add_argument(
        "--checkpoints", nargs="+", default=bundled_names(), help="the models that are served"
    )
    options = parser.parse_args()
    try:
        sys.exit(check(options.folder, options.checkpoints) > 0)
    except (ValueError, OSError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()

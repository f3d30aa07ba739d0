"""Check lessons with the models that they need: every state opens, every check can be passed and
failed, every hint leads to the answer, every number in a text is what the model gives, every
translation is made from today's text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from transformer.checkpoint import bundled_names
from transformer.command_line import Parser
from transformer.inference.model import load
from transformer.learning.training import Plan, Record, bundled_recording, train
from transformer.lessons import FOLDER, read_folder
from transformer.lessons.checks import Check, PupilAnswer
from transformer.lessons.lesson import Lesson, Step
from transformer.lessons.measures import GradingContext, counted, first_row, of
from transformer.lessons.output_check import written
from transformer.lessons.stamps import behind, put_stamps
from transformer.runs.run import Run
from transformer.server.fields import shown_first
from transformer.server.kept.service import Service
from transformer.server.learn.lessons import answer_of, check_places, shown_by
from transformer.views.registry import VIEWS

LEAST_HINTS = 2  # the third shows the answer, which is worked out
CHECKER = ""  # the session of no visit


class Found(NamedTuple):
    """The result for one step. problem: a sentence, or "" if the step works."""

    step: int
    title: str
    says: str = ""
    problem: str = ""


def verify(lesson: Lesson, service: Service) -> Iterator[Found]:
    """Check each step as a visitor would take it."""
    context = None
    for number, step in enumerate(lesson.steps, 1):
        try:
            if step.state:
                context = shown_by(service, step.state)
            if context is None:
                raise ValueError("the first step needs a state")
            _check_numbers(service, step, context)
            says = ""
            if step.check is not None:
                before, (context, says) = context, _held(service, step, step.check, context)
                if len(step.hints) < LEAST_HINTS:
                    raise ValueError(f"a check has at least {LEAST_HINTS} hints")
                _check_selected(step.check, step.state, before)
                for hint, hinted in step.hinted.items():
                    _check_hint(service, step, step.check, before, hint, hinted)
            yield Found(number, step.title, says)
        except (ValueError, KeyError) as error:
            yield Found(number, step.title, problem=str(error))


def _held(
    service: Service, step: Step, check: Check, context: GradingContext
) -> tuple[GradingContext, str]:
    """Pass and fail the check; returns the page afterwards and the verdict."""
    if all(check.grade(context, answer).right for answer in check.answers(context)):
        raise ValueError("it cannot be failed: every answer is right")
    right = check.right_answer(context)
    after = _solved(service, step, context) if right is None else context
    passed = check.grade(after, right or {})
    if not passed.right:
        raise ValueError(f"the answer to it is not right: {passed.says}")
    first = {"site": str(context.run.trace.sites[0]), "head": 0} if step.state else {}
    start = _click(check, {**first, **step.state}, context.run)
    if start and check.grade(context, start).right:
        raise ValueError(f"the page answers it already as it opens: {start}")
    return after, passed.says


def _solved(service: Service, step: Step, context: GradingContext) -> GradingContext:
    """The run that the solution of a step shows; of a training run, its last network's example."""
    solution = step.solution
    if not solution:
        raise ValueError("it needs a solution: a state of the page that answers it")
    if "learn" in solution:
        record = bundled_recording(solution["learn"])
    elif "train" in solution:
        record = _trained(Plan(**solution["train"]))
    else:
        return shown_by(service, {**step.state, **solution})
    own = service.own.add(CHECKER, record.plan.task, record.model())
    run = service.store.run(service.example(own.name)[0])
    if "interventions" in solution:
        request = run.request
        run = service.generate(
            own.name, request.text, max_new_tokens=request.max_new_tokens,
            interventions=solution["interventions"],
        )  # fmt: skip
    return GradingContext(run=run, models=service.queries)


@cache
def _trained(plan: Plan) -> Record:
    """The whole training run, once for all lessons that have it."""
    *_, record = train(plan)
    return record


_NUMBER = re.compile(r"(?<![\d·.,])\d+(?:,\d{3})*(?:\.\d+)?(?![\d·])(?: ?%)?")
_NAMED = re.compile(r"\([^()]*\b(?:19|20)\d\d\)|\b(?:layer|head|step|token|seed)s? \d+|`[^`]*`")
MAX_SMALL_NUMBER = 12  # numbers up to this one may count what the reader sees


def _check_numbers(service: Service, step: Step, context: GradingContext) -> None:
    """Raise ValueError unless each number in a step's text is measured, and is right."""
    texts = step.texts.values()
    text = " ".join(part if isinstance(part, str) else " ".join(part) for part in texts)
    for number in step.measured:
        says = str(number["says"])
        if says not in text:
            raise ValueError(f"{says} is measured and not in the text")
        seen = context
        if number.get("state"):
            seen = shown_by(service, {**step.state, **number["state"]})
        arguments = {
            name: value for name, value in number.items() if name not in ("says", "of", "state")
        }
        if "of" in number:
            _check_number(says, of(seen, number["of"], arguments))
        elif says not in written(seen):
            raise ValueError(f"the network says {written(seen)}; the text {says}")
    measured = {
        figure for number in step.measured for figure in _NUMBER.findall(str(number["says"]))
    }
    measured |= {*_NUMBER.findall(f"{step.state} {step.measured} {step.check}")}  # what is set
    for figure in _NUMBER.findall(_NAMED.sub("", " ".join(step.explains))):
        if figure not in measured and not (figure.isdecimal() and int(figure) <= MAX_SMALL_NUMBER):
            raise ValueError(f"{figure} is in the text and not measured")


def _check_number(says: str, value: float) -> None:
    digits = _NUMBER.findall(says)[0]  # "7 of 100"
    value *= 100 if digits.endswith("%") else 1
    digits = digits.rstrip(" %").replace(",", "")
    room = 0.5001 * 10 ** -len(digits.partition(".")[2])
    if abs(abs(value) - float(digits)) > room:
        raise ValueError(f"the text says {says}; measured: {value:.6g}")


def _check_hint(
    service: Service, step: Step, check: Check, context: GradingContext, hint: str,
    hinted: Mapping[str, Any],
) -> None:  # fmt: skip
    """Follow a hint. Raises ValueError if what it names is a wrong answer."""
    fields = {**step.state, **hinted}
    try:
        seen = shown_by(service, fields) if check.kind == "run" else context
        check_places(seen.run, fields)
        answer = _click(check, hinted, seen.run)
        if check.kind != "run" and not answer:
            _check_selected(check, fields, seen)
        elif not (led := check.grade(seen, answer)).right:
            raise ValueError(led.says)
    except ValueError as error:
        raise ValueError(f"hint {hint}: {error}") from error


def _click(check: Check, fields: Mapping[str, Any], run: Run) -> PupilAnswer:
    """The click that a hint or a state gives; {} if it gives none."""
    if check.kind == "cell" and "cell" in fields:
        site = check.arguments["site"]
        return answer_of({"site": site, "cell": fields["cell"]}, check, run)
    if check.kind == "head" and {"site", "head"} <= fields.keys():
        return {"site": fields["site"], "head": fields["head"]}
    if check.kind == "token" and "read" in fields:
        stack, _, token = str(fields["read"]).rpartition(".")
        return {"stack": stack or "own", "token": int(token)} if token else {}
    return {}


def _check_selected(check: Check, fields: Mapping[str, Any], context: GradingContext) -> None:
    """Raise ValueError if the state selects another row, head or token than the check measures."""
    arguments = counted(context, check.arguments)
    for name, value in _selected(fields, context.run).items():
        if name in arguments and not isinstance(arguments[name], list) and arguments[name] != value:
            raise ValueError(f"{name} {value} is selected; the question is about {arguments[name]}")


def _selected(fields: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """A state's selection, by the names of the measures' arguments."""
    masks = fields.get("tab") == "masks"
    site = fields.get("mask_site" if masks else "site")
    selected: dict[str, Any] = {"site": site, "head": fields.get("mask_head" if masks else "head")}
    stack, _, token = str(fields.get("read", "")).rpartition(".")
    if token.isdecimal() and not stack:
        place = int(token)
        # With "alignment" by "written", a token's weights are one row above the token's.
        controls = VIEWS["attention"].controls()
        usual = {name: str(controls[name].default) for name in ("picture", "by")}
        values = usual | shown_first(run.model, run.config) | dict(fields)
        above = int((values["picture"], values["by"]) == ("alignment", "written"))
        selected |= {"token": place, "query": max(0, place - above)}
    if "cell" in fields:
        first = first_row(run, site) if site else 0
        row, _, column = fields["cell"].partition(",")
        selected |= {"query": int(row) + first, "key": int(column)}
    return {
        name: int(value) if name != "site" else value
        for name, value in selected.items()
        if value is not None
    }


def check(folder: str, names: list[str]) -> int:
    """Print a line for every step; returns the number of faulty ones."""
    lessons = read_folder(folder)
    service = Service([load(name) for name in names], trainings=0)
    bad = 0
    for translations in lessons.values():
        lesson, *_ = translations.values()
        print(f"{lesson.name} ({lesson.minutes} minutes; {', '.join(translations)})")
        for late in behind(Path(folder) / lesson.name):
            print(f"  ! behind the original: {late}")
            bad += 1
        for finding in verify(lesson, service):
            verdict = finding.problem or finding.says or "nothing is asked"
            print(f"  {'!' if finding.problem else ' '} {finding.step} {finding.title}: {verdict}")
            bad += bool(finding.problem)
    print(f"{bad} steps cannot be held." if bad else "Every step can be held.")
    return bad


def main() -> None:
    """The command line."""
    parser = Parser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=str(FOLDER), help="default: the bundled ones")
    parser.add_argument(
        "--stamp", metavar="LANGUAGE", help="only say that this language follows today's texts"
    )
    parser.add_argument(
        "--checkpoints", nargs="+", default=bundled_names(), help="the models that are served"
    )
    options = parser.parse_args()
    try:
        if options.stamp:
            for path in sorted(Path(options.folder).glob(f"*/{options.stamp}.md")):
                put_stamps(path.parent, options.stamp)
            return
        sys.exit(check(options.folder, options.checkpoints) > 0)
    except (ValueError, OSError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()

"""Lessons: steps, each a state of the page with a few words, a task and a check.

A lesson is written in a few kinds of Markdown block:

# Title                     of the lesson
```toml                     its header: minutes, an aim, or also the steps of other lessons
```
A paragraph about it.

## Title                    of a step
```toml                     its header, see `Step`; others than the first may translate FOR_TEACHER
```
Paragraphs: what the step says.
? What do you guess?        before the picture opens; not graded
- A guess                   and the next one
> What there is to do.
- An option                 of a question with several
1. A hint                   and the next one
Paragraphs after that: the explanation, shown once it is answered.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from transformer.checks import check_choice, check_flag, check_names, check_whole, shortened
from transformer.lessons.checks import CLICKED, Check, Choose, Click, Number
from transformer.lessons.measures import MEASURES
from transformer.lessons.output_check import COMPARED, OutputCheck
from transformer.messages import ENGLISH

MAX_BYTES = 100_000  # of a language's file
IN_HEADER = ("minutes", "aim", "steps")
CHECKS = ("click", "number", "choose", "run")
# What it teaches, a wrong idea that it corrects, a question for the class.
FOR_TEACHER = ("aim", "misconception", "ask")
IN_STEP = (
    "state", "types", "ordered", "check", "solution", "hints", "measured", *FOR_TEACHER, "project",
)  # fmt: skip
FENCE = "```"
_ITEM = re.compile(r"(-|\d+\.)\s+(.*)")


@dataclass(kw_only=True, slots=True)
class Part:
    """The title part of a lesson, or one of its steps. header: None if there is none.

    guess, guesses: a question before the picture opens, and what can be said to it. explains: the
    paragraphs after the guess and the task. for_teacher: what FOR_TEACHER names.
    """

    title: str
    header: dict[str, Any] | None = None
    says: list[str] = field(default_factory=list)
    guess: str = ""
    guesses: list[str] = field(default_factory=list)
    task: str = ""
    options: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    explains: list[str] = field(default_factory=list)
    for_teacher: dict[str, str] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        """Everything that a visitor reads, in order."""
        asked = [self.guess, *self.guesses, self.task, *self.options, *self.hints]
        return [self.title, *self.says, *asked, *self.explains]


def read(text: str) -> list[Part]:
    """The title part, then the steps. Raises ValueError with the unreadable line's number."""
    parts: list[Part] = []
    lines = [*text.splitlines(), ""]
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        if line.startswith("#"):
            marks, _, title = line.partition(" ")
            if marks != ("##" if parts else "#") or not title.strip():
                raise ValueError(
                    f"line {at + 1}: one “# Title” for the lesson, “## Title” for a step"
                )
            parts.append(Part(title=title.strip()))
        elif line and not parts:
            raise ValueError(f"line {at + 1}: a lesson begins with “# Title”")
        elif line.startswith(FENCE):
            at = _header(lines, at, parts[-1])
        elif line:
            at = _block(lines, at, parts[-1])
            continue
        at += 1
    if not parts:
        raise ValueError("line 1: a lesson begins with “# Title”")
    return parts


def _header(lines: list[str], start: int, part: Part) -> int:
    """Read a part's header; returns the line that ends it."""
    end = next((n for n in range(start + 1, len(lines)) if lines[n].strip() == FENCE), None)
    if end is None:
        raise ValueError(f"line {start + 1}: a header without an end")
    try:
        part.header = tomllib.loads("\n".join(lines[start + 1 : end]))
        part.for_teacher = {name: part.header[name] for name in FOR_TEACHER if name in part.header}
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"line {start + 1}: {error}") from error
    for name, text in part.for_teacher.items():
        if not isinstance(text, str):
            raise ValueError(f"line {start + 1}: {name} must be a text; got {shortened(text)}")
    return end


def _block(lines: list[str], start: int, part: Part) -> int:
    """Read a paragraph, a task or a list, up to an empty line; returns the next line."""
    at = start
    found: list[str] = []
    while lines[at].strip() and not lines[at].startswith(("#", FENCE)):
        found.append(lines[at].strip())
        at += 1
    if found[0].startswith(">"):
        part.task = " ".join(line.removeprefix(">").strip() for line in found)
    elif found[0].startswith("? "):
        part.guess = " ".join(line.removeprefix("?").strip() for line in found)
    elif _ITEM.fullmatch(found[0]):
        into = part.options if part.task else part.guesses
        into = into if found[0].startswith("-") else part.hints
        for line in found:
            item = _ITEM.fullmatch(line)
            if item:
                into.append(item[2])
            else:
                into[-1] += f" {line}"
    else:
        (part.explains if part.task or part.guess else part.says).append(" ".join(found))
    return at


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """state: what the page shows, by the names that a link has; none: what it showed before.

    check: the question, if any. types: whether text and settings are shown, to be changed; always
    for a check of the output. ordered: whether the guesses, a scale or such as end in "neither",
    are not shuffled. solution: a state that answers a check without a right answer to
    compute; {learn = "copy"} opens the network of that bundled recording, {train = {…}} that of a
    training by this plan. hints: by a hint's number, the fields of a state that select the token,
    head or cell that it names. measured: the numbers in its text, each {says, of, …, state}: the
    measure `of` of the run that the step's state, changed by `state`, shows; without `of`, what
    that run says. project: whether a teacher should show it on the projector.
    """

    state: Mapping[str, Any]
    types: bool = False
    ordered: bool = False
    check: Check | None = None
    solution: Mapping[str, Any] = field(default_factory=dict)
    hints: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    measured: tuple[Mapping[str, Any], ...] = ()
    project: bool = False


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A folder NAME/ with a LANGUAGE.md per language; the first with headers sets the steps.

    of_others: its steps are those of other lessons, each "NAME.STEP".
    """

    name: str
    minutes: int
    steps: tuple[Step, ...]
    words: Mapping[str, list[Part]] = field(repr=False)
    of_others: tuple[str, ...] = ()

    def with_steps_of(self, others: Mapping[str, Lesson]) -> Lesson:
        """The lesson with the steps that it names. Raises ValueError for an unknown one."""
        if not self.of_others:
            return self
        found: list[tuple[Lesson, int]] = []
        for named in self.of_others:
            name, _, number = named.rpartition(".")
            check_choice("steps", name, others)
            steps = {str(at): at for at in range(1, len(others[name].steps) + 1)}
            check_choice("steps", number, steps)
            found.append((others[name], steps[number]))
        words = {
            language: [parts[0], *(one.in_language(language)[at] for one, at in found)]
            for language, parts in self.words.items()
        }
        steps_of = tuple(one.steps[at - 1] for one, at in found)
        return dataclasses.replace(self, steps=steps_of, words=words)

    def in_language(self, language: str) -> list[Part]:
        """Its parts in the language that is nearest to this one."""
        return self.words[self.nearest(language)]

    def nearest(self, language: str) -> str:
        """This language if it is written in it, else English, else its first language."""
        return next(one for one in (language, ENGLISH, *self.words) if one in self.words)

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages that it is written in."""
        return tuple(self.words)


def read_lesson(folder: Path) -> Lesson:
    """Read a lesson's folder. Raises ValueError with the file and its fault."""
    words, own = {}, None
    for path in sorted(folder.glob("*.md"), key=lambda one: (one.stem != ENGLISH, one.stem)):
        try:
            if path.stat().st_size > MAX_BYTES:
                raise ValueError(f"a lesson's file must have at most {MAX_BYTES} bytes")
            words[path.stem] = read(path.read_text(encoding="utf-8-sig"))
        except ValueError as error:
            raise ValueError(_in(path, error)) from error
        own = own or path
    if own is None:
        raise ValueError(f"{folder} holds no LANGUAGE.md, such as en.md")
    try:
        steps = tuple(_step(part) for part in words[own.stem][1:])
        header = words[own.stem][0].header or {}
        check_names("header", header, IN_HEADER)
        minutes = check_whole("minutes", header.get("minutes"), 1, 90)
        of_others = tuple(map(str, header.get("steps", ())))
    except ValueError as error:
        raise ValueError(_in(own, error)) from error
    for language, parts in words.items():
        _check_alike(folder / f"{language}.md", parts, words[own.stem])
        for part, first in zip(parts, words[own.stem], strict=True):
            part.for_teacher = first.for_teacher | part.for_teacher
    return Lesson(name=folder.name, minutes=minutes, steps=steps, words=words, of_others=of_others)


def _in(path: Path, error: object) -> str:
    return f"{path.parent.name}/{path.name}: {error}"


def _step(part: Part) -> Step:
    header = part.header
    if header is None:
        raise ValueError(f"the step “{part.title}” has no header")
    try:
        check_names("header", header, IN_STEP)
        check = check_of(header["check"]) if "check" in header else None
        if (check is not None) != bool(part.task):
            raise ValueError("a check needs a task (“> …”), and a task a check")
        if check is not None and check.n_options != len(part.options):
            raise ValueError(
                f"the check has {check.n_options} options; the text has {len(part.options)}"
            )
        numbers = {str(number): number for number in range(1, len(part.hints) + 1)}
        hints: Mapping[str, Any] = header.get("hints", {})
        for number in hints:
            check_choice("hint", number, numbers)
        for flag in ("ordered", "project"):
            check_flag(flag, header.get(flag, False))
        return Step(
            state=header.get("state", {}), check=check,
            types=bool(header.get("types", check is not None and check.kind == "run")),
            ordered=header.get("ordered", False), solution=header.get("solution", {}),
            hints={numbers[number]: fields for number, fields in hints.items()},
            measured=tuple(header.get("measured", ())),
            project=header.get("project", False),
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"the step “{part.title}”: {error}") from error


def _check_alike(path: Path, parts: list[Part], own: list[Part]) -> None:
    """Raise ValueError unless a translation has the same options, hints and tasks."""
    if len(parts) != len(own):
        raise ValueError(_in(path, f"{len(own) - 1} steps are needed; got {len(parts) - 1}"))
    for part, other in zip(parts, own, strict=True):
        here, there = (
            (len(p.guesses), len(p.options), len(p.hints), bool(p.task)) for p in (part, other)
        )
        if here != there:
            needed = "as many options and hints, and a task where the lesson's own language has one"
            raise ValueError(_in(path, f"the step “{part.title}” needs {needed}"))


def check_of(given: Any) -> Check:
    """The check in a step's header. Raises ValueError for an unknown one."""
    if not isinstance(given, dict):
        raise ValueError(f"check must be a table; got {shortened(given)}")
    given = dict(given)
    kind = next((one for one in CHECKS if one in given), None)
    if kind is None:
        raise ValueError(f"a check needs one of {', '.join(CHECKS)}")
    value = given.pop(kind)
    if kind == "run":
        return _output_check(value)
    if kind == "click":
        return _click(value, given)
    own = "tolerance" if kind == "number" else "bounds"
    extra = {own: given.pop(own)} if own in given else {}
    _check_arguments(value, given, ())
    if kind == "number":
        return Number(of=value, arguments=given, **extra)
    lists = [name for name, one in given.items() if isinstance(one, list)]
    if len(lists) != (0 if extra else 1):
        raise ValueError(
            f"a choice has bounds, or one argument that is a list; got {shortened(given)}"
        )
    return Choose(of=value, arguments=given, bounds=tuple(extra.get("bounds", ())))


def _click(what: Any, given: dict[str, Any]) -> Click:
    check_choice("click", what, CLICKED)
    name = given.pop("of", None)
    more = {key: given.pop(key) for key in ("least", "within") if key in given}
    wanted = [one for one in _arguments(name) if one not in given]
    free = CLICKED[what] if what != "token" else tuple(
        one for one in wanted if one in ("token", "key")
    )  # fmt: skip
    kept = {key: value for key, value in given.items() if key != "kind" or what != "head"}
    _check_arguments(name, kept, free)
    return Click(kind=what, of=name, arguments=given, free=free, **more)


def _output_check(given: Any) -> OutputCheck:
    settings = (one for one in dataclasses.fields(OutputCheck) if one.init)
    allowed = {one.name: list if one.default == () else type(one.default) for one in settings}
    if not isinstance(given, dict) or not given:
        raise ValueError("run must be a table of what the run is to be")
    check_names("run", given, allowed)
    for name, value in given.items():
        if not isinstance(value, allowed[name]):
            raise ValueError(f"run takes {[*allowed]}; got {name} = {shortened(value)}")
    for one in given.get("numbers", ()):
        asked = {name: value for name, value in one.items() if name not in (*COMPARED, "of")}
        _check_arguments(one.get("of"), asked, ())
    lists = {name: tuple(given.get(name, ())) for name in ("alters", "numbers")}
    return OutputCheck(**given | lists)


def _arguments(name: Any) -> tuple[str, ...]:
    check_choice("measure", name, MEASURES)
    return MEASURES[name].arguments


def _check_arguments(name: Any, given: Mapping[str, Any], free: tuple[str, ...]) -> None:
    """Raise ValueError unless a measure gets exactly its arguments."""
    wanted, got = sorted(_arguments(name)), sorted([*given, *free])
    if got != wanted:
        raise ValueError(f"{name} takes {wanted}; got {got}")

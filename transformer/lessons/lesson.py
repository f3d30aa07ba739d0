"""Lessons: steps, each a state of the page with a few words, a task and a check.

A lesson is written in a few kinds of Markdown block:

# Title                     of the lesson
```toml                     its header: minutes, an aim, or also the steps of other lessons
```
A paragraph about it.

## Title                    of a step
```toml                     its header, see `Step`; a translation's has FOR_TEACHER, and its stamps
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

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transformer.checks import check_choice, check_flag, check_names, check_whole, shortened
from transformer.lessons.check_header import check_of
from transformer.lessons.checks import Check
from transformer.lessons.output_check import OutputCheck
from transformer.messages import ENGLISH

MAX_BYTES = 100_000  # of a language's file
# What it teaches, a wrong idea that it corrects, a question for the class.
FOR_TEACHER = ("aim", "misconception", "ask")
IN_HEADER = ("minutes", "aim", "steps", "plans", "made_from")
IN_STEP = (
    "state", "types", "ordered", "guessed", "check", "solution", "hints", "measured",
    *FOR_TEACHER, "phones", "minutes", "who",
)  # fmt: skip
# Of a plan: for whom, in how many minutes, which steps to leave out, which steps or lessons to add.
IN_PLAN = ("for", "minutes", "leave_out", "add")
WHOM = ("pupils", "students")
# Who does a step: pupils in pairs, the class before the projector, everybody alone.
WHO = ("", "pairs", "projector", "everybody")
LISTS = ("says", "guesses", "options", "hints", "explains")


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A step in one language: its texts, and what its header says.

    guess, guesses: a question before the picture opens, and what can be said to it. guessed: the
    right guess, from 1; 0 where none is. explains: the paragraphs after the guess and the task.
    state: what the page shows, by the names that a link has; none: what it showed before.
    check: the question, if any. types: whether text and settings are shown, to be changed; always
    for a check of the output. ordered: whether the guesses, a scale or such as end in "neither",
    are not shuffled. solution: a state that answers a check without a right answer to
    compute; {learn = "copy"} opens the network of that bundled recording, {train = {…}} that of a
    training by this plan. phones: whether the phones of a class get a box for the text of the run,
    in which the solution's other changes are made.
    hinted: by a hint's number, the fields of a state that select the token, head or cell that it
    names. measured: the numbers in its text, each {says, of, …, state}: the measure `of` of the run
    that the step's state, changed by `state`, shows; without `of`, what that run says.
    minutes, who: for the teacher, with a class; who is one of WHO.
    """

    title: str
    says: Sequence[str] = ()
    guess: str = ""
    guesses: Sequence[str] = ()
    task: str = ""
    options: Sequence[str] = ()
    hints: Sequence[str] = ()
    explains: Sequence[str] = ()
    aim: str = ""
    misconception: str = ""
    ask: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    types: bool = False
    ordered: bool = False
    guessed: int = 0
    check: Check | None = None
    solution: Mapping[str, Any] = field(default_factory=dict)
    hinted: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    measured: Sequence[Mapping[str, Any]] = ()
    phones: bool = False
    minutes: int = 0
    who: str = ""

    @property
    def texts(self) -> dict[str, Any]:
        """Everything that a visitor reads, by name, in order."""
        names = ("title", "says", "guess", "guesses", "task", "options", "hints", "explains")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How a teacher fits a lesson to another length or another class.

    whom: one of WHOM. leave_out: steps, from 1. add: lessons, "NAME", and steps of others,
    "NAME.STEP"; titled: what each is called, and the lesson of a step. total: minutes with a class.
    """

    whom: str
    minutes: int
    leave_out: Sequence[int] = ()
    add: Sequence[str] = ()
    titled: Sequence[tuple[str, str]] = ()
    total: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Lesson:
    """A lesson in one language. minutes: for a pupil who works alone. plans: for the teacher, of
    other lengths. of_others: its steps are those of other lessons, "NAME.STEP"."""

    name: str
    language: str
    title: str
    about: str
    minutes: int
    aim: str = ""
    plans: Sequence[Plan] = ()
    steps: tuple[Step, ...] = ()
    of_others: Sequence[str] = ()

    @property
    def class_minutes(self) -> int:
        """The minutes of its steps with a class; those of a pupil who works alone if no step has
        any."""
        return sum(step.minutes for step in self.steps) or self.minutes

    def with_steps_of(self, others: Mapping[str, Translations]) -> Lesson:
        """The lesson with the steps that it and its plans name. Raises ValueError for an unknown
        one."""
        steps = [_step_of(others, named, self.language) for named in self.of_others]
        lesson = replace(self, steps=tuple(steps) or self.steps)
        return replace(lesson, plans=tuple(_filled(plan, lesson, others) for plan in self.plans))


Translations = Mapping[str, Lesson]  # of one lesson, by language


def _step_of(lessons: Mapping[str, Translations], named: str, language: str) -> Step:
    name, _, number = named.rpartition(".")
    check_choice("steps", name, lessons)
    numbered = dict(_numbered(nearest(lessons[name], language).steps))
    check_choice("steps", number, numbered)
    return numbered[number]


def _filled(plan: Plan, lesson: Lesson, others: Mapping[str, Translations]) -> Plan:
    """The plan with its titles and its total. Raises ValueError for a step that does not exist."""
    total, titled = lesson.class_minutes, list[tuple[str, str]]()
    for number in plan.leave_out:
        check_whole("leave_out", number, 1, len(lesson.steps))
        total -= lesson.steps[number - 1].minutes
    for named in plan.add:
        if "." in named:
            step, of = _step_of(others, named, lesson.language), named.partition(".")[0]
            titled.append((step.title, nearest(others[of], lesson.language).title))
            total += step.minutes
        else:
            check_choice("add", named, others)
            added = nearest(others[named], lesson.language)
            titled.append((added.title, ""))
            total += added.class_minutes
    return replace(plan, titled=titled, total=total)


def nearest(lesson: Translations, language: str) -> Lesson:
    """The lesson in this language if it is written in it, else in English, else in its first."""
    return next(lesson[name] for name in (language, ENGLISH, *lesson) if name in lesson)


def language_paths(folder: Path) -> list[Path]:
    """The files of a lesson's languages; the first one's headers count. Raises ValueError if there
    is none."""
    paths = sorted(folder.glob("*.md"), key=lambda path: (path.stem != ENGLISH, path.stem))
    if not paths:
        raise ValueError(f"{folder} holds no LANGUAGE.md, such as en.md")
    return paths


def parts_of(path: Path) -> list[dict[str, Any]]:
    """The texts of a file's title part and of each step, by name, with its "header" or None. Raises
    ValueError with the unreadable line's number."""
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"a lesson's file must have at most {MAX_BYTES} bytes")
    return _parts(path.read_text(encoding="utf-8-sig"))


def read_lesson(folder: Path) -> dict[str, Lesson]:
    """Read a lesson's folder NAME/ with a LANGUAGE.md per language, of which the first, English if
    there is one, has the headers. Raises ValueError with the file and its fault."""
    paths = language_paths(folder)
    lessons: dict[str, Lesson] = {}
    for path in paths:
        try:
            intro, *parts = parts_of(path)
            header = intro["header"] or {}
            check_names("header", header, IN_HEADER)
            texts = {"title": intro["title"], "about": " ".join(intro["says"]), **_notes(header)}
            if path is paths[0]:
                lesson = Lesson(
                    name=folder.name, language=path.stem, steps=tuple(map(_step, parts)),
                    minutes=check_whole("minutes", header.get("minutes"), 1, 90),
                    of_others=tuple(map(str, header.get("steps", ()))),
                    plans=tuple(map(_plan, header.get("plans", ()))), **texts,
                )  # fmt: skip
            else:
                first = lessons[paths[0].stem]
                steps = _translated(first.steps, parts)
                lesson = replace(first, language=path.stem, steps=steps, **texts)
        except ValueError as error:
            raise ValueError(f"{folder.name}/{path.name}: {error}") from error
        lessons[path.stem] = lesson
    return lessons


_BLOCK = re.compile(
    r"^```.*\n(?P<header>[\s\S]*?)^``` *$|^(?P<endless>```)|^(?P<marks>#\S*) *(?P<title>.*)"
    r"|(?P<text>(?:^(?!#|```).*\S.*\n?)+)",
    re.MULTILINE,
)
_ITEM = re.compile(r"^ *(?:-|(\d+\.))\s+", re.MULTILINE)
_MARKED = {"?": "guess", ">": "task"}


def _parts(text: str) -> list[dict[str, Any]]:
    """See `parts_of`."""
    parts: list[dict[str, Any]] = []
    for block in _BLOCK.finditer(text):
        try:
            if block["marks"]:
                if block["marks"] != ("##" if parts else "#") or not block["title"].strip():
                    raise ValueError("one “# Title” for the lesson, “## Title” for a step")
                lists: dict[str, list[str]] = {name: [] for name in LISTS}
                title = block["title"].strip()
                parts.append({"title": title, "guess": "", "task": "", "header": None, **lists})
            elif not parts:
                raise ValueError("a lesson begins with “# Title”")
            elif block["endless"]:
                raise ValueError("a header without an end")
            elif block["text"]:
                _add(parts[-1], block["text"].strip())
            else:
                parts[-1]["header"] = tomllib.loads(block["header"])
        except ValueError as error:
            line = text.count("\n", 0, block.start()) + 1
            raise ValueError(f"line {line}: {error}") from error
    if not parts:
        raise ValueError("line 1: a lesson begins with “# Title”")
    return parts


def _add(part: dict[str, Any], text: str) -> None:
    """Add a paragraph, a guess, a task or a list to a part."""
    if named := _MARKED.get(text[0]):
        part[named] = _joined(text, text[0])
    elif item := _ITEM.match(text):
        options = "options" if part["task"] else "guesses"
        _, *items = _ITEM.split(text)
        part["hints" if item[1] else options] += map(_joined, items[1::2])
    else:
        part["explains" if part["task"] or part["guess"] else "says"].append(_joined(text))


def _joined(text: str, mark: str = "") -> str:
    return " ".join(line.strip().removeprefix(mark).strip() for line in text.splitlines())


def _step(part: dict[str, Any]) -> Step:
    header = part.pop("header")
    try:
        if header is None:
            raise ValueError("it has no header")
        check_names("header", header, IN_STEP)
        _check_tables(header)
        check = check_of(header["check"]) if "check" in header else None
        if isinstance(check, OutputCheck) and not check.model:
            check = replace(check, model=header.get("state", {}).get("model", ""))
        if (check is not None) != bool(part["task"]):
            raise ValueError("a check needs a task (“> …”), and a task a check")
        if check is not None and check.n_options != len(part["options"]):
            n_options = len(part["options"])
            raise ValueError(f"the check has {check.n_options} options; the text has {n_options}")
        settings = {"types": check is not None and check.kind == "run", **header, **_notes(header)}
        for flag in ("types", "ordered", "phones"):
            check_flag(flag, settings.get(flag, False))
        check_whole("minutes", settings.get("minutes", 0), 0, 90)
        check_choice("who", settings.get("who", ""), WHO)
        if settings.get("phones") and "text" not in header.get("solution", {}):
            raise ValueError("phones takes a check of a run whose solution has a text")
        check_whole("guessed", settings.get("guessed", 0), 0, len(part["guesses"]))
        hinted: Mapping[str, Any] = settings.pop("hints", {})
        for number in hinted:
            check_choice("hint", number, dict(_numbered(part["hints"])))
        return Step(**part, **settings | {"check": check, "hinted": hinted})
    except ValueError as error:
        raise ValueError(f"the step “{part['title']}”: {error}") from error


def _plan(header: Any) -> Plan:
    if not isinstance(header, Mapping):
        raise ValueError(f"plans must be a list of tables; got {shortened(header)}")
    check_names("plans", header, IN_PLAN)
    check_choice("for", header.get("for"), WHOM)
    return Plan(
        whom=header["for"], minutes=check_whole("minutes", header.get("minutes"), 1, 240),
        leave_out=tuple(header.get("leave_out", ())), add=tuple(map(str, header.get("add", ()))),
    )  # fmt: skip


def _check_tables(header: Mapping[str, Any]) -> None:
    """Raise ValueError where a step's header has a text or a number in place of a table."""
    for name in ("state", "check", "solution", "hints"):
        if not isinstance(header.get(name, {}), Mapping):
            raise ValueError(f"{name} must be a table; got {shortened(header[name])}")
    for name in ("state", "solution"):
        model = header.get(name, {}).get("model", "")
        if not isinstance(model, str):
            raise ValueError(f"{name}.model must be a text; got {shortened(model)}")
    measured = header.get("measured", [])
    if not isinstance(measured, list) or not all(isinstance(table, Mapping) for table in measured):
        raise ValueError(f"measured must be a list of tables; got {shortened(measured)}")


def _translated(steps: Sequence[Step], parts: list[dict[str, Any]]) -> tuple[Step, ...]:
    """The steps with the texts of another language. Raises ValueError unless it has as many."""
    if len(parts) != len(steps):
        raise ValueError(f"{len(steps)} steps are needed; got {len(parts)}")
    translated = []
    for part, step in zip(parts, steps, strict=True):
        notes, lists = _notes(part.pop("header") or {}), ("guesses", "options", "hints")
        alike = all(len(part[name]) == len(step.texts[name]) for name in lists)
        if not alike or bool(part["task"]) != bool(step.task):
            needed = "as many options and hints, and a task where the lesson's own language has one"
            raise ValueError(f"the step “{part['title']}” needs {needed}")
        translated.append(replace(step, **part, **notes))
    return tuple(translated)


def _notes(header: Mapping[str, Any]) -> dict[str, Any]:
    """What a header says for the teacher."""
    notes = {name: header[name] for name in FOR_TEACHER if name in header}
    for name, text in notes.items():
        if not isinstance(text, str):
            raise ValueError(f"{name} must be a text; got {shortened(text)}")
    return notes


def _numbered(items: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(str(number), item) for number, item in enumerate(items, 1)]

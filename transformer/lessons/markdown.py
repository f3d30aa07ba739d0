"""A lesson's text file as it stands: Markdown, of which a step takes a few kinds of block.

# Title                     of the lesson
```toml                     its header: minutes, model
```
A paragraph about it.

## Title                    of a step
```toml                     its header, see `lesson.Step`; only in the first language
```
Paragraphs: what the step says.
> What there is to do.
- An option                 of a question with several
1. A hint                   and the next one
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

FENCE = "```"
_ITEM = re.compile(r"(-|\d+\.)\s+(.*)")


@dataclass(kw_only=True, slots=True)
class Part:
    """The lesson itself or one of its steps. header: None where there is none."""

    title: str
    header: dict[str, Any] | None = None
    says: list[str] = field(default_factory=list)
    task: str = ""
    options: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)


def read(text: str) -> list[Part]:
    """The lesson, then its steps. Raises ValueError with the line that cannot be read."""
    parts: list[Part] = []
    lines = [*text.splitlines(), ""]
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        if line.startswith("#"):
            parts.append(_headed(line, at, first=not parts))
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


def _headed(line: str, at: int, *, first: bool) -> Part:
    marks, _, title = line.partition(" ")
    if marks != ("#" if first else "##") or not title.strip():
        raise ValueError(f"line {at + 1}: one “# Title” for the lesson, “## Title” for a step")
    return Part(title=title.strip())


def _header(lines: list[str], start: int, part: Part) -> int:
    """The line that ends the header."""
    end = next((n for n in range(start + 1, len(lines)) if lines[n].strip() == FENCE), None)
    if end is None:
        raise ValueError(f"line {start + 1}: a header without an end")
    try:
        part.header = tomllib.loads("\n".join(lines[start + 1 : end]))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"line {start + 1}: {error}") from error
    return end


def _block(lines: list[str], start: int, part: Part) -> int:
    """A paragraph, a task or a list, which the next empty line ends; the line after it."""
    at = start
    found: list[str] = []
    while lines[at].strip() and not lines[at].startswith(("#", FENCE)):
        found.append(lines[at].strip())
        at += 1
    if found[0].startswith(">"):
        part.task = " ".join(line.removeprefix(">").strip() for line in found)
    elif _ITEM.fullmatch(found[0]):
        for line in found:
            item = _ITEM.fullmatch(line)
            into = part.options if found[0].startswith("-") else part.hints
            if item:
                into.append(item[2])
            else:
                into[-1] += f" {line}"
    else:
        part.says.append(" ".join(found))
    return at

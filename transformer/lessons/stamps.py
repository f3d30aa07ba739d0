"""Stamps of translations: each block of a translated step keeps a short hash of the text in the
lesson's own language that it was made from, in its header:

    made_from = {title = "3f2a", says = "11b0", task = "c04d"}

A block whose text has changed since is behind. `python -m transformer.check_lessons` names it;
`--stamp de` says that the German is made from today's texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from transformer.lessons.lesson import FOR_TEACHER, language_paths, parts_of

MADE_FROM = "made_from"
BLOCKS = ("title", "says", "guess", "guesses", "task", "options", "hints", "explains")
N_SIGNS = 4


def stamps_of(part: Mapping[str, Any]) -> dict[str, str]:
    """The stamps of a step's blocks and teacher's texts, by name; empty ones have none."""
    header = part["header"] or {}
    texts = {name: part[name] for name in BLOCKS} | {
        name: header[name] for name in FOR_TEACHER if name in header
    }
    return {name: stamp(text) for name, text in texts.items() if text}


def stamp(text: object) -> str:
    """A short hash of a text or of a list of texts."""
    return sha256(repr(text).encode()).hexdigest()[:N_SIGNS]


def behind(folder: Path) -> Iterator[str]:
    """Name each translated block of a lesson whose original has changed since: "de: 2 task".
    Files without stamps are left out; 0 is the part before the first step."""
    first, *translations = language_paths(folder)
    originals = [stamps_of(part) for part in parts_of(first)]
    for path in translations:
        parts = parts_of(path)
        if not any(MADE_FROM in (part["header"] or {}) for part in parts):
            continue
        for number, (part, now) in enumerate(zip(parts, originals, strict=True)):
            made_from = (part["header"] or {}).get(MADE_FROM, {})
            late = [name for name in now if made_from.get(name) != now[name]]
            if late:
                yield f"{path.stem}: {number} {', '.join(late)}"


_HEADED = re.compile(r"^(#{1,2} .*\n)(?:\n*```toml\n([\s\S]*?)^``` *\n)?", re.MULTILINE)


def put_stamps(folder: Path, language: str) -> None:
    """Write into a translation that each of its blocks is made from today's original."""
    first = language_paths(folder)[0]
    originals = iter([stamps_of(part) for part in parts_of(first)])
    path = folder / f"{language}.md"

    def stamped(headed: re.Match[str]) -> str:
        stamps = ", ".join(f'{name} = "{sign}"' for name, sign in next(originals).items())
        kept = [line for line in (headed[2] or "").splitlines() if not line.startswith(MADE_FROM)]
        lines = "\n".join([*kept, f"{MADE_FROM} = {{{stamps}}}"])
        return f"{headed[1]}\n```toml\n{lines}\n```\n"

    path.write_text(_HEADED.sub(stamped, path.read_text(encoding="utf-8-sig")), encoding="utf-8")

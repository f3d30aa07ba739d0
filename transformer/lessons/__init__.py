"""Lessons that ask back: text files, whose checks are graded on the visitor's own run.

    transformer.lessons.all_lessons()["attention"]["en"].steps[0].check.grade(context, answer)

A folder of lessons has a folder for each, NAME/LANGUAGE.md; see `lesson` for how one is written,
`checks` for what it can ask, and `measures` for what can be measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transformer.checks import shortened
from transformer.lessons.lesson import Translations, read_lesson

FOLDER = Path(__file__).parent / "texts"
# The bundled lessons, in teaching order.
ORDER = (
    "opener", "prediction", "tokens", "attention", "values", "stream", "sampling", "learning",
    "filling", "translation", "evidence", "route",
)  # fmt: skip


def read_folder(folder: str | Path) -> dict[str, Translations]:
    """Every lesson of a folder, by name. Raises ValueError, naming what is wrong and where."""
    path = Path(folder)
    if not path.is_dir():
        raise ValueError(f"{folder} is no folder of lessons")
    folders = [entry for entry in sorted(path.iterdir()) if any(entry.glob("*.md"))]
    lessons: dict[str, Translations] = {entry.name: read_lesson(entry) for entry in folders}
    return {
        name: {language: text.with_steps_of(lessons) for language, text in lesson.items()}
        for name, lesson in lessons.items()
    }


_LESSONS: dict[str, Translations] = {}


def all_lessons() -> dict[str, Translations]:
    """All lessons by name: the bundled ones in teaching order, then the added ones."""
    if not _LESSONS:
        bundled = read_folder(FOLDER)
        _LESSONS.update({name: bundled[name] for name in ORDER if name in bundled})
    return _LESSONS


def add_lessons(folders: Sequence[str | Path]) -> None:
    """Add the lessons of these folders. Raises ValueError for a name that is taken."""
    for folder in folders:
        for name, lesson in read_folder(folder).items():
            if name in all_lessons():
                raise ValueError(f"two lessons are called {shortened(name)}")
            _LESSONS[name] = lesson

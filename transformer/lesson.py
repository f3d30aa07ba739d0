"""python -m transformer.lesson check [FOLDER]: whether lessons can be held with these models.

python -m transformer.lesson export NAME --out FILE: a lesson as one HTML file, without a network.
"""

from __future__ import annotations

import sys
from pathlib import Path

from transformer.checkpoint import bundled_names
from transformer.checks import check_choice
from transformer.command_line import Parser
from transformer.inference.model import load
from transformer.lessons import FOLDER, add_lessons, all_lessons, read_folder
from transformer.messages import ENGLISH, languages, numeral, say, speaking
from transformer.ui.lessons import lesson_file
from transformer.ui.service import Service
from transformer.ui.verify_lessons import verify


def check(folder: str, names: list[str]) -> int:
    """Tell of every step; how many cannot be held."""
    lessons = read_folder(folder)
    service = _served(names)
    bad = 0
    for lesson in lessons.values():
        spoken = ", ".join(lesson.languages)
        print(say("{name} ({minutes} minutes; {languages})", name=lesson.name,
                  minutes=lesson.minutes, languages=spoken))  # fmt: skip
        for found in verify(lesson, service):
            told = found.problem or found.says or say("nothing is asked")
            print(f"  {'!' if found.problem else ' '} {found.step} {found.title}: {told}")
            bad += bool(found.problem)
    print(say("{n} steps cannot be held.", n=bad) if bad else say("Every step can be held."))
    return bad


def export(name: str, names: list[str], language: str, out: Path) -> None:
    """Write a lesson's file. Raises ValueError for an unknown lesson."""
    known = all_lessons()
    check_choice("lesson", name, known)
    with speaking(language):
        text = lesson_file(known[name], _served(names))
        out.write_text(text, encoding="utf-8")
        size = numeral(len(text.encode()) / 1e6, ".1f")
        print(say("Saved {name} ({size}).", name=out, size=f"{size} MB"))


def _served(names: list[str]) -> Service:
    return Service([load(name) for name in names], trainings=0)


def main() -> None:
    """The command line."""
    parser = Parser(description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    checked = what.add_parser("check", help="whether lessons can be held")
    checked.add_argument("folder", nargs="?", default=str(FOLDER), help="default: the bundled ones")
    saved = what.add_parser("export", help="a lesson as one HTML file, without a network")
    saved.add_argument("name", help="such as attention")
    saved.add_argument("--lessons", nargs="+", default=[], metavar="FOLDER", help="your own too")
    saved.add_argument("--language", choices=languages(), default=ENGLISH)
    saved.add_argument("--out", type=Path, help="default: NAME.html")
    for one in (checked, saved):
        one.add_argument(
            "--checkpoints", nargs="+", default=bundled_names(), help="the models that are served"
        )
    asked = parser.parse_args()
    try:
        if asked.what == "check":
            sys.exit(check(asked.folder, asked.checkpoints) > 0)
        add_lessons(asked.lessons)
        out = asked.out or Path(f"{asked.name}.html")
        export(asked.name, asked.checkpoints, asked.language, out)
    except (ValueError, OSError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()

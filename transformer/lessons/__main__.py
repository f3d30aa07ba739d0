"""python -m transformer.lessons check [FOLDER]: whether lessons can be held with these models."""

from __future__ import annotations

import argparse
import sys

from transformer.checkpoint import bundled_names
from transformer.inference.model import load
from transformer.lessons import FOLDER, read_folder
from transformer.messages import say
from transformer.ui.experiments import Experiments
from transformer.ui.service import Service
from transformer.ui.verify_lessons import verify


def check(folder: str, names: list[str]) -> int:
    """Tell of every step; how many cannot be held."""
    lessons = read_folder(folder)
    experiments = Experiments(Service([load(name) for name in names], trainings=0))
    bad = 0
    for lesson in lessons.values():
        languages = ", ".join(lesson.languages)
        print(say("{name} ({minutes} minutes; {languages})", name=lesson.name,
                  minutes=lesson.minutes, languages=languages))  # fmt: skip
        for found in verify(lesson, experiments):
            told = found.problem or found.says or say("nothing is asked")
            print(f"  {'!' if found.problem else ' '} {found.step} {found.title}: {told}")
            bad += bool(found.problem)
    print(say("{n} steps cannot be held.", n=bad) if bad else say("Every step can be held."))
    return bad


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m transformer.lessons", description=__doc__)
    parser.add_argument("what", choices=("check",))
    parser.add_argument("folder", nargs="?", default=str(FOLDER), help="default: the bundled ones")
    parser.add_argument(
        "--checkpoints", nargs="+", default=bundled_names(), help="the models that are served"
    )
    asked = parser.parse_args()
    try:
        sys.exit(check(asked.folder, asked.checkpoints) > 0)
    except ValueError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()

"""python -m transformer.lessons NAME > FILE.html: print a lesson's page for the teacher."""

from __future__ import annotations

import sys

from transformer.checks import check_choice
from transformer.command_line import Parser
from transformer.lessons import add_lessons, all_lessons
from transformer.lessons.teacher import teacher_page
from transformer.messages import ENGLISH, languages, speaking


def main() -> None:
    """The command line."""
    parser = Parser(description=__doc__)
    parser.add_argument("name", help="of the lesson, such as prediction")
    parser.add_argument(
        "--lessons", nargs="+", metavar="FOLDER", default=[], help="folders with your own lessons"
    )
    parser.add_argument("--language", choices=languages(), default=ENGLISH)
    parser.add_argument(
        "--page", metavar="ADDRESS", default="http://localhost:7860/", help="what the steps link to"
    )
    options = parser.parse_args()
    try:
        add_lessons(options.lessons)
        check_choice("lesson", options.name, all_lessons())
    except (ValueError, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")
    with speaking(options.language):
        print(teacher_page(all_lessons()[options.name], options.page), end="")


if __name__ == "__main__":
    main()

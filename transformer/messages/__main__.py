"""python -m transformer.messages extract | update | check | compile

extract writes messages.pot from the sources; update puts what is new into every LANGUAGE.po, to be
translated, and takes out what is no longer said; check says what is wrong with them; compile writes
LANGUAGE.json, which the page reads.
"""

from __future__ import annotations

import sys

from transformer.command_line import Parser
from transformer.messages.catalogues import FOLDER
from transformer.messages.compile import compiled, problems, updated
from transformer.messages.extract import TEMPLATE, template

COMMANDS = ("extract", "update", "check", "compile")


def main() -> None:
    """Do what is asked with the template or with every catalogue."""
    parser = Parser(description=__doc__)
    parser.add_argument("what", choices=COMMANDS)
    what = parser.parse_args().what
    paths = sorted(FOLDER.glob("*.po"))
    if what == "extract":
        TEMPLATE.write_text(template(), encoding="utf-8")
    elif what == "update":
        for path in paths:
            path.write_text(updated(path), encoding="utf-8")
    elif what == "compile":
        for path in paths:
            path.with_suffix(".json").write_text(compiled(path), encoding="utf-8")
    else:
        found = [f"{path.name}: {problem}" for path in paths for problem in problems(path)]
        print("\n".join(found) or f"{len(paths)} catalogues, nothing missing")
        sys.exit(bool(found))


if __name__ == "__main__":
    main()

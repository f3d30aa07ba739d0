"""python -m transformer.messages update | check

update adds every new sentence of the sources to each LANGUAGE.po, to be translated, and removes
those that are gone; check lists the faults of each LANGUAGE.po.
"""

from __future__ import annotations

import sys

from transformer.command_line import Parser
from transformer.messages import FOLDER
from transformer.messages.sources import problems, updated


def main() -> None:
    """Update or check every catalogue."""
    parser = Parser(description=__doc__)
    parser.add_argument("what", choices=("update", "check"))
    paths = sorted(FOLDER.glob("*.po"))
    if parser.parse_args().what == "update":
        for path in paths:
            path.write_text(updated(path), encoding="utf-8")
    else:
        faults = [f"{path.name}: {problem}" for path in paths for problem in problems(path)]
        print("\n".join(faults) or f"{len(paths)} catalogues, nothing missing")
        sys.exit(bool(faults))


if __name__ == "__main__":
    main()

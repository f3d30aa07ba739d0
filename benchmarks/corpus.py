"""What reading a corpus takes: by one process, by two, and by a Ray cluster of two workers.

    python -m benchmarks.corpus --data FILE [--model stories] [--texts 800] [--rounds 3] [--ways R]

The ways take turns, each in a separate process; each round begins with another of them. Timed is
the whole command, and the work alone: from the end of the first part of each worker to the end of
the last part, in which nothing starts. cpu: the seconds of processors that all processes together
took for that work, which other work on the machine hardly changes. All ways must find the same, to
the last digit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks import command_line, results

WAYS = {
    "1": {"name": "one process", "workers": 1, "ray": None},
    "2": {"name": "two processes", "workers": 2, "ray": None},
    "R": {"name": "two workers of Ray", "workers": 2, "ray": "local"},
}
_TIMED = """
import hashlib, json, os, sys, time
from functools import partial
from pathlib import Path
import psutil
from transformer.analysis.corpus import over_texts
from transformer.analysis.corpus.parts import texts_of

asked = json.loads(sys.argv[1])
told = []
me = psutil.Process()

def tell(done):
    each = [one.cpu_times() for one in (me, *me.children(recursive=True))]
    told.append((time.perf_counter(), done, sum(one.user + one.system for one in each)))

start = time.perf_counter()
summary = over_texts(
    asked["model"], partial(texts_of, Path(asked["data"])), Path(asked["out"]),
    n_texts=asked["texts"], part=20, workers=asked["workers"], ray=asked["ray"],
    told=tell,
)
whole = time.perf_counter() - start
begun = asked["workers"] - 1  # each worker's first part
work = told[-1][0] - told[begun][0]
share = sum(done for _, done, _ in told[begun + 1 :]) / sum(done for _, done, _ in told)
mark = hashlib.sha256()
for name, array in sorted(summary.arrays().items()):
    mark.update(name.encode() + array.tobytes())
tokens = summary.n_tokens
sizes = [path.stat().st_size for path in Path(asked["out"]).glob("part-*.npz")]
print(json.dumps({
    "whole": tokens / whole, "work": tokens * share / work,
    "cpu": tokens * share / (told[-1][2] - told[begun][2]), "seconds": whole, "tokens": tokens,
    "part_bytes": sum(sizes) / len(sizes), "mark": mark.hexdigest(),
}))
"""


def main() -> None:
    """Print each run as a line, then the medians and their ratios to one process."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--data", required=True, help="texts, as for transformer.analysis.corpus")
    parser.add_argument("--model", default="stories", help="default stories")
    parser.add_argument("--texts", type=int, default=800, help="default 800")
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="default all")
    asked = parser.parse_args()
    names = list(dict.fromkeys(["1", *asked.ways]))
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for turn in range(asked.rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            run = _timed(asked, name)
            found[name].append(run)
            print(
                json.dumps({"way": WAYS[name]["name"], "load": os.getloadavg()[0], **run}),
                flush=True,
            )
    assert len({run["mark"] for runs in found.values() for run in runs}) == 1
    for name, runs in found.items():
        print(WAYS[name]["name"], end=":")
        for what in ("whole", "work", "cpu"):
            rate = statistics.median(run[what] for run in runs)
            each = zip(runs, found["1"], strict=True)
            ratios = [run[what] / alone[what] for run, alone in each]
            ratio = statistics.median(ratios)
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
            unit = "tokens a second"
            print(f" {what} {rate:,.0f} {unit}, x {ratio:.2f} ({spread});", end="")
        print()


def _timed(asked: argparse.Namespace, name: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as out:
        request = {"model": asked.model, "data": asked.data, "texts": asked.texts, "out": out}
        command = [sys.executable, "-c", _TIMED, json.dumps(request | WAYS[name])]
        done = subprocess.run(
            command, cwd=results.ROOT, check=True, stdout=subprocess.PIPE, text=True
        )
    run: dict[str, Any] = json.loads(done.stdout)
    return run


if __name__ == "__main__":
    main()

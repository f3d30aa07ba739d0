"""Generate with every head's attention kept, against other libraries, interleaved, as ratios.

    python -m benchmarks [--shapes S G] [--threads 1 2] [--rounds N] [--peers-python PYTHON]
        [--held-to-avx2]

Task: a 16-token prompt, 64 greedy tokens, and the attention of all heads over the finished text,
in a separate process for each shape and number of threads. Weights are random; every peer gets
the same, and its tokens and attention must agree with this project's before anything is timed.
--held-to-avx2: PyTorch, MKL, oneDNN and our step use no AVX-512, as on most laptops; the figures
get a separate column.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import command_line, results
from benchmarks.networks import QUICK_SHAPES, SHAPES
from benchmarks.report import generation_tables

ROUNDS = {"S": 7, "G": 3, "L": 3, "Q": 2, "M": 2, "quick": 2, "quick-gemma": 2}
THREADS = {"S": [1, 2]}  # of others all cores alone, as one thread takes twice the time
SPINCOUNT = "20000"  # as in app.py; for the peers too, since it helps them as well
PEERS = ("torch", "transformers", "transformer-lens", "x-transformers")


def main() -> None:
    """Measure each shape with each number of threads; print its table and keep its figures."""
    options = _options()
    if options.held_to_avx2:
        os.environ.update(results.held_to_avx2())
    about = {
        "spincount": SPINCOUNT, "versions": results.versions(*PEERS, python=options.peers_python)
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for name in QUICK_SHAPES if options.quick else options.shapes:
            for threads in [1] if options.quick else options.threads or THREADS.get(name, [2]):
                figures = _measure(options, name, threads, Path(folder) / "figures.json")
                print(generation_tables({"runs": [figures]}))
                worst = max(figures["largest_difference"].values())
                missing = "; ".join(figures["missing"]) or "nothing"
                print(f"\nattention differs by at most {worst:.0e}; not installed: {missing}\n")
                if not options.quick or options.json != results.MEASURED:
                    results.add("generation", about | {"runs": [figures]}, options.json)


def _options() -> argparse.Namespace:
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--threads", nargs="+", type=int, help="default 2, of S 1 2")
    parser.add_argument("--rounds", type=int, help=f"default {ROUNDS['S']} (S), {ROUNDS['G']} (G)")
    parser.add_argument("--peers-python", default=sys.executable, help="default: this Python")
    parser.add_argument("--held-to-avx2", action="store_true", help="without AVX-512")
    parser.add_argument("--quick", action="store_true", help="a tiny network, for a trial")
    results.add_json_option(parser)
    return parser.parse_args()


def _measure(options: argparse.Namespace, name: str, threads: int, out: Path) -> dict[str, Any]:
    shape, rounds = (SHAPES | QUICK_SHAPES)[name], options.rounds or ROUNDS[name]
    command = [options.peers_python, "-m", "benchmarks.generation", "--shape", name]
    command += ["--threads", str(threads), "--rounds", str(rounds), "--out", str(out)]
    environment = os.environ | {"GOMP_SPINCOUNT": SPINCOUNT, "HF_HUB_OFFLINE": "1"}
    subprocess.run(command, cwd=results.ROOT, env=environment, check=True)
    figures: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    about = {"shape": name, "sizes": str(shape), "threads": threads, "rounds": rounds}
    return about | {"n_new": shape.n_new} | figures


if __name__ == "__main__":
    main()

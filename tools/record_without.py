"""Trains small networks without one of their parts, and records how many answers each gets right.

python -m tools.record_without    # into recorded_runs/without.json; some minutes
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import Any

import torch

from transformer.interventions.descriptions import Break
from transformer.interventions.hooks import hooks_of
from transformer.learning.exercises import n_right
from transformer.learning.training import BUNDLED, WITHOUT, Plan

SEEDS = (0, 1, 2)
# Of each exercise: what is left out, by changes of its plan or a switch of *What if?*.
LEFT_OUT: dict[str, dict[str, dict[str, Any]]] = {
    "induction": {
        "": {}, "no-residual": {}, "no-positions": {}, "no-scale": {}, "heads": {"n_heads": 1},
    },
    "addition": {"": {}, "feed-forward": {"feed_forward": False}},
}  # fmt: skip


def right_answers(plan: Plan, what: str) -> int:
    """How many of a hundred held-out questions a network answers right that was trained so."""
    breaks = [Break(what)] if what.startswith("no-") else []
    network = plan.network()
    hooks = hooks_of(breaks, plan.config())
    for _ in plan.updates(network, hooks):
        pass
    return n_right(network.eval(), plan.exercise, hooks)


def main() -> None:
    """Train all of them, and write the file."""
    argparse.ArgumentParser("python -m tools.record_without", description=__doc__).parse_args()
    torch.set_num_threads(1)
    found: dict[str, dict[str, list[int]]] = {}
    for task, parts in LEFT_OUT.items():
        for what, changes in parts.items():
            plans = [replace(BUNDLED[task], seed=seed, **changes) for seed in SEEDS]
            found.setdefault(task, {})[what] = [right_answers(plan, what) for plan in plans]
            print(task, what or "whole", found[task][what], flush=True)
            WITHOUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Trainings that come with the project, one an exercise, each made again by its plan.

python -m transformer.learning.recorded            # makes all of them
python -m transformer.learning.recorded copy       # makes one
"""

from __future__ import annotations

from pathlib import Path

import torch

from transformer.command_line import Parser
from transformer.learning.plan import Plan
from transformer.learning.record import Record, watched

FOLDER = Path(__file__).parent / "recorded_runs"
# Small, so that all networks of all of them take less than 2 MB.
PLANS = {
    plan.task: plan
    for plan in (
        Plan(task="copy", n_steps=300),
        Plan(task="reverse", preset="vaswani-2017", n_layers=1),
        Plan(task="sort"),
        Plan(task="addition", preset="bert"),
        Plan(task="induction", feed_forward=False),
    )
}


def recorded(task: str) -> Record:
    """The training of an exercise, read from its file. KeyError for an unknown one."""
    return Record.of_bytes((FOLDER / f"{PLANS[task].task}.npz").read_bytes())


def make(plan: Plan) -> Record:
    """The whole training of a plan, in this process."""
    record = Record(plan=plan)
    for report in watched(plan):
        report.put_into(record)
    return record


def main() -> None:
    """Make the recorded trainings that the command line names, or all, and say how they went."""
    parser = Parser(description="Train networks again whose trainings come with the project.")
    parser.add_argument("task", nargs="*", choices=PLANS, help="which; default: all")
    tasks = parser.parse_args().task or PLANS
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    for task in tasks:
        record = make(PLANS[task])
        path = FOLDER / f"{task}.npz"
        path.write_bytes(record.to_bytes())
        print(f"{path.name}: {path.stat().st_size:,} bytes, {record.measurements[-1]}", flush=True)


if __name__ == "__main__":
    main()

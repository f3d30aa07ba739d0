"""Makes the bundled recordings of the tab Learn again.

python -m tools.record_trainings            # all of them
python -m tools.record_trainings copy       # one
"""

from __future__ import annotations

import argparse

import torch

from transformer.learning.training import BUNDLED, RECORDINGS, train


def task(name: str) -> str:
    """Refuse a name that is no bundled recording's; argparse's `choices` refuses an empty list."""
    if name not in BUNDLED:
        raise argparse.ArgumentTypeError(f"no recording is named {name!r}")
    return name


def main() -> None:
    """Record the trainings that the command line names, or all, and print how they went."""
    parser = argparse.ArgumentParser("python -m tools.record_trainings", description=__doc__)
    names = ", ".join(BUNDLED)
    parser.add_argument("task", nargs="*", type=task, help=f"any of {names}; default: all")
    torch.set_num_threads(1)
    for name in parser.parse_args().task or BUNDLED:
        *_, record = train(BUNDLED[name])
        path = RECORDINGS / f"{name}.npz"
        path.write_bytes(record.to_bytes())
        print(f"{path.name}: {path.stat().st_size:,} bytes, {record.measurements[-1]}", flush=True)


if __name__ == "__main__":
    main()

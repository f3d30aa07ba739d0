"""Makes the bundled recordings of the tab Learn again.

python tools/record_trainings.py            # all of them
python tools/record_trainings.py copy       # one
"""

from __future__ import annotations

import argparse

import torch

from transformer.learning.training import BUNDLED, RECORDINGS, train


def main() -> None:
    """Record the trainings that the command line names, or all, and print how they went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="*", choices=BUNDLED, help="which; default: all")
    torch.set_num_threads(1)
    for task in parser.parse_args().task or BUNDLED:
        *_, record = train(BUNDLED[task])
        path = RECORDINGS / f"{task}.npz"
        path.write_bytes(record.to_bytes())
        print(f"{path.name}: {path.stat().st_size:,} bytes, {record.measurements[-1]}", flush=True)


if __name__ == "__main__":
    main()

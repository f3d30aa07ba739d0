"""Memory that loading another project's checkpoint takes, against the size of its files.

    python -m benchmarks.loading [--megabytes 400] [--kinds gpt2 llama]

Checkpoints with random weights are written to a temporary folder: a GPT-2 in float32, whose
matrices must be turned round, and a Llama in bfloat16. Each is loaded as a user does, in a process
that has loaded a tiny one before and returns freed memory at once, as the server does;
counted is the most that the system called resident at any moment from there on, and what it still
did at the end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from benchmarks import command_line, networks

KINDS = ("gpt2", "llama")
MOST = 1.15  # times the files
TINY = 0.2  # MB
WORDS = 512  # the vocabulary
STATUS = Path("/proc/self/status")
_LOADED = """
import sys
from pathlib import Path
from benchmarks.loading import bytes_now
import transformer
from transformer.server.http import process
process.limit_arenas()
transformer.load(sys.argv[1]).generate("a", max_new_tokens=2)
before = bytes_now("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here on
model = transformer.load(sys.argv[2])
after, peak = bytes_now("VmRSS"), bytes_now("VmHWM")
model.generate("a", max_new_tokens=2)
print(peak - before, after - before)
"""


def main() -> None:
    """Print a line for each kind; end with status 1 where one takes too much."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--megabytes", type=float, default=400, help="default 400")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    asked = parser.parse_args()
    worst = 0.0
    for kind in asked.kinds:
        found = measured(kind, asked.megabytes)
        worst = max(worst, found["peak"])
        print(json.dumps({"kind": kind, **{name: round(x, 3) for name, x in found.items()}}))
    sys.exit(worst > MOST)


def bytes_now(name: str) -> int:
    """This process's memory by the system's account: VmRSS is resident, VmHWM the peak so far."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def measured(kind: str, megabytes: float) -> dict[str, float]:
    """megabytes of its files; peak and end, what loading takes, as a share of them."""
    with tempfile.TemporaryDirectory() as parent:
        tiny, large = Path(parent) / "tiny", Path(parent) / "large"
        write(tiny, kind, TINY)
        size = write(large, kind, megabytes)
        command = [sys.executable, "-c", _LOADED, str(tiny), str(large)]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    peak, end = map(int, told.split())
    return {"megabytes": size / 1e6, "peak": peak / size, "end": end / size}


def write(folder: Path, kind: str, megabytes: float) -> int:
    """A checkpoint as transformers saves it, of about that size; returns its bytes."""
    n_layers = 12 if megabytes > 1 else 1
    per_layer = {"gpt2": 12 * 4, "llama": 9.5 * 2}[kind]  # bytes for each feature squared
    d = 64 * max(1, round((megabytes * 1e6 / n_layers / per_layer) ** 0.5 / 64))
    sizes = dict(n_layers=n_layers, n_heads=d // 64, d_model=d, vocab_size=WORDS, max_len=64)
    llama = dict(kind="llama", n_key_heads=1, d_ff=5 * d // 2, stored=torch.bfloat16)
    networks.write(folder, networks.Shape(**sizes, **(llama if kind == "llama" else {})))
    return (folder / "model.safetensors").stat().st_size


if __name__ == "__main__":
    main()

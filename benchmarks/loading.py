"""What loading another project's checkpoint takes of memory, beside the size of its files.

    python -m benchmarks.loading [--megabytes 400] [--kinds gpt2 llama]

Checkpoints with random weights are written to a temporary folder: a GPT-2 in float32, whose
matrices must be turned round, and a Llama in bfloat16. Each is loaded as a user does, in a process
of its own that has loaded a tiny one before; counted is the most that the system called resident
at any moment from there on, and what it still did at the end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from benchmarks import command_line
from benchmarks.networks import byte_tokenizer

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
    """What the system says of this process's memory: VmRSS is resident, VmHWM the most so far."""
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
    """A checkpoint as transformers would save it, of about that size; returns its bytes."""
    folder.mkdir()
    n_layers = 12 if megabytes > 1 else 1
    per_layer = {"gpt2": 12 * 4, "llama": 9.5 * 2}[kind]  # bytes for each feature squared
    d_model = 64 * max(1, round((megabytes * 1e6 / n_layers / per_layer) ** 0.5 / 64))
    config, weights = {"gpt2": _gpt2, "llama": _llama}[kind](n_layers, d_model)
    (folder / "config.json").write_text(json.dumps({"model_type": kind, **config}))
    byte_tokenizer(WORDS).save(folder / "tokenizer.json")
    save_file(weights, folder / "model.safetensors")
    return (folder / "model.safetensors").stat().st_size


def _drawn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return (0.02 * torch.randn(shape)).to(dtype)


def _gpt2(n_layers: int, d: int) -> tuple[dict[str, Any], dict[str, Tensor]]:
    weights = {"wte.weight": _drawn(WORDS, d), "wpe.weight": _drawn(64, d)}
    norms = {"ln_f.weight": torch.ones(d), "ln_f.bias": torch.zeros(d)}
    for layer in range(n_layers):
        here = f"h.{layer}"
        for name, wide, out in (
            ("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d),
            ("mlp.c_fc", d, 4 * d), ("mlp.c_proj", 4 * d, d),
        ):  # fmt: skip
            weights[f"{here}.{name}.weight"] = _drawn(wide, out)
            weights[f"{here}.{name}.bias"] = _drawn(out)
        for name in ("ln_1", "ln_2"):
            norms[f"{here}.{name}.weight"] = torch.ones(d)
            norms[f"{here}.{name}.bias"] = torch.zeros(d)
    config = dict(vocab_size=WORDS, n_embd=d, n_head=d // 64, n_layer=n_layers, n_positions=64)
    return config, weights | norms


def _llama(n_layers: int, d: int) -> tuple[dict[str, Any], dict[str, Tensor]]:
    wide, keys, dtype = 5 * d // 2, 64, torch.bfloat16
    weights = {"model.embed_tokens.weight": _drawn(WORDS, d, dtype=dtype)}
    weights |= {"lm_head.weight": _drawn(WORDS, d, dtype=dtype)}
    norms = ["model.norm"]
    for layer in range(n_layers):
        here = f"model.layers.{layer}"
        for name, shape in (
            ("self_attn.q_proj", (d, d)), ("self_attn.k_proj", (keys, d)),
            ("self_attn.v_proj", (keys, d)), ("self_attn.o_proj", (d, d)),
            ("mlp.gate_proj", (wide, d)), ("mlp.up_proj", (wide, d)), ("mlp.down_proj", (d, wide)),
        ):  # fmt: skip
            weights[f"{here}.{name}.weight"] = _drawn(*shape, dtype=dtype)
        norms += [f"{here}.input_layernorm", f"{here}.post_attention_layernorm"]
    weights |= {f"{name}.weight": torch.ones(d, dtype=dtype) for name in norms}
    config = dict(
        vocab_size=WORDS, hidden_size=d, num_attention_heads=d // 64, num_hidden_layers=n_layers,
        num_key_value_heads=1, intermediate_size=wide, max_position_embeddings=64,
    )  # fmt: skip
    return config, weights


if __name__ == "__main__":
    main()

"""Generate on a GPU with every head's attention kept, beside other libraries, in ten minutes.

    python -m benchmarks.gpu [--shapes T G L1B] [--batches 1 16] [--rounds 3] [--minutes 10]
        [--device cuda] [--quick] [--out FILE.json]

Task: a 16-token prompt, 64 greedy tokens, and the attention of all heads over the finished text;
and a prompt of 512 tokens. Weights are random; a shape that is stored in bfloat16 is computed in it
by all. Figures are written after each measurement, so that none is lost with the card; what the
minutes do not suffice for is listed under "left_out". floor_s: the time of reading the decoder's
weights once a token, at the speed of copies within the card's memory. --quick --device cpu: a trial
with tiny networks.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks import ROOT, command_line
from benchmarks.networks import (
    N_LONG_PROMPT,
    PROMPT,
    QUICK_SHAPES,
    SHAPES,
    Shape,
    decoder_bytes,
    write,
)
from benchmarks.peers import theirs
from transformer import Model, load
from transformer.model.transformer import DecoderOnly

GPU_SHAPES = {
    "T": Shape(n_layers=6, n_heads=8, d_model=256, vocab_size=2048, max_len=1024),  # as stories
    "G": SHAPES["G"],
    "L1B": Shape(  # Llama 3.2 1B
        kind="llama", n_layers=16, n_heads=32, n_key_heads=8, d_model=2048, d_ff=8192,
        vocab_size=128_256, max_len=1024, stored=torch.bfloat16,
    ),
}  # fmt: skip
QUICK = {name: replace(shape, max_len=600) for name, shape in QUICK_SHAPES.items()}
KEPT, WITHOUT, COMPILED = (
    "transformers, attention kept (eager)",
    "transformers, no attention (sdpa)",
    "transformers, no attention, compiled with a static cache",
)
COPIED_BYTES, COPIES = 2**30, 10
Work = Callable[[], Any]


def main() -> None:
    """Measure shape by shape, print each figure and write all so far."""
    options = _options()
    device, began = torch.device(options.device), time.monotonic()
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = False
    speed = read_speed(device, options.quick)
    shapes = QUICK if options.quick else {name: GPU_SHAPES[name] for name in options.shapes}
    figures: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"), "device": name_of(device), "torch": torch.__version__,
        "read_gb_per_s": speed / 1e9, "seconds": [], "left_out": [],
    }  # fmt: skip
    for name, shape in shapes.items():
        for figure in measured(name, shape, device, options, began, speed):
            figures["left_out" if "left_out" in figure else "seconds"].append(figure)
            print(json.dumps(figure), flush=True)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _options() -> Any:
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--shapes", nargs="+", choices=GPU_SHAPES, default=list(GPU_SHAPES))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 16], help="default 1 16")
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument("--minutes", type=float, default=10, help="default 10")
    parser.add_argument("--device", default="cuda", help="default cuda")
    parser.add_argument("--quick", action="store_true", help="a tiny network, for a trial")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gpu.json")
    return parser.parse_args()


def name_of(device: torch.device) -> str:
    """A card's name; "cpu" for a trial."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def read_speed(device: torch.device, is_trial: bool) -> float:
    """Bytes a second that the device's memory gives: twice those of the fastest copy."""
    n_bytes = COPIED_BYTES // (64 if is_trial else 1)
    source = torch.zeros(n_bytes, dtype=torch.uint8, device=device)
    copy = torch.empty_like(source)
    return 2 * n_bytes / min(seconds_of(lambda: copy.copy_(source), device) for _ in range(COPIES))


def seconds_of(work: Work, device: torch.device) -> float:
    """Seconds until the device has done the work."""
    wait(device)
    started = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - started


def wait(device: torch.device) -> None:
    """Until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measured(
    name: str,
    shape: Shape,
    device: torch.device,
    options: Any,
    began: float,
    bytes_per_s: float,
) -> Iterator[dict[str, Any]]:
    """Figures of a shape: each work's median seconds, and what there was no time for."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write(folder, shape)
        model = load(folder, device=options.device)
        network = model.network
        assert isinstance(network, DecoderOnly)
        network.to(shape.stored)
        peers = _peers(folder, shape.stored, device)
    n_bytes = decoder_bytes(network) * shape.stored.itemsize // 4
    about = {"shape": name, "sizes": str(shape), "floor_s": shape.n_new * n_bytes / bytes_per_s}
    for batch in options.batches:
        works = dict(_works(model, peers, shape, batch, device))
        seconds: dict[str, list[float]] = {}
        for work in works:
            if time.monotonic() - began > 60 * options.minutes:
                yield about | {"batch": batch, "left_out": work}
                continue
            try:
                works[work]()  # compiles, and fills the caches
                seconds[work] = []
            except Exception as error:  # such as no compiler for graphs: the others go on
                yield about | {"batch": batch, "left_out": work, "why": repr(error)[:300]}
        order, draw = list(seconds), random.Random(0)
        for done in range(options.rounds):
            if done and time.monotonic() - began > 60 * options.minutes:
                break
            draw.shuffle(order)
            for work in order:
                seconds[work].append(seconds_of(works[work], device))
        for work, times in seconds.items():
            figure = about | {"batch": batch, "work": work, "rounds": len(times)}
            yield figure | {"median_s": statistics.median(times)}
    del model, network, peers
    gc.collect()


def _peers(folder: Path, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Other libraries' networks of the same weights on the device, by what they do."""
    if importlib.util.find_spec("transformers") is None:
        return {}
    peers = {KEPT: theirs(folder, "eager", dtype), WITHOUT: theirs(folder, "sdpa", dtype)}
    peers = {name: peer.to(device) for name, peer in peers.items()}
    return peers | {COMPILED: peers[WITHOUT]}


def _works(
    model: Model, peers: dict[str, Any], shape: Shape, batch: int, device: torch.device
) -> Iterator[tuple[str, Work]]:
    """What is timed, by name: tokens with attention, then long prompts."""
    n_new = shape.n_new
    prompt = torch.tensor([list(model.prepare(PROMPT).ids)] * batch, device=device)
    ids = torch.randint(5, 200, (batch, N_LONG_PROMPT), generator=torch.Generator().manual_seed(0))

    def ours() -> None:
        if batch == 1:
            runs = [model.generate(PROMPT, max_new_tokens=n_new)]
        else:
            runs = model.generate_batch([PROMPT] * batch, max_new_tokens=n_new)
        for run in runs:
            run.trace.weights("decoder")

    yield "ours, attention kept", ours
    for name, peer in peers.items():
        yield name, lambda peer=peer, name=name: _generated(peer, prompt, n_new, name)
    yield "prompt: ours, no attention", lambda: _read(model.network, ids.to(device))
    for name in (KEPT, WITHOUT):
        if name in peers:
            keep = name == KEPT
            yield (
                f"prompt: {name}",
                lambda peer=peers[name], keep=keep: _read(
                    peer, ids.to(device), output_attentions=keep
                ),
            )


@torch.inference_mode()
def _generated(peer: Any, prompt: torch.Tensor, n_new: int, name: str) -> Any:
    cache = {"cache_implementation": "static"} if name == COMPILED else {}
    return peer.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=n_new,
        min_new_tokens=n_new, do_sample=False, output_attentions=name == KEPT,
        return_dict_in_generate=True, pad_token_id=0, **cache,
    )  # fmt: skip


@torch.inference_mode()
def _read(network: Any, ids: torch.Tensor, **more: Any) -> Any:
    return network(ids, **more)


if __name__ == "__main__":
    main()

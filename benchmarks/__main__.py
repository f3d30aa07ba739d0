"""Generate with every head's attention kept: ours beside peers, interleaved, as ratios.

    python -m benchmarks [--rounds 7] [--threads 2] [--json FILE]

Task: a 16-token prompt, 64 greedy tokens, and the attention of all heads over the finished text.
All networks have the same random weights' shape; peers get ours copied in, so that the tokens must
be the same. What is not equal is not timed.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.peers import gpt2_like, greedy_without_cache, transformers_generate
from transformer.inference.engine import PackedDecoder, packing_of
from transformer.inference.generation import generate
from transformer.model.trace import Trace
from transformer.model.transformer import DecoderOnly, build_transformer

N_PROMPT, N_NEW = 16, 64

Result = tuple[list[int], Tensor | None]  # tokens, attention (L, H, rows, T)


def ours(
    network: DecoderOnly, packed: PackedDecoder | None, prompt: list[int], *, keep: bool
) -> Result:
    """Cached greedy decoding; with `keep`, one pass over the finished text for the attention."""
    ids = list(prompt)
    for (step,) in generate(network, [prompt], max_new_tokens=N_NEW, end_id=-1, packed=packed):
        assert step is not None
        ids.append(step.token)
    if not keep:
        return ids, None
    trace = Trace()
    with torch.inference_mode():
        network(torch.tensor([ids]), trace=trace)
    return ids, trace.weights("decoder")[:, 0]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="default 7")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    network = build_transformer(
        "gpt", vocab_size=4096, d_model=256, n_heads=8, n_layers=6, d_ff=1024, max_len=256,
        tie_embeddings=True,
    )  # fmt: skip
    assert isinstance(network, DecoderOnly)
    network.eval().requires_grad_(False)
    peer = gpt2_like(network)
    prompt = torch.randint(0, 4096, (N_PROMPT,)).tolist()
    packed = packing_of(network)
    tasks: dict[str, Callable[[], Result]] = {
        "ours, attention kept": lambda: ours(network, packed, prompt, keep=True),
        "ours, no attention": lambda: ours(network, packed, prompt, keep=False),
        "ours by the plain network, attention kept": lambda: ours(network, None, prompt, keep=True),
        "transformers, attention kept (eager)": lambda: transformers_generate(peer, prompt, N_NEW),
        "no cache (as in the tutorials), attention kept": lambda: greedy_without_cache(
            network, prompt, N_NEW
        ),
    }
    _check_equal(tasks)
    times = _interleaved(tasks, options.rounds)
    _print(times, options)


def _check_equal(tasks: dict[str, Callable[[], Result]]) -> None:
    reference_ids, reference = next(iter(tasks.values()))()
    assert reference is not None
    for name, task in tasks.items():
        ids, weights = task()
        if ids != reference_ids:
            raise SystemExit(f"{name}: other tokens than ours")
        if weights is None:
            continue
        if not torch.allclose(weights, reference[:, :, : weights.shape[2]], atol=1e-5):
            raise SystemExit(f"{name}: other attention than ours")


def _interleaved(tasks: dict[str, Callable[[], Result]], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            started = time.perf_counter()
            task()
            times[name].append(time.perf_counter() - started)
    return times


def _print(times: dict[str, list[float]], options: argparse.Namespace) -> None:
    machine = f"{platform.processor() or platform.machine()}, {options.threads} threads"
    print(f"{time.strftime('%Y-%m-%d')}, torch {torch.__version__}, {machine}")
    print(
        f"6 x 8 x 256, {N_PROMPT} + {N_NEW} tokens, median of {options.rounds} interleaved rounds\n"
    )
    print("| | median ms | ratio to ours |\n| --- | --- | --- |")
    medians = {name: statistics.median(values) for name, values in times.items()}
    first = next(iter(medians.values()))
    for name, median in medians.items():
        print(f"| {name} | {median * 1e3:.0f} | {median / first:.2f} |")
    if options.json:
        options.json.write_text(json.dumps(times, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()

"""One process of the generation benchmark: one shape, one number of threads. See __main__.py.

    python -m benchmarks.generation --shape S --threads 2 --rounds 7 --out FILE.json

Everything is timed the way its users call it: this project by `Model.generate` and `Model.stream`.
"""

from __future__ import annotations

import importlib.util
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import command_line
from benchmarks.floor import read_floor
from benchmarks.networks import (
    N_LONG_PROMPT,
    N_PROMPT,
    PROMPT,
    QUICK_SHAPES,
    SHAPES,
    Shape,
    decoder_bytes,
    write,
)  # fmt: skip
from benchmarks.peers import Result, TransformerLens, Transformers, WithoutCache, XTransformers
from transformer import Model, Run, Trace, load
from transformer.inference.decode_session import DecodeSession
from transformer.model.cache import KeyValueCache
from transformer.model.transformer import DecoderOnly

OURS = "ours, attention kept"
Make = Callable[[Path, DecoderOnly], Any]  # of the checkpoint, or of our network of it
PEERS: dict[str, tuple[str, Make]] = {
    "transformers, attention kept (eager)": (
        "transformers", lambda folder, _: Transformers(folder, keep=True)
    ),
    "transformers, no attention (sdpa)": (
        "transformers", lambda folder, _: Transformers(folder, keep=False)
    ),
    "TransformerLens, attention kept": (
        "transformer_lens", lambda folder, _: TransformerLens(folder)
    ),
    "x-transformers, attention kept": (
        "x_transformers", lambda _, network: XTransformers(network)
    ),
    "a loop without cache, no attention": ("torch", lambda _, network: WithoutCache(network)),
}  # fmt: skip
ROUNDED = "transformers in bfloat16, attention kept (eager)"  # rounds at each step: other tokens
TRANSFORMERS: dict[str, tuple[str, Make]] = {
    name: PEERS[name] for name in PEERS if name.startswith("transformers")
} | {
    ROUNDED: (
        "transformers", lambda folder, _: Transformers(folder, keep=True, dtype=torch.bfloat16)
    ),
}  # fmt: skip
TOLERANCE = 5e-4  # between attention weights: sums in another order, sixteen gated layers deep
LONG_S = 4  # a task that takes longer is timed as it is checked: a spread far below its distance
BAND = 16  # steps around a length that make up the cost at that length


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """run: the work that is timed. read: its result, for the comparison. prompt: the
    reading of a long prompt, of these ids, and one token."""

    run: Callable[[], Any]
    read: Callable[[Any], Result]
    prompt: Callable[[list[int]], Any] | None = None


def main() -> None:
    """Measure, and write the figures to a file."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--shape", required=True, choices=[*SHAPES, *QUICK_SHAPES])
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    found = measure((SHAPES | QUICK_SHAPES)[options.shape], options.rounds)
    options.out.write_text(json.dumps(found), encoding="utf-8")


def measure(shape: Shape, rounds: int) -> dict[str, Any]:
    """Seconds of every task, by name, and what is derived from our own steps.

    Raises SystemExit if a tool's tokens or attention differ from this project's.
    """
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write(folder, shape)
        model = load(folder)
        assert isinstance(model.network, DecoderOnly)
        prompt = list(model.prepare(PROMPT).ids)
        tasks = _ours(model, shape, prompt)
        tasks |= _peers(folder, model.network, prompt, shape)
    differences, firsts = check_equal(tasks)
    seconds = {name: [firsts[name]] if firsts.get(name, 0) > LONG_S else [] for name in tasks}
    steps, floors, order, draw = [], [], list(tasks), random.Random(0)
    for _ in range(rounds):
        draw.shuffle(order)  # each leaves its weights in the caches
        for name in order:
            if max(seconds[name], default=0) > LONG_S:
                continue
            started = time.perf_counter()
            tasks[name].run()
            seconds[name].append(time.perf_counter() - started)
        steps.append(_step_seconds(model, shape))
        floors.append(read_floor(decoder_bytes(model.network) * shape.stored.itemsize // 4))
    return {
        "seconds": {name: statistics.median(times) for name, times in seconds.items()},
        "largest_difference": differences,
        "floor_s": statistics.median(floors),
        "step_s": a_step(steps, N_PROMPT + shape.n_new // 2, shape.n_new),
        "step_at_64_s": a_step(steps, 64, BAND),
        "step_at_256_s": a_step(steps, shape.n_long, BAND),
        "prompt_s": _prompt_seconds(tasks, rounds) if shape.reads_prompts else {},
        "missing": [name for name in peers_of(shape) if name not in tasks],
    }


def _ours(model: Model, shape: Shape, prompt: list[int]) -> dict[str, Task]:
    n_new = shape.n_new

    def kept() -> Run:
        run = model.generate(PROMPT, max_new_tokens=n_new)
        run.trace.weights("decoder")
        return run

    def read(run: Run) -> Result:
        return list(run.ids), run.trace.weights("decoder")[:, 0]

    def tokens() -> list[int]:
        stream = model.stream(PROMPT, max_new_tokens=n_new)
        return [*stream.prompt_ids, *(step.token for step in stream)]

    def begun(ids: list[int]) -> Any:
        assert model.engine is not None
        return DecodeSession(model.engine).begin(ids)

    assert isinstance(model.network, DecoderOnly)
    network = model.network
    tasks = {
        OURS: Task(run=kept, read=read, prompt=begun),
        "ours, no attention": Task(run=tokens, read=lambda ids: (ids, None)),
    }
    if shape.kind == "gpt2":
        tasks["ours by the plain network, attention kept"] = Task(
            run=lambda: plainly(network, prompt, n_new), read=lambda result: result
        )
    return tasks


@torch.inference_mode()
def plainly(network: DecoderOnly, prompt: list[int], n_new: int) -> Result:
    """Greedy by the readable network itself with its cache, then one pass for the attention."""
    cache, ids = KeyValueCache(), list(prompt)
    logits = network(torch.tensor([ids]), cache=cache)
    for _ in range(n_new - 1):
        ids.append(int(logits[0, -1].argmax()))
        logits = network(torch.tensor([ids[-1:]]), cache=cache)
    ids.append(int(logits[0, -1].argmax()))
    trace = Trace()
    network(torch.tensor([ids]), trace=trace)
    return ids, trace.weights("decoder")[:, 0]


def peers_of(shape: Shape) -> dict[str, tuple[str, Make]]:
    """Those that can hold a network of this kind."""
    return PEERS if shape.kind == "gpt2" else TRANSFORMERS


def _peers(folder: Path, network: DecoderOnly, prompt: list[int], shape: Shape) -> dict[str, Task]:
    """Those that are installed."""
    result = {}
    for name, (library, make) in peers_of(shape).items():
        if importlib.util.find_spec(library) is not None:
            peer = make(folder, network)
            reads = name.startswith("transformers")
            result[name] = Task(
                run=partial(peer.run, prompt, shape.n_new),
                read=peer.read,
                prompt=partial(peer.run, n_new=1) if reads else None,
            )
    return result


def _prompt_seconds(tasks: dict[str, Task], rounds: int) -> dict[str, float]:
    """Of those that can read a prompt alone, the median time of reading a long one."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 200, (N_LONG_PROMPT,), generator=generator).tolist()
    readers = {name: task.prompt for name, task in tasks.items() if task.prompt is not None}
    seconds: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(rounds):
        for name, read in readers.items():
            started = time.perf_counter()
            read(ids)
            seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in seconds.items()}


def check_equal(tasks: dict[str, Task]) -> tuple[dict[str, float], dict[str, float]]:
    """By name: the largest difference between a tool's attention and this project's, and the
    seconds of the run that was compared."""
    ids, weights = tasks[OURS].read(tasks[OURS].run())
    assert weights is not None
    differences, seconds = {}, {}
    for name, task in tasks.items():
        if name == ROUNDED:
            continue
        started = time.perf_counter()
        result = task.run()
        seconds[name] = time.perf_counter() - started
        found_ids, found = task.read(result)
        if found_ids != ids:
            raise SystemExit(f"{name}: other tokens than ours: {found_ids}; ours: {ids}")
        if found is None:
            continue
        largest = float((found - weights[:, :, : found.shape[2]]).abs().max())
        if largest > TOLERANCE:
            raise SystemExit(f"{name}: attention differs from ours by {largest:.1e}")
        differences[name] = largest
    return differences, seconds


def _step_seconds(model: Model, shape: Shape) -> list[float]:
    """Seconds of each step of one long stream; the first of them reads the whole prompt."""
    stream = model.stream(PROMPT, max_new_tokens=shape.n_long + BAND - N_PROMPT)
    times, before = [], time.perf_counter()
    for _ in stream:
        now = time.perf_counter()
        times.append(now - before)
        before = now
    return times


def a_step(streams: list[list[float]], length: int, width: int) -> float:
    """The median over all streams of the mean of `width` steps around that which reads the token at
    place `length`: some are of tokens that the step before has read too.

    Step n reads the token at place N_PROMPT + n - 1; step 0, the prompt, is left out.
    """
    first = max(1, length - width // 2 - N_PROMPT + 1)
    parts = [stream[first : first + width] for stream in streams]
    return statistics.median(statistics.mean(part) for part in parts if part)


if __name__ == "__main__":
    main()

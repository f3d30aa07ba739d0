"""Training steps: our loop against plain loops around PyTorch's own modules, in tokens a second.

    python -m benchmarks.training [--threads 2] [--steps 5] [--quick]

Ours is the loop's own step: batches to tensors, the loss, the gradients, clipping and the
optimizer, with Muon as the recipes train and with AdamW. All steps are interleaved; the rows are
drawn ids of one length. The decoders have neither dropout nor biases, like nanoGPT's; an
encoder-decoder's tokens are those of both sides.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks import command_line, results
from benchmarks.networks import byte_tokenizer
from benchmarks.plain_training import HandGPT, PlainGPT, PlainTranslator, Step, plain_step
from benchmarks.report import BY_HAND, training_table
from transformer.model.config import ModelConfig, preset
from transformer.tokenizer import SPECIALS, Tokenizer
from transformer.training.data import Example
from transformer.training.loop import _Training as Training
from transformer.training.recipe import Recipe, Settings
from transformer.training.state import keep_freed_memory
from transformer.training.tasks import LanguageModel

WARM_UP = 1  # steps of each that are not timed


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A network and a batch. goal: tokens a second that the project set itself on two cores."""

    layers: str
    d_model: int
    n_heads: int
    n_layers: int
    vocab_size: int
    length: int
    rows: int
    goal: int = 0
    pairs: bool = False

    def __str__(self) -> str:
        sizes = f"{self.layers} x {self.d_model}, vocabulary {self.vocab_size:,}"
        side = " a side" if self.pairs else ""
        return f"{sizes}, {self.rows} rows of {self.length} tokens{side}"

    @property
    def model(self) -> dict[str, Any]:
        """The recipe's [model] table."""
        common = dict(
            d_model=self.d_model, n_heads=self.n_heads, n_layers=self.n_layers,
            d_ff=4 * self.d_model, max_len=self.length, tie_embeddings=True, padding_id=0,
            attention_dropout=0.0,
        )  # fmt: skip
        if not self.pairs:
            bare = dict(dropout=0.0, attention_bias=False, feed_forward_bias=False)
            return {"preset": "gpt"} | common | bare
        both = dict(dropout=0.1, attention_bias=True, share_embeddings=True, head_bias=False)
        return {"preset": "pre-norm"} | common | both

    @property
    def config(self) -> ModelConfig:
        """The same as our network's."""
        values = self.model
        return preset(values.pop("preset"), vocab_size=self.vocab_size, **values)

    @property
    def tokens(self) -> int:
        """What a step reads."""
        return self.rows * self.length * (2 if self.pairs else 1)


SHAPES = (
    Shape(
        layers="4", d_model=128, n_heads=4, n_layers=4, vocab_size=65, length=64, rows=12,
        goal=48_000,
    ),
    Shape(
        layers="4", d_model=128, n_heads=4, n_layers=4, vocab_size=4096, length=128, rows=18,
        goal=21_000,
    ),
    Shape(
        layers="6", d_model=256, n_heads=8, n_layers=6, vocab_size=4096, length=256, rows=9,
        goal=10_000,
    ),
    Shape(
        layers="8", d_model=384, n_heads=8, n_layers=8, vocab_size=4096, length=256, rows=9,
        goal=5_100,
    ),
    Shape(
        layers="3 + 3", d_model=256, n_heads=8, n_layers=3, vocab_size=8000, length=24, rows=125,
        goal=13_700, pairs=True,
    ),
)  # fmt: skip
QUICK_SHAPES = (
    Shape(layers="1", d_model=16, n_heads=2, n_layers=1, vocab_size=65, length=8, rows=2),
    Shape(
        layers="1 + 1", d_model=16, n_heads=2, n_layers=1, vocab_size=300, length=6, rows=3,
        pairs=True,
    ),
)  # fmt: skip


class Drawn(LanguageModel):
    """The loop's own task, of which the rows are given to it."""

    def __init__(self) -> None:
        self.train = self.valid = ()


def main() -> None:
    """Print the table and keep its figures."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--steps", type=int, default=5, help="timed ones of each; default 5")
    parser.add_argument("--quick", action="store_true", help="tiny networks, for a trial")
    results.add_json_option(parser)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()  # as `python -m transformer.training` does; here the plain loops gain too
    shapes = QUICK_SHAPES if options.quick else SHAPES
    part = {"threads": options.threads, "steps": options.steps}
    part |= {"shapes": [measure(shape, options.steps) for shape in shapes]}
    print(training_table(part))
    if not options.quick or options.json != results.MEASURED:
        results.add("training", part, options.json)


def measure(shape: Shape, n_steps: int) -> dict[str, Any]:
    """Tokens a second of every loop, by the median of its interleaved steps."""
    generator = torch.Generator().manual_seed(0)
    low, size = len(SPECIALS), (shape.rows, shape.length + 1)
    ids = torch.randint(low, shape.vocab_size, size, generator=generator)
    sources = torch.randint(low, shape.vocab_size, (shape.rows, shape.length), generator=generator)
    rows = [
        Example(row, source=source if shape.pairs else ())
        for row, source in zip(ids.tolist(), sources.tolist(), strict=True)
    ]
    read, wanted = ids[:, :-1].tolist(), ids[:, 1:].tolist()
    inputs = [sources.tolist(), read] if shape.pairs else [read]
    plain = PlainTranslator if shape.pairs else PlainGPT
    with tempfile.TemporaryDirectory() as folder:
        loops = {
            "ours (Muon)": our_step(shape, rows, "muon", Path(folder) / "muon"),
            "ours (AdamW)": our_step(shape, rows, "adamw", Path(folder) / "adamw"),
            "plain loop, bf16": plain_step(plain(shape.config), inputs, wanted, narrow=True),
            "plain loop, float32": plain_step(plain(shape.config), inputs, wanted, narrow=False),
        }
        if not shape.pairs:
            by_hand = HandGPT(shape.config)
            loops[BY_HAND] = plain_step(by_hand, inputs, wanted, narrow=True, fused=True)
        seconds = _interleaved(loops, n_steps)
    speeds = {name: shape.tokens / statistics.median(times) for name, times in seconds.items()}
    return {"sizes": str(shape), "goal": shape.goal, "tokens_per_s": speeds}


class ByteRecipe(Recipe):
    """A recipe with a ready vocabulary: a token for each byte, and unused ones up to its size."""

    def tokenizer_of(self, train: Iterable[str], valid: Iterable[str] = ()) -> Tokenizer:
        """A tokenizer of bytes, whatever the texts."""
        return byte_tokenizer(self.vocab_size)


def our_step(shape: Shape, rows: list[Example], optimizer: str, out: Path) -> Step:
    """A step of the training loop on these rows, to be called again and again."""
    recipe = ByteRecipe(
        name="benchmark",
        task="translation" if shape.pairs else "language-model",
        vocab_size=shape.vocab_size,
        model=shape.model,
        settings=Settings(
            optimizer=optimizer, warmup_steps=1, steps=10**6, decay_from=1.0,
            label_smoothing=0.1 if shape.pairs else 0.0,
        ),
    )  # fmt: skip
    training = Training(recipe, Drawn(), out, True, None)
    made = training._updates(((0, place, rows) for place in itertools.count()), lambda: False)
    return lambda: next(made).loss


def _interleaved(loops: dict[str, Step], n_steps: int) -> dict[str, list[float]]:
    """Seconds of the timed steps. Raises SystemExit for a loop whose loss does not fall.

    Each timed step comes right after one of the same loop, as in a training, where a step finds in
    the caches what the last one left there.
    """
    times: dict[str, list[float]] = {name: [] for name in loops}
    losses: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(WARM_UP):
        for name, step in loops.items():
            losses[name].append(step())
    for _ in range(n_steps):
        for name, step in loops.items():
            losses[name].append(step())
            started = time.perf_counter()
            losses[name].append(step())
            times[name].append(time.perf_counter() - started)
    for name, values in losses.items():
        if values[-1] >= values[0]:
            raise SystemExit(f"{name} learns nothing: loss {values[0]:.3f}, then {values[-1]:.3f}")
    return times


if __name__ == "__main__":
    main()

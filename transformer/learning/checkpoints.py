"""A language model at a few checkpoints of its training, as data, without its weights.

The weights of ten checkpoints of `stories` are fifty million numbers. What is kept of each is what
the page shows: every head's weights for a few sentences, their tokens' surprisal, a generated text,
its held-out loss, and the heads that stood out.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.analysis.atlas import Atlas, Pixels
from transformer.learning.record import packed, unpacked

FILE = Path(__file__).parent / "recorded_runs" / "stories.npz"


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadNumber:
    """One head's number by a metric of `head_measures`, and what a uniform head's would be.

    clear: whether it is TIMES_EVEN times that, and above every shuffled copy's.
    """

    layer: int
    head: int
    metric: str
    value: float
    even: float
    clear: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointScores:
    """The network after a step.

    loss, bits_per_byte: on held-out text, nats a token and bits. wrote: continues `start`.
    n_even: how many heads read uniformly (see `head_metrics.rule`). best: of each metric about a
    position, the head with the largest number.
    """

    step: int
    loss: float
    bits_per_byte: float
    wrote: str
    n_even: int
    best: tuple[HeadNumber, ...]

    def best_by(self, metric: str) -> HeadNumber | None:
        """The head with the largest number of a metric; None where no text had such a number."""
        return next((one for one in self.best if one.metric == metric), None)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Sentence:
    """What the network at each checkpoint computed for a sentence of T tokens.

    labels: of the T tokens. pixels: (M, L, H, T, T) uint8, round(255 * sqrt(weight)), so that a
    weight is known to within 0.004. surprisal: (M, T) float32, nats; NaN for the first token.
    """

    text: str
    labels: tuple[str, ...]
    pixels: Pixels
    surprisal: NDArray[np.float32]

    def atlas(self, place: int) -> Atlas:
        """All heads at a checkpoint, as the page draws them small."""
        side = len(self.labels)
        return Atlas(self.pixels[place], np.triu(np.ones((side, side), dtype=np.uint8), 1))

    def weights(self, place: int, layer: int, head: int) -> NDArray[np.float32]:
        """(T, T) of one head at a checkpoint, to within 0.004; a row sums to 1 only about."""
        return np.square(self.pixels[place, layer, head] / np.float32(255))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CheckpointedTraining:
    """A whole training at M checkpoints, in the order of their steps.

    total: steps of the training. curve: (steps, nats a token): the mean training loss of the steps
    since the one before. examples: held-out documents that a loss is of. start, seed: of the texts
    that the networks wrote.
    """

    recipe: str
    total: int
    examples: int
    start: str
    seed: int
    curve: tuple[tuple[int, ...], tuple[float, ...]]
    standings: tuple[CheckpointScores, ...]
    sentences: tuple[Sentence, ...]

    @property
    def steps(self) -> list[int]:
        """Of the checkpoints."""
        return [one.step for one in self.standings]

    @property
    def shape(self) -> tuple[int, int]:
        """(layers, heads a layer)."""
        _, n_layers, n_heads, *_ = self.sentences[0].pixels.shape
        return n_layers, n_heads

    def to_bytes(self) -> bytes:
        """As an NPZ file, which `of_bytes` reads; nothing in it is pickled."""
        names = ("recipe", "total", "examples", "start", "seed")
        about = {name: getattr(self, name) for name in names} | {
            "standings": [dataclasses.asdict(one) for one in self.standings],
            "sentences": [{"text": s.text, "labels": s.labels} for s in self.sentences],
        }
        steps, losses = self.curve
        arrays: dict[str, Any] = {"steps": steps, "losses": np.array(losses, dtype=np.float32)}
        for place, sentence in enumerate(self.sentences):
            arrays[f"pixels/{place}"] = sentence.pixels
            arrays[f"surprise/{place}"] = sentence.surprisal
        return packed(about, arrays)

    @classmethod
    def of_bytes(cls, written: bytes) -> CheckpointedTraining:
        """The inverse of `to_bytes`."""
        about, arrays = unpacked(written)
        sentences = tuple(
            Sentence(
                text=one["text"], labels=tuple(one["labels"]),
                pixels=arrays[f"pixels/{place}"], surprisal=arrays[f"surprise/{place}"],
            )
            for place, one in enumerate(about.pop("sentences"))
        )  # fmt: skip
        curve = (tuple(arrays["steps"].tolist()), tuple(arrays["losses"].tolist()))
        standings = tuple(
            CheckpointScores(**one | {"best": tuple(HeadNumber(**head) for head in one["best"])})
            for one in about.pop("standings")
        )
        return cls(**about, curve=curve, standings=standings, sentences=sentences)


def story_training() -> CheckpointedTraining | None:
    """Those of `stories`, which come with the project; None where the file is not there."""
    return _read(FILE) if FILE.is_file() else None


@cache
def _read(path: Path) -> CheckpointedTraining:
    return CheckpointedTraining.of_bytes(path.read_bytes())

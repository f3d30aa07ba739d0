"""Records how the checkpoints of a training read a few sentences.

python -m transformer.learning.record_checkpoints OUT/training/checkpoints    # the page's file

OUT/training/checkpoints/STEP are checkpoint folders; OUT/training/log.jsonl is the training's log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch

from transformer.analysis.atlas import MAX_SIDE, atlas
from transformer.analysis.head_measures import ALL
from transformer.analysis.head_metrics import NEARLY_EVEN, TIMES_EVEN, head_metrics
from transformer.analysis.logit_lens import surprisal
from transformer.checkpoint import BUNDLED
from transformer.checkpoint.parts import read_config, read_sample
from transformer.checks import shortened
from transformer.command_line import Parser
from transformer.inference.model import Model, load
from transformer.learning.checkpoints import (
    FILE,
    CheckpointedTraining,
    CheckpointScores,
    HeadNumber,
    Sentence,
)
from transformer.runs.run import Run
from transformer.training.state import log_entries

# The first says a name again and again, so that a head that reads what followed it can be seen.
SENTENCES = (
    "Once upon a time, Tom and Mia went to the park. Tom had a red ball. Mia said, "
    '"Tom, can I play with the red ball?"',
    "The little bird was sad because it could not fly. A big dog wanted to help the little bird.",
    "One day, a girl named Lily found a shiny stone in the garden and showed it to her mom.",
)
STACK, SORT = "decoder", "self"
START, SEED, LENGTH = "Once upon a time", 0, 60
POINTS = 300  # of the curve


def recorded_checkpoints(
    folder: Path, sentences: Sequence[str] = SENTENCES, texts: Sequence[str] | None = None
) -> CheckpointedTraining:
    """All checkpoints of a folder. texts: what the heads are measured on, by default the bundled
    `stories`' sample.

    Raises ValueError for a folder without checkpoints, for one without a held-out loss, and for
    a sentence of more than MAX_SIDE tokens.
    """
    models = [load(path.parent) for path in sorted(folder.glob("*/config.json"))]
    if not models:
        raise ValueError(f"{folder} holds no checkpoint of a training")
    measured = texts or _sample()
    about = _about(models[-1])
    entries = log_entries(folder.parent)
    return CheckpointedTraining(
        recipe=about["recipe"]["name"],
        total=about["recipe"]["settings"]["steps"],
        examples=about["validation"]["examples"],
        start=START,
        seed=SEED,
        curve=curve([entry["loss"] for entry in entries]),
        standings=tuple(standing(model, measured) for model in models),
        sentences=tuple(read_by(models, text) for text in sentences),
    )


def standing(model: Model, texts: Sequence[str]) -> CheckpointScores:
    """One checkpoint's numbers. texts: what its heads are measured on."""
    validation = _about(model)["validation"]
    best, n_even = heads_over([_read(model, text) for text in texts])
    run = model.generate(START, max_new_tokens=LENGTH, temperature=0.7, seed=SEED)
    return CheckpointScores(
        step=validation["step"], loss=validation["loss"],
        bits_per_byte=validation["bits_per_byte"], wrote=run.text, n_even=n_even, best=best,
    )  # fmt: skip


def heads_over(runs: Sequence[Run]) -> tuple[tuple[HeadNumber, ...], int]:
    """(the best head of each metric about a place, how many read uniformly), over several texts.

    A number is the mean over all rows of all texts, a shuffled copy's too: the largest of them is
    the mean of each text's largest.
    """
    found = [head_metrics(run, STACK, SORT) for run in runs]

    def mean(name: str, values: Iterable[float]) -> float:
        """Of a number of each text, by the rows that it is of; NaN where no text has it."""
        rows = [one.n_repeats if ALL[name].repeats else one.n_rows for one in found]
        known = [(value, n) for value, n in zip(values, rows, strict=True) if np.isfinite(value)]
        count = sum(n for _, n in known)
        return sum(value * n for value, n in known) / count if count else float("nan")

    def number(place: int, name: str) -> HeadNumber:
        heads = [one.heads[place] for one in found]
        value = mean(name, (head.values[name] for head in heads))
        even = mean(name, (one.even[name] for one in found))
        shuffled = mean(name, (head.shuffled[name][1] for head in heads))
        return HeadNumber(
            layer=heads[0].layer, head=heads[0].head, metric=name, value=round(value, 4),
            even=round(even, 4), clear=value >= TIMES_EVEN * even and value > shuffled,
        )  # fmt: skip

    places = range(len(found[0].heads))
    names = [one.name for one in found[0].metrics if one.position]
    known = [name for name in names if np.isfinite(mean(name, (one.even[name] for one in found)))]
    best = [
        max((number(place, name) for place in places), key=lambda one: one.value) for name in known
    ]
    even = mean("entropy", (one.even["entropy"] for one in found))
    entropies = [mean("entropy", (one.heads[p].values["entropy"] for one in found)) for p in places]
    return tuple(best), sum(entropy >= NEARLY_EVEN * even for entropy in entropies)


def read_by(models: Sequence[Model], text: str) -> Sentence:
    """A sentence as each of the networks reads it."""
    runs = [_read(model, text) for model in models]
    labels = runs[0].labels
    if len(labels) > MAX_SIDE:
        raise ValueError(
            f"a sentence may have {MAX_SIDE} tokens; got {len(labels)}: {shortened(text)}"
        )
    bits = [surprisal(model, run) for model, run in zip(models, runs, strict=True)]
    nats = np.array([[np.nan if b is None else b * np.log(2) for b in row] for row in bits])
    return Sentence(
        text=text, labels=labels,
        pixels=np.stack([atlas(run, STACK, SORT).pixels for run in runs]),
        surprisal=nats.astype(np.float32),
    )  # fmt: skip


def _read(model: Model, text: str) -> Run:
    run = model.trace(text)
    assert isinstance(run, Run)  # one text gives one
    return run


def curve(losses: Sequence[float]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """(steps, mean losses of the steps since the one before): at most POINTS, denser early."""
    ends = np.unique(np.rint(np.geomspace(1, len(losses), POINTS)).astype(int))
    parts = zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)
    means = [round(float(np.mean(losses[begin:end])), 4) for begin, end in parts]
    return tuple(ends.tolist()), tuple(means)


def _about(model: Model) -> dict:  # type: ignore[type-arg]
    about = model.metadata or {}
    if not {"loss", "bits_per_byte", "step"} <= set(about.get("validation") or {}):
        raise ValueError(f"{model.name} does not say its held-out loss")
    return about


def _sample() -> list[str]:
    folder = BUNDLED / "stories"
    sample = read_sample(folder, read_config(folder)[0])
    assert sample is not None
    return [texts[-1] for texts in sample.texts]


def main() -> None:
    """Write the file, and say what is in it."""
    parser = Parser()
    parser.add_argument("folder", type=Path, help="OUT/training/checkpoints")
    parser.add_argument("--out", type=Path, default=FILE, help="the file; default: the page's")
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = recorded_checkpoints(given.folder)
    given.out.write_bytes(found.to_bytes())
    for one in found.standings:
        heads = [f"{best.metric} {best.value:.2f}{'*' * best.clear}" for best in one.best]
        print(f"step {one.step:,}: {one.bits_per_byte:.4f} bits per byte;", *heads, one.n_even)
    print(f"{given.out}: {given.out.stat().st_size:,} bytes, {len(found.steps)} checkpoints")


if __name__ == "__main__":
    main()

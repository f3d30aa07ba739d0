"""Every preset learns to copy and to reverse sequences that it has never seen.

What shapes cannot show: masks, positions, both norms and the cached decoding work together. The
rows of a batch differ in length, so that padding stands behind sources, targets and prompts.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.inference.beam import beam_search
from transformer.inference.generation import generate
from transformer.inference.readers import pad
from transformer.model.config import PRESETS
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly, Transformer
from transformer.model.transformer import build_transformer as build
from transformer.training.recipe import Settings
from transformer.training.setup import make_optimizer

Sequence = list[int]
Change = Callable[[Sequence], Sequence]

PADDING, START, END, SEPARATOR, FIRST, SYMBOLS, LONGEST = 0, 1, 2, 3, 4, 8, 6
SETTINGS = Settings(
    steps=300, learning_rate=1.5e-2, optimizer="muon", betas=(0.9, 0.98), weight_decay=0.0,
    warmup_steps=20, decay_from=0.3,
)  # fmt: skip


def copied(row: Sequence) -> Sequence:
    return list(row)


def reversed_(row: Sequence) -> Sequence:
    return row[::-1]


def is_held_out(row: Sequence) -> bool:
    """One in seven of the sequences of three symbols and more."""
    return len(row) >= 3 and sum(place * symbol for place, symbol in enumerate(row, 1)) % 7 == 0


def sequences(rng: random.Random, count: int, *, held_out: bool) -> list[Sequence]:
    rows: list[Sequence] = []
    while len(rows) < count:
        length = rng.randint(2, LONGEST)
        row = [rng.randrange(FIRST, FIRST + SYMBOLS) for _ in range(length)]
        if is_held_out(row) == held_out:
            rows.append(row)
    return rows


def predictions(
    network: Transformer, rows: list[Sequence], change: Change
) -> tuple[Tensor, Tensor]:
    """Logits (N, V) and the N tokens that they should predict."""
    answers = [[*change(row), END] for row in rows]
    if isinstance(network, EncoderDecoder):
        target = pad([[START, *answer] for answer in answers], PADDING)
        real = target[:, 1:] != PADDING
        source = pad([[*row, END] for row in rows], PADDING)
        return network(source, target[:, :-1], where=real), target[:, 1:][real]
    if isinstance(network, DecoderOnly):
        texts = [[*row, SEPARATOR, *answer] for row, answer in zip(rows, answers, strict=True)]
        ids = pad(texts, PADDING)
        asked = torch.tensor([len(row) for row in rows])[:, None]  # the first place that answers
        real = (ids[:, 1:] != PADDING) & (torch.arange(ids.shape[1] - 1) >= asked)
        return network(ids[:, :-1], where=real), ids[:, 1:][real]
    wanted = pad(answers, PADDING)
    real = wanted != PADDING
    return network(pad([[*row, END] for row in rows], PADDING))[real], wanted[real]


def fit(network: Transformer, change: Change) -> None:
    """Teach network to map a sequence to change(sequence)."""
    rng, optimizer = random.Random(0), make_optimizer(network, SETTINGS)
    network.train()
    for step in range(SETTINGS.steps):
        for group in optimizer.param_groups:
            group["lr"] = SETTINGS.learning_rate_at(step)
        loss = F.cross_entropy(*predictions(network, sequences(rng, 64, held_out=False), change))
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), SETTINGS.clip_norm)
        optimizer.step()
    network.eval()


def answers_of(network: Transformer, rows: list[Sequence]) -> list[Sequence]:
    """What the network makes of rows, in one padded batch, by the ways that the project has."""
    sources = [[*row, END] for row in rows]
    if isinstance(network, EncoderDecoder):
        found = beam_search(
            network, sources, start_id=START, end_id=END, beams=1, max_new_tokens=LONGEST + 1
        )
        return [list(result.hypotheses[0].ids) for result in found]
    if isinstance(network, DecoderOnly):
        answers: list[Sequence] = [[] for _ in rows]
        prompts = [[*row, SEPARATOR] for row in rows]
        for steps in generate(network, prompts, max_new_tokens=LONGEST + 1, end_id=END):
            for answer, step in zip(answers, steps, strict=True):
                if step is not None:
                    answer.append(step.token)
        return answers
    assert isinstance(network, EncoderOnly)
    with torch.inference_mode():
        read = network(pad(sources, PADDING)).argmax(dim=-1).tolist()
    return [ids[: len(source)] for ids, source in zip(read, sources, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("change", [copied, reversed_])
def test_every_preset_learns_to_copy_and_to_reverse(name: str, change: Change) -> None:
    network = build(
        name, vocab_size=FIRST + SYMBOLS, d_model=32, n_heads=4, n_layers=2, d_ff=64,
        max_len=2 * LONGEST + 4, dropout=0.0, attention_dropout=0.0, padding_id=PADDING,
    )  # fmt: skip
    fit(network, change)
    rows = sequences(random.Random(1), 1000, held_out=True)
    right = sum(
        answer == [*change(row), END]
        for row, answer in zip(rows, answers_of(network, rows), strict=True)
    )
    assert right > 0.99 * len(rows)

"""Predict the hidden tokens of a text with an encoder."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from transformer.checks import check_whole, shortened
from transformer.inference.loaded import LoadedModel
from transformer.model.transformer import EncoderOnly

N_BEST = 5
MAX_CANDIDATES = 50  # candidates per position


@dataclass(frozen=True, kw_only=True, slots=True)
class Guess:
    """A candidate for a hidden token. text: its text; label: with visible spaces; probability:
    from 0 to 1."""

    id: int
    text: str
    label: str
    probability: float


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Filled:
    """A text with its hidden positions filled.

    text: with the likeliest token at each position. positions: the hidden tokens' indices in ids.
    guesses: the likeliest tokens of each position, best first. Positions are predicted
    independently, so that two of them may not fit together.
    """

    text: str
    ids: tuple[int, ...]
    positions: tuple[int, ...]
    guesses: tuple[tuple[Guess, ...], ...]

    def __repr__(self) -> str:
        """One line: the text and the number of predicted tokens."""
        return f"<Filled {self.text!r}: {len(self.positions)} tokens predicted>"


@torch.inference_mode()
def fill(model: LoadedModel, text: str, n_best: int = N_BEST) -> Filled:
    """Predict each [MASK] of a text. n_best: candidates for each, from 1 to 50.

    Raises ValueError for another family, a tokenizer without a mask token, a text without [MASK],
    and a text that is too long.
    """
    network, mask = check_fills(model)
    check_whole("n_best", n_best, 1, MAX_CANDIDATES)
    ids = model.prepare(text).ids
    positions = [position for position, index in enumerate(ids) if index == mask]
    if not positions:
        raise ValueError(f"a text to fill in must hold [MASK]; got {shortened(text)}")
    where = torch.tensor([[index == mask for index in ids]], device=model.device)
    logits = network(torch.tensor([ids], device=model.device), where=where).float()
    best = logits.softmax(dim=-1).topk(min(n_best, logits.shape[1]))
    guesses = [
        tuple(_guess(model, *pair) for pair in zip(indices, chances, strict=True))
        for indices, chances in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
    filled = list(ids)
    for position, (first, *_) in zip(positions, guesses, strict=True):
        filled[position] = first.id
    return Filled(
        text=model.tokenizer.whole(filled).decode("utf-8", errors="replace"),
        ids=tuple(ids),
        positions=tuple(positions),
        guesses=tuple(guesses),
    )


def check_fills(model: LoadedModel) -> tuple[EncoderOnly, int]:
    """The network and its mask token's id. Raises ValueError for a model that cannot fill."""
    if not isinstance(model.network, EncoderOnly) or model.tokenizer.mask_id is None:
        raise ValueError(
            "only an encoder alone whose tokenizer has a mask token fills in "
            f"hidden tokens; {model.name} is {model.config.family}"
        )
    return model.network, model.tokenizer.mask_id


def _guess(model: LoadedModel, index: int, probability: float) -> Guess:
    tokenizer = model.tokenizer
    return Guess(
        id=index,
        text=tokenizer.text(index),
        label=tokenizer.label(index),
        probability=probability,
    )

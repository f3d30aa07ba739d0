"""Learning to translate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from transformer.inference.logit_sources import pad
from transformer.inference.model import Model
from transformer.model.config import ModelConfig
from transformer.plain_text import Reader
from transformer.tokenizer import Tokenizer
from transformer.training.data import Pair, collate, load_pairs, pair_files
from transformer.training.download import pairs_folder
from transformer.training.evaluate import score_pairs
from transformer.training.loss import summed_nats
from transformer.training.recipe import Recipe
from transformer.training.tasks.task import SAMPLE_TOKENS, Row, Task


class Translation(Task):
    """A source sentence into a target sentence, with one joint vocabulary."""

    def __init__(self, recipe: Recipe, source: str) -> None:
        self.smoothing = recipe.settings.label_smoothing
        folder = pairs_folder(source, recipe)
        self.train = load_pairs(pair_files(folder, "train", recipe.data))
        self.held_out = pair_files(folder, recipe.data.get("valid", "valid"), recipe.data)
        self.valid = load_pairs(self.held_out)
        reader = Reader(source_text=recipe.data.get("source_text"))
        self.train = [(reader.read_as(source), target) for source, target in self.train]

    def tokenizer_texts(self) -> Iterable[str]:
        return chain.from_iterable(self.train)

    def texts(self) -> Iterable[str]:
        return chain.from_iterable(chain(self.train, self.valid))

    def counts(self) -> dict[str, Any]:
        n_train, n_used = len(self.train), len(self.pairs)
        found = {"unit": "pairs", "train": n_train, "valid": len(self.valid)}
        return found | {"too_long": n_train - n_used}

    def encode(self, tokenizer: Tokenizer, config: ModelConfig) -> None:
        self.padding_id = tokenizer.padding_id
        start, end = tokenizer.start_id, tokenizer.end_id
        sources = tokenizer.encode_batch([source for source, _ in self.train])
        targets = tokenizer.encode_batch([target for _, target in self.train])
        self.pairs = [
            ([*source, end], [start, *target, end])
            for source, target in zip(sources, targets, strict=True)
            if len(source) < config.max_len and len(target) < config.max_len
        ]

    def rows(self, rng: Random) -> list[Row]:
        return list(self.pairs)

    def width(self, row: Row) -> int:
        return max(len(row[0]), len(row[1]) - 1)

    def count(self, row: Row) -> int:
        return len(row[1]) - 1

    def nats(self, network: nn.Module, rows: list[Row], device: torch.device) -> Tensor:
        sources = pad([source for source, _ in rows], self.padding_id)
        inputs, targets = collate([target for _, target in rows], self.padding_id)
        real = (targets != self.padding_id).to(device)
        logits = network(sources.to(device), inputs.to(device), where=real)
        return summed_nats(logits, targets.to(device)[real], self.smoothing)

    def scores(self, model: Model, limit: int | None = None) -> dict[str, dict[str, float]]:
        pairs: Sequence[Pair] = self.valid[:limit]
        return {"valid": score_pairs(model, pairs).numbers()}

    def sample(self, model: Model, prompt: str, seed: int) -> str:
        return model.generate(prompt, max_new_tokens=SAMPLE_TOKENS).text

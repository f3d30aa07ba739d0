"""Learning to fill in: an encoder alone says which words were hidden from it."""

from __future__ import annotations

import re
from random import Random
from typing import ClassVar

import torch
from torch import Tensor, nn

from transformer.inference.logit_sources import pad
from transformer.inference.model import Model
from transformer.model.config import ModelConfig
from transformer.model.network import IGNORED
from transformer.tokenizer import Tokenizer
from transformer.training.loss import summed_nats
from transformer.training.mlm import Hidden, Hiding, score_hidden
from transformer.training.tasks.language_model import LanguageModel

# More than is hidden when it is measured: a step has more to learn from (Wettig et al. 2023).
TRAINED_SHARE = 0.3
WHOLE = 0.5  # of the documents are read whole, the others in passages, as visitors type them
GOES_ON = 0.6  # the chance that a passage has one more sentence
_BETWEEN = re.compile(r'(?<=[.!?"])\s+')  # sentences


class FillIn(LanguageModel):
    """Documents and passages of them, from the end-of-text token; whole words are hidden, others
    in each epoch."""

    measures: ClassVar[dict[str, str]] = {"loss": "nats a hidden token", "top_1": "of them found"}
    masks: ClassVar[bool] = True

    def encode(self, tokenizer: Tokenizer, config: ModelConfig) -> None:
        self.tokenizer, self.max_len = tokenizer, config.max_len
        self.hiding = Hiding(tokenizer, TRAINED_SHARE)

    def rows(self, rng: Random) -> list[Hidden]:
        texts = [passage for text in self.documents.train for passage in passages(text, rng)]
        rows = []
        for ids in self.tokenizer.encode_batch(texts):
            for start in range(0, len(ids), self.max_len - 1):
                piece = [self.tokenizer.end_id, *ids[start : start + self.max_len - 1]]
                rows.append(self.hiding.for_training(piece, rng))
        return rows

    def width(self, row: Hidden) -> int:
        return len(row[0])

    def count(self, row: Hidden) -> int:
        return sum(target != IGNORED for target in row[1])

    def nats(self, network: nn.Module, rows: list[Hidden], device: torch.device) -> Tensor:
        read = pad([ids for ids, _ in rows], self.tokenizer.padding_id)
        wanted = pad([targets for _, targets in rows], IGNORED)
        where = wanted != IGNORED
        logits = network(read.to(device), where=where.to(device))
        return summed_nats(logits, wanted[where].to(device))

    def scores(self, model: Model, limit: int | None = None) -> dict[str, dict[str, float]]:
        valid, length = self.documents.valid[:limit], model.config.max_len
        parts = {"valid": valid}
        if limit is None:
            parts["train"] = self.documents.train[: len(valid)]
        return {
            name: score_hidden(model, model.tokenizer, texts, length).numbers()
            for name, texts in parts.items()
        }

    def sample(self, model: Model, prompt: str, seed: int) -> str:
        return model.fill(prompt).text


def passages(text: str, rng: Random) -> list[str]:
    """A document whole, or cut between sentences into passages of 1, 2, 3, ... of them."""
    if rng.random() < WHOLE:
        return [text]
    found: list[list[str]] = []
    for sentence in _BETWEEN.split(text):
        if found and rng.random() < GOES_ON:
            found[-1].append(sentence)
        else:
            found.append([sentence])
    return [" ".join(sentences) for sentences in found]

"""Learning to go on with a text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from transformer.inference.model import Model
from transformer.model.config import ModelConfig
from transformer.tokenizer import Tokenizer
from transformer.training.data import (
    VALID,
    collate,
    encode_documents,
    load_texts,
    windows_of,
)
from transformer.training.download import DOWNLOAD
from transformer.training.evaluate import score_documents
from transformer.training.loss import summed_nats
from transformer.training.recipe import Recipe
from transformer.training.tasks.task import SAMPLE_TOKENS, Row, Task


class LanguageModel(Task):
    """Each document alone, from the end-of-text token to the next."""

    def __init__(self, recipe: Recipe, source: str) -> None:
        if source == DOWNLOAD:
            raise ValueError(
                f"--data {DOWNLOAD} is for translation; {recipe.name} learns from documents; "
                "allowed: a folder with train.txt and valid.txt, or hub:OWNER/NAME"
            )
        self.documents = load_texts(source)
        valid = Path(source, VALID)
        self.held_out = [valid] if valid.is_file() else []

    def tokenizer_texts(self) -> Iterable[str]:
        return self.documents.train

    def texts(self) -> Iterable[str]:
        return chain(self.documents.train, self.documents.valid)

    def counts(self) -> dict[str, Any]:
        n_train, n_valid = len(self.documents.train), len(self.documents.valid)
        return {"unit": "documents", "train": n_train, "valid": n_valid}

    def encode(self, tokenizer: Tokenizer, config: ModelConfig) -> None:
        self.encoded = encode_documents(tokenizer, self.documents.train)
        self.max_len, self.padding_id = config.max_len, tokenizer.padding_id

    def rows(self, rng: Random) -> list[Row]:
        return [row for ids in self.encoded for row in windows_of(ids, self.max_len, rng)]

    def width(self, row: Row) -> int:
        return len(row) - 1

    def count(self, row: Row) -> int:
        return len(row) - 1

    def nats(self, network: nn.Module, rows: list[Row], device: torch.device) -> Tensor:
        inputs, targets = collate(rows, self.padding_id)
        real = (targets != self.padding_id).to(device)
        return summed_nats(network(inputs.to(device), where=real), targets.to(device)[real])

    def scores(self, model: Model, limit: int | None = None) -> dict[str, dict[str, float]]:
        valid = self.documents.valid[:limit]
        found = {"valid": score_documents(model, valid).numbers()}
        if limit is None:
            found["train"] = score_documents(model, self.documents.train[: len(valid)]).numbers()
        return found

    def sample(self, model: Model, prompt: str, seed: int) -> str:
        return model.generate(
            prompt, max_new_tokens=SAMPLE_TOKENS, temperature=0.8, top_k=40, seed=seed
        ).text

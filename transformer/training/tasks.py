"""What is learned: to go on with a text, or to translate it. The loop is the same for both."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import chain
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from transformer.inference.logit_sources import pad
from transformer.inference.model import Model
from transformer.messages import say
from transformer.model.config import ModelConfig
from transformer.plain_text import Reader
from transformer.tokenizer import Tokenizer
from transformer.training.data import (
    Pair,
    collate,
    encode_documents,
    load_pairs,
    load_texts,
    windows_of,
)
from transformer.training.download import DOWNLOAD, pairs_folder
from transformer.training.evaluate import score_documents, score_pairs
from transformer.training.loss import summed_nats
from transformer.training.recipe import Recipe

Row = Any  # what a task calls an example: ids, or a pair of them
SAMPLE_TOKENS = 60


class Task(ABC):
    """Examples, their loss, and how well a model does."""

    @abstractmethod
    def tokenizer_texts(self) -> Iterable[str]:
        """What the tokenizer learns its merges from."""

    @abstractmethod
    def encode(self, tokenizer: Tokenizer, config: ModelConfig) -> None:
        """Turn the training text into ids, once."""

    @abstractmethod
    def counts(self) -> dict[str, Any]:
        """How many examples there are, once encoded: {"unit": ..., "train": ..., "valid": ...}."""

    @abstractmethod
    def texts(self) -> Iterable[str]:
        """All that it learns from and validates with, in its order."""

    def fingerprint(self) -> str:
        """The same for the same text: whether a training may go on with it."""
        found = hashlib.blake2b(digest_size=16)
        for text in self.texts():
            found.update(text.encode() + b"\xff")  # a byte that no UTF-8 holds
        return found.hexdigest()

    @abstractmethod
    def rows(self, rng: Random) -> list[Row]:
        """An epoch's examples, in any order."""

    @abstractmethod
    def width(self, row: Row) -> int:
        """Columns that a row takes in a batch."""

    @abstractmethod
    def count(self, row: Row) -> int:
        """Tokens that a row predicts."""

    @abstractmethod
    def nats(self, network: nn.Module, rows: list[Row], device: torch.device) -> Tensor:
        """The loss of rows, summed over their predicted tokens."""

    @abstractmethod
    def scores(self, model: Model, limit: int | None = None) -> dict[str, dict[str, float]]:
        """Numbers on validation and (as much) training text; at most `limit` examples of each."""

    @abstractmethod
    def sample(self, model: Model, prompt: str, seed: int) -> str:
        """What the model makes of a prompt."""


class LanguageModel(Task):
    """Each document alone, from the end-of-text token to the next."""

    def __init__(self, recipe: Recipe, source: str) -> None:
        if source == DOWNLOAD:
            raise ValueError(
                say(
                    "--data {download} is for translation; {name} learns from documents; "
                    "allowed: a folder with train.txt and valid.txt, or hub:OWNER/NAME",
                    download=DOWNLOAD,
                    name=recipe.name,
                )
            )
        self.documents = load_texts(source)

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


class Translation(Task):
    """A source sentence into a target sentence, with one joint vocabulary."""

    def __init__(self, recipe: Recipe, source: str) -> None:
        self.smoothing = recipe.settings.label_smoothing
        folder = pairs_folder(source, recipe)
        self.train = load_pairs(folder, "train", recipe.data)
        self.valid = load_pairs(folder, recipe.data.get("valid", "valid"), recipe.data)
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


TASKS: dict[str, type[LanguageModel] | type[Translation]] = {
    "language-model": LanguageModel,
    "translation": Translation,
}

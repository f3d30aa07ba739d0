"""What is learned: examples, their loss, how well a network does. A recipe names its task."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from transformer.inference.logit_sources import pad
from transformer.inference.model import Model
from transformer.model.config import ModelConfig
from transformer.model.network import IGNORED
from transformer.plain_text import Reader
from transformer.tokenizer import Tokenizer
from transformer.training.data import (
    VALID,
    Pair,
    collate,
    encode_documents,
    load_pairs,
    load_texts,
    pair_files,
    windows_of,
)
from transformer.training.download import DOWNLOAD, pairs_folder
from transformer.training.evaluate import score_documents, score_pairs
from transformer.training.mlm import Hidden, Hiding, score_hidden
from transformer.training.recipe import Recipe
from transformer.training.updates import summed_nats

Row = Any  # what a task calls an example: ids, or a pair of them
SAMPLE_TOKENS = 60
# More than is hidden when it is measured: a step has more to learn from (Wettig et al. 2023).
TRAINED_SHARE = 0.3
WHOLE = 0.5  # of the documents are read whole, the others in passages, as visitors type them
GOES_ON = 0.6  # the chance that a passage has one more sentence
_BETWEEN = re.compile(r'(?<=[.!?"])\s+')  # sentences


class Task(ABC):
    """Examples, their loss, and how well a model does.

    measures: the scores that are told as it learns, with their units. masks: whether its tokenizer
    needs a token that hides others. held_out: the files of validation text: one, or sources and
    translations; none where it is a part of a file, or streamed.
    """

    measures: ClassVar[dict[str, str]] = {
        "loss": "nats a token",
        "bits_per_byte": "bits a byte",
    }
    masks: ClassVar[bool] = False
    held_out: list[Path]

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
        """All training and validation text, in order."""

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
        """The model's continuation or translation of a prompt."""


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


TASKS: dict[str, type[LanguageModel] | type[Translation]] = {
    "language-model": LanguageModel,
    "translation": Translation,
    "fill-in": FillIn,
}

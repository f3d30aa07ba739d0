"""What is learned: examples, their loss, how well a network does. The loop is the same for all."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from transformer.inference.model import Model
from transformer.model.config import ModelConfig
from transformer.tokenizer import Tokenizer

Row = Any  # what a task calls an example: ids, or a pair of them
SAMPLE_TOKENS = 60


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

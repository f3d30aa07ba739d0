"""Tasks: training examples and the scores of a network. A recipe names its task."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from transformer.inference.model import Model
from transformer.model.config import ModelConfig
from transformer.plain_text import Reader
from transformer.tokenizer import HIDDEN, Tokenizer
from transformer.training.data import (
    HUB,
    TRAIN,
    VALID,
    Example,
    check_known,
    documents_of,
    encode_documents,
    encode_pairs,
    known_pairs,
    lines_of,
    load_pairs,
    load_texts,
    pair_files,
    windows_of,
)
from transformer.training.evaluate import score_documents, score_pairs
from transformer.training.mlm import Hiding, score_hidden
from transformer.training.recipe import Recipe

SAMPLE_TOKENS = 60
# More than in validation: each step then learns from more tokens (Wettig et al. 2023).
TRAINED_SHARE = 0.3
WHOLE_SHARE = 0.5  # of the documents stay whole; the others become short passages, as visitors type
GOES_ON = 0.6  # the probability that a passage has one more sentence
_BETWEEN = re.compile(r'(?<=[.!?"])\s+')  # sentences


class Task(ABC):
    """Training examples and a model's scores.

    measures: the scores reported during training, with their units. masks: whether its tokenizer
    needs a mask token. train, valid: documents or sentence pairs, as `unit` says. held_out: the
    validation files (one, or sources and translations); empty if the text is a part of a file or
    streamed. files: the training files; for documents, all files.
    """

    measures: ClassVar[dict[str, str]] = {"loss": "nats a token", "bits_per_byte": "bits a byte"}
    masks: ClassVar[bool] = False
    unit: ClassVar[str]
    train: Sequence[Any]
    valid: Sequence[Any]
    held_out: list[Path]
    files: list[Path]

    @abstractmethod
    def texts(self, part: Sequence[Any]) -> Iterable[str]:
        """All text of `train` or `valid`, in order."""

    @abstractmethod
    def check(self, tokenizer: Tokenizer) -> None:
        """Raise ValueError, naming file and line, for a character without an id."""

    @abstractmethod
    def encode(self, tokenizer: Tokenizer, config: ModelConfig) -> None:
        """Encode the training text, once, without examples that are too long."""

    def counts(self) -> dict[str, Any]:
        """The number of encoded examples."""
        return {"unit": self.unit, "train": len(self.train), "valid": len(self.valid)}

    def fingerprint(self) -> str:
        """A hash of all text; a training resumes only with the same text."""
        digest = hashlib.blake2b(digest_size=16)
        for text in chain(self.texts(self.train), self.texts(self.valid)):
            digest.update(text.encode() + b"\xff")  # a byte that never occurs in UTF-8
        return digest.hexdigest()

    @abstractmethod
    def rows(self, rng: Random) -> list[Example]:
        """An epoch's examples, in any order."""

    @abstractmethod
    def scores(self, model: Model, limit: int | None = None) -> dict[str, dict[str, float]]:
        """Scores on validation text and as much training text; at most `limit` examples of each."""

    @abstractmethod
    def sample(self, model: Model, prompt: str, seed: int, most: int = SAMPLE_TOKENS) -> str:
        """The model's output for a prompt, at most `most` tokens. Unknown characters are left
        out."""


class LanguageModel(Task):
    """Each document separately, between end-of-text tokens."""

    unit = "documents"

    def __init__(self, recipe: Recipe, source: str) -> None:
        self.train, self.valid = load_texts(source)
        valid = Path(source, VALID)
        self.held_out = [valid] if valid.is_file() else []
        self.files = [Path(source)] if Path(source).is_file() else [Path(source, TRAIN), valid]

    def texts(self, part: Sequence[Any]) -> Iterable[str]:
        return part

    def check(self, tokenizer: Tokenizer) -> None:
        for path in (
            self.files if any(map(tokenizer.unknown, chain(self.train, self.valid))) else ()
        ):
            if path.is_file():
                check_known(tokenizer, path, documents_of(lines_of(path)))

    def encode(self, tokenizer: Tokenizer, config: ModelConfig) -> None:
        self.encoded, self.max_len = encode_documents(tokenizer, self.train), config.max_len

    def rows(self, rng: Random) -> list[Example]:
        return [Example(row) for ids in self.encoded for row in windows_of(ids, self.max_len, rng)]

    def scores(self, model: Model, limit: int | None = None) -> dict[str, dict[str, float]]:
        valid = self.valid[:limit]
        scores = {"valid": self.score(model, valid)}
        if limit is None:
            scores["train"] = self.score(model, self.train[: len(valid)])
        return scores

    def score(self, model: Model, documents: Sequence[str]) -> dict[str, float]:
        """Scores on documents."""
        return score_documents(model, documents).numbers()

    def sample(self, model: Model, prompt: str, seed: int, most: int = SAMPLE_TOKENS) -> str:
        prompt = model.tokenizer.readable(prompt)
        return model.generate(
            prompt, max_new_tokens=most, temperature=0.8, top_k=40, seed=seed
        ).text


class FillIn(LanguageModel):
    """Documents and passages of them, with whole words masked, different ones in each epoch."""

    measures: ClassVar[dict[str, str]] = {"loss": "nats a hidden token", "top_1": "of them found"}
    masks: ClassVar[bool] = True

    def encode(self, tokenizer: Tokenizer, config: ModelConfig) -> None:
        self.tokenizer, self.max_len = tokenizer, config.max_len
        self.valid = [*map(tokenizer.readable, self.valid)]
        self.hiding = Hiding(tokenizer, TRAINED_SHARE)

    def rows(self, rng: Random) -> list[Example]:
        texts = [passage for text in self.train for passage in passages(text, rng)]
        rows = []
        for ids in self.tokenizer.encode_batch(texts):
            for start in range(0, len(ids), self.max_len - 1):
                piece = [self.tokenizer.end_id, *ids[start : start + self.max_len - 1]]
                rows.append(self.hiding.hide(piece, rng))
        return rows

    def score(self, model: Model, documents: Sequence[str]) -> dict[str, float]:
        score = score_hidden(model, model.tokenizer, documents, model.config.max_len)
        return {
            "loss": round(score.loss, 5), "top_1": round(score.top_1, 5), "places": score.tokens,
            "documents": score.documents,
        }  # fmt: skip

    def sample(self, model: Model, prompt: str, seed: int, most: int = SAMPLE_TOKENS) -> str:
        pieces = prompt.split(HIDDEN)
        return model.fill(HIDDEN.join(map(model.tokenizer.without_unknown, pieces))).text


def passages(text: str, rng: Random) -> list[str]:
    """A document whole, or cut into passages of one or more sentences."""
    if rng.random() < WHOLE_SHARE:
        return [text]
    parts: list[list[str]] = []
    for sentence in _BETWEEN.split(text):
        if parts and rng.random() < GOES_ON:
            parts[-1].append(sentence)
        else:
            parts.append([sentence])
    return [" ".join(sentences) for sentences in parts]


class Translation(Task):
    """Translation of sentences, with one joint vocabulary."""

    unit = "pairs"

    def __init__(self, recipe: Recipe, source: str) -> None:
        if source.startswith(HUB):
            raise ValueError(
                "a translation recipe needs sentence pairs; the Hub is read for documents alone; "
                f"got --data {source}; allowed: a folder with train.tsv and valid.tsv"
            )
        folder = Path(source)
        self.files = pair_files(folder, "train", recipe.data)
        self.held_out = pair_files(folder, recipe.data.get("valid", "valid"), recipe.data)
        train, self.valid = load_pairs(self.files), load_pairs(self.held_out)
        reader = Reader(source_text=recipe.data.get("source_text"))
        self.train = [(reader.read_as(source), target) for source, target in train]
        self.n_too_long = 0  # validation pairs

    def texts(self, part: Sequence[Any]) -> Iterable[str]:
        return chain.from_iterable(part)

    def counts(self) -> dict[str, Any]:
        too_long = {"too_long": len(self.train) - len(self.examples)}
        return super().counts() | too_long | {"valid_too_long": self.n_too_long}

    def check(self, tokenizer: Tokenizer) -> None:
        if any(map(tokenizer.unknown, chain(self.texts(self.train), self.texts(self.valid)))):
            for files in (self.files, self.held_out):
                known_pairs(tokenizer, files)

    def encode(self, tokenizer: Tokenizer, config: ModelConfig) -> None:
        examples = encode_pairs(tokenizer, self.train)
        self.examples = [example for example in examples if example.width <= config.max_len]
        read = tokenizer.readable
        valid = [(read(source), read(target)) for source, target in self.valid]
        rows = zip(valid, encode_pairs(tokenizer, valid), strict=True)
        self.valid = [pair for pair, example in rows if example.width <= config.max_len]
        self.n_too_long = len(valid) - len(self.valid)
        for name, part in (("training", self.examples), ("validation", self.valid)):
            if not part:
                raise ValueError(
                    f"every {name} pair is longer than the {config.max_len} tokens that the "
                    "network reads; needed: shorter pairs, or a larger max_len"
                )

    def rows(self, rng: Random) -> list[Example]:
        return list(self.examples)

    def scores(self, model: Model, limit: int | None = None) -> dict[str, dict[str, float]]:
        return {"valid": score_pairs(model, self.valid[:limit]).numbers()}

    def sample(self, model: Model, prompt: str, seed: int, most: int = SAMPLE_TOKENS) -> str:
        return model.generate(model.tokenizer.readable(prompt), max_new_tokens=most).text


TASKS: dict[str, type[LanguageModel] | type[Translation]] = {
    "language-model": LanguageModel,
    "translation": Translation,
    "fill-in": FillIn,
}

"""Training text: where it comes from, and how it becomes batches."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from transformer.text import END, Tokenizer

HUB = "hub:"
HUB_DOCUMENTS = 200_000
HUB_VALIDATION_DOCUMENTS = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Texts:
    """Documents to train on and to validate with."""

    train: list[str]
    valid: list[str]


def load_texts(source: str) -> Texts:
    """From a folder with train.txt and valid.txt, or streamed from "hub:OWNER/NAME".

    Raises ValueError in one sentence when the source cannot be read.
    """
    if source.startswith(HUB):
        name = source.removeprefix(HUB)
        return Texts(
            train=_from_hub(name, "train", HUB_DOCUMENTS),
            valid=_from_hub(name, "validation", HUB_VALIDATION_DOCUMENTS),
        )
    folder = Path(source)
    return Texts(
        train=read_documents(folder / "train.txt"), valid=read_documents(folder / "valid.txt")
    )


def read_documents(path: Path) -> list[str]:
    """Documents of a UTF-8 file in which a line "<|endoftext|>" ends each; none empty."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read training text {path}: {error}") from error
    documents = [part.strip("\n") for part in f"\n{text}\n".split(f"\n{END}\n")]
    documents = [document for document in documents if document.strip()]
    if not documents:
        raise ValueError(f"{path} holds no documents; needed: text, each document ended by {END}")
    return documents


def _from_hub(name: str, split: str, count: int) -> list[str]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise ValueError(
            "reading from the Hub needs the package datasets; install requirements-dev.txt"
        ) from error
    try:
        stream = load_dataset(name, split=split, streaming=True)
        return [row["text"] for row in stream.take(count) if row["text"].strip()]
    except Exception as error:  # whatever the network or the Hub raises
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"cannot stream {name!r} ({split}) from the Hugging Face Hub: {reason}; "
            "with no network, give --data a folder with train.txt and valid.txt"
        ) from error


def encode_documents(tokenizer: Tokenizer, documents: list[str]) -> list[list[int]]:
    """Ids of each document between two end-of-text tokens, the first read, the last predicted."""
    end = tokenizer.end_id
    return [[end, *ids, end] for ids in tokenizer.encode_batch(documents)]


class Batches:
    """Endless batches of documents, a pure function of (seed, epoch): resuming needs no state.

    Each epoch: shuffle, cut documents longer than max_len into windows (at a random first cut),
    sort by length within pools so that little is padded, shuffle the batches.
    """

    POOL = 512  # documents sorted together: long enough for even batches, short enough to mix

    def __init__(
        self, documents: list[list[int]], *, max_len: int, batch_tokens: int, seed: int
    ) -> None:
        self.documents, self.max_len = documents, max_len
        self.batch_tokens, self.seed = batch_tokens, seed

    def epoch(self, number: int) -> list[list[list[int]]]:
        """All batches of an epoch; a batch is a list of rows of 2 to max_len + 1 ids."""
        rng = random.Random(f"{self.seed} {number}")
        rows = [window for ids in self.documents for window in self._windows(ids, rng)]
        rng.shuffle(rows)
        batches: list[list[list[int]]] = []
        for start in range(0, len(rows), self.POOL):
            batches += self._group(sorted(rows[start : start + self.POOL], key=len))
        rng.shuffle(batches)
        return batches

    def starting_at(self, epoch: int, index: int) -> Iterator[tuple[int, int, list[list[int]]]]:
        """(epoch, index, batch) from a place on, for ever."""
        while True:
            batches = self.epoch(epoch)
            for place in range(index, len(batches)):
                yield epoch, place, batches[place]
            epoch, index = epoch + 1, 0

    def _windows(self, ids: list[int], rng: random.Random) -> list[list[int]]:
        if len(ids) <= self.max_len + 1:
            return [ids]
        stop = rng.randint(self.max_len // 2, self.max_len)
        windows = [ids[: stop + 1]]
        while stop < len(ids) - 1:
            windows.append(ids[stop : stop + self.max_len + 1])
            stop += self.max_len
        return windows

    def _group(self, rows: list[list[int]]) -> list[list[list[int]]]:
        """Rows, shortest first, in batches of at most batch_tokens with padding."""
        batches: list[list[list[int]]] = [[]]
        for row in rows:
            if batches[-1] and (len(batches[-1]) + 1) * (len(row) - 1) > self.batch_tokens:
                batches.append([])
            batches[-1].append(row)
        return batches


def collate(rows: list[list[int]], padding_id: int) -> tuple[Tensor, Tensor]:
    """Rows as inputs and next-token targets, each (B, T) int64, padded on the right."""
    width = max(map(len, rows))
    ids = torch.tensor([row + [padding_id] * (width - len(row)) for row in rows])
    return ids[:, :-1], ids[:, 1:]

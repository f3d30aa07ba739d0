"""How good a language model is, in numbers that do not depend on its tokenizer."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.inference.run import Model
from transformer.model.transformer import DecoderOnly
from transformer.text import Tokenizer
from transformer.training.data import collate, encode_documents

BATCH_TOKENS = 8192


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """Total nats over a text. The end token of each document counts in nats and tokens."""

    nats: float
    tokens: int
    bytes: int
    documents: int
    seconds: float

    @property
    def loss(self) -> float:
        """Nats a token."""
        return self.nats / self.tokens

    @property
    def perplexity(self) -> float:
        """exp(loss)."""
        return math.exp(self.loss)

    @property
    def bits_per_byte(self) -> float:
        """Total nats over the documents' UTF-8 bytes, in bits."""
        return self.nats / math.log(2) / self.bytes


def score_documents(network: DecoderOnly, tokenizer: Tokenizer, documents: Sequence[str]) -> Score:
    """Each document alone, from the end-of-text token to the next, in sliding windows."""
    started = time.perf_counter()
    rows = encode_documents(tokenizer, list(documents))
    nats = sum(_row_nats(network, tokenizer.padding_id, rows))
    return Score(
        nats=nats,
        tokens=sum(len(row) - 1 for row in rows),
        bytes=sum(len(document.encode()) for document in documents),
        documents=len(documents),
        seconds=time.perf_counter() - started,
    )


def score_model(model: Model, documents: Sequence[str]) -> Score:
    """`score_documents` for a loaded decoder-only model. Raises ValueError for another family."""
    if not isinstance(model.network, DecoderOnly):
        raise ValueError(
            f"bits per byte need a decoder-only model; {model.name} is {model.config.family}"
        )
    return score_documents(model.network, model.tokenizer, documents)


def windows(length: int, max_len: int) -> list[tuple[int, int, int]]:
    """Cut `length` predictions into (start, first_scored, stop), at most max_len wide.

    Every prediction is scored once; after the first window each has at least half of max_len
    behind it.
    """
    result = [(0, 0, min(length, max_len))]
    while result[-1][2] < length:
        scored = result[-1][2]
        stop = min(length, scored + max_len - max_len // 2)
        result.append((max(0, stop - max_len), scored, stop))
    return result


@torch.inference_mode()
def _row_nats(network: DecoderOnly, padding_id: int, rows: list[list[int]]) -> Iterable[float]:
    jobs = [
        (row[start : stop + 1], scored - start)
        for row in rows
        for start, scored, stop in windows(len(row) - 1, network.config.max_len)
    ]
    jobs.sort(key=lambda job: len(job[0]))
    while jobs:
        size = max(1, BATCH_TOKENS // len(jobs[-1][0]))
        batch, jobs = jobs[-size:], jobs[:-size]
        inputs, targets = collate([ids for ids, _ in batch], padding_id)
        skipped = torch.tensor([skip for _, skip in batch])
        scored = torch.arange(targets.shape[1]) >= skipped[:, None]
        lengths = torch.tensor([len(ids) - 1 for ids, _ in batch])
        scored &= torch.arange(targets.shape[1]) < lengths[:, None]
        yield _nats(network(inputs.to(network.device)), targets, scored)


def _nats(logits: Tensor, targets: Tensor, scored: Tensor) -> float:
    picked = logits[scored.to(logits.device)].float()
    return F.cross_entropy(picked, targets[scored].to(logits.device), reduction="sum").item()

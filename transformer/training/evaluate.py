"""How good a language model is, in numbers that do not depend on its tokenizer."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.inference.logit_sources import pad
from transformer.inference.model import Model
from transformer.model.transformer import DecoderOnly, EncoderDecoder
from transformer.training.data import Pair, collate, encode_documents

BATCH_TOKENS = 8192
PAIRS_AT_ONCE = 100


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

    def numbers(self) -> dict[str, float]:
        """All of them, rounded, for JSON."""
        derived = {
            "loss": self.loss,
            "perplexity": self.perplexity,
            "bits_per_byte": self.bits_per_byte,
        }
        return {name: round(value, 5) for name, value in (asdict(self) | derived).items()}


def score_documents(model: Model, documents: Sequence[str]) -> Score:
    """Each document alone, from the end-of-text token to the next, in sliding windows.

    Raises ValueError for a model that is not decoder-only.
    """
    network, tokenizer = model.network, model.tokenizer
    if not isinstance(network, DecoderOnly):
        raise ValueError(
            f"bits per byte need a decoder-only model; {model.name} is {model.config.family}"
        )
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


@torch.inference_mode()
def score_pairs(model: Model, pairs: Sequence[Pair]) -> Score:
    """Each target given its source, end token included; bytes and nats are the targets'.

    Raises ValueError for a model that is not an encoder-decoder.
    """
    network, tokenizer = model.network, model.tokenizer
    model.check_translator()
    assert isinstance(network, EncoderDecoder)
    started = time.perf_counter()
    nats, tokens = 0.0, 0
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        part = pairs[start : start + PAIRS_AT_ONCE]
        read = [model.reader.read_as(source) for source, _ in part]
        sources = [[*ids, tokenizer.end_id] for ids in tokenizer.encode_batch(read)]
        targets = tokenizer.encode_batch([t for _, t in part])
        rows = [[tokenizer.start_id, *ids, tokenizer.end_id] for ids in targets]
        inputs, wanted = collate(rows, tokenizer.padding_id)
        source = pad(sources, tokenizer.padding_id).to(network.device)
        real = wanted != tokenizer.padding_id
        nats += _nats(network(source, inputs.to(network.device)), wanted, real)
        tokens += int(real.sum())
    return Score(
        nats=nats,
        tokens=tokens,
        bytes=sum(len(target.encode()) for _, target in pairs),
        documents=len(pairs),
        seconds=time.perf_counter() - started,
    )


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


OPENINGS = ("Once upon a time", "One day", "There was a", "Lily", "Tom and his")
BATCH = 20
SAMPLE_TOKENS = 300


def sample_stories(model: Model, count: int) -> list[str]:
    """Texts sampled at temperature 1, without filters, from a few openings; seeds 0, 1, 2, ..."""
    stories = []
    for start in range(0, count, BATCH):
        seeds = list(range(start, min(count, start + BATCH)))
        texts = [OPENINGS[seed % len(OPENINGS)] for seed in seeds]
        runs = model.generate_batch(
            texts, seeds=seeds, temperature=1.0, max_new_tokens=SAMPLE_TOKENS
        )
        stories += [run.text for run in runs]
    return stories


def longest_shared_passage(samples: Sequence[str], documents: Iterable[str]) -> tuple[int, str]:
    """(number of words, the words) of the longest run that a sample and a document share.

    Words are separated by white space and compared exactly.
    """
    sample_words = [sample.split() for sample in samples]
    document_words = [document.split() for document in documents]
    best: tuple[int, str] = (0, "")
    length = 1
    while True:
        wanted = {
            tuple(words[i : i + length]) for words in sample_words
            for i in range(len(words) - length + 1)
        }  # fmt: skip
        found = next(
            (
                gram for words in document_words for i in range(len(words) - length + 1)
                if (gram := tuple(words[i : i + length])) in wanted
            ),
            None,
        )  # fmt: skip
        if found is None:
            return best
        best = (length, " ".join(found))
        length += 1

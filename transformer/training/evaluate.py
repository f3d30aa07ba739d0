"""How good a language model is, in numbers that do not depend on its tokenizer."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import torch

from transformer.inference.model import Model
from transformer.model.network import IGNORED
from transformer.training.data import Example, Pair, by_width, encode_documents, encode_pairs
from transformer.training.updates import predictions, summed_nats

BATCH_TOKENS = 4096


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
    if model.config.family != "decoder":
        raise ValueError(
            f"bits per byte need a decoder-only model; {model.name} is {model.config.family}"
        )
    rows = (
        Example(row[start:stop], [IGNORED] * (scored - start) + row[scored + 1 : stop + 1])
        for row in encode_documents(model.tokenizer, documents)
        for start, scored, stop in windows(len(row) - 1, model.config.max_len)
    )
    return _scored(model, rows, documents)


def score_pairs(model: Model, pairs: Sequence[Pair]) -> Score:
    """Each target given its source, end token included; bytes and nats are the targets'.

    Raises ValueError for a model that is not an encoder-decoder.
    """
    model.check_translator()
    read = [(model.reader.read_as(source), target) for source, target in pairs]
    return _scored(model, encode_pairs(model.tokenizer, read), [target for _, target in pairs])


@torch.inference_mode()
def _scored(model: Model, rows: Iterable[Example], texts: Sequence[str]) -> Score:
    """What the wanted tokens of the rows cost, which are those of the texts."""
    started, nats, tokens = time.perf_counter(), 0.0, 0
    for batch in by_width(rows, BATCH_TOKENS):
        logits, wanted, _ = predictions(model.network, batch, model.tokenizer.padding_id)
        nats += summed_nats(logits, wanted).item()
        tokens += len(wanted)
    return Score(
        nats=nats,
        tokens=tokens,
        bytes=sum(len(text.encode()) for text in texts),
        documents=len(texts),
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

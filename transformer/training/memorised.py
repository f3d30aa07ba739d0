"""Does a model repeat its training text? The longest run of words that samples share with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from transformer.inference.model import Model

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

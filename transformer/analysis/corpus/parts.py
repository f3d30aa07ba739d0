"""A corpus in parts: each is read by one process, and its summary kept on the disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import add
from pathlib import Path

from transformer.analysis.corpus.reading import summary_of
from transformer.analysis.corpus.summary import Summary
from transformer.inference.model import Model
from transformer.messages import invalid

END_OF_TEXT = "<|endoftext|>"  # alone on a line: texts may then have several lines
PART = 100  # texts


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Some texts that stand together in the corpus.

    start: of the first, counted from 0. n_ablated: at how many of the corpus's first texts each
    head is ablated.
    """

    start: int
    texts: tuple[str, ...]
    n_ablated: int

    def path(self, folder: Path, model: str) -> Path:
        """Where its summary stands: another model, text or setting has another name."""
        asked = repr((model, self.texts, max(0, self.n_ablated - self.start)))
        mark = hashlib.sha256(asked.encode(errors="surrogatepass")).hexdigest()[:16]
        return folder / f"part-{self.start:09}-{mark}.npz"

    def summary(self, model: Model) -> Summary:
        """What the heads of a model do in its texts."""
        found = (
            summary_of(model, text, index, ablate=index < self.n_ablated)
            for index, text in enumerate(self.texts, self.start)
        )
        return reduce(add, found)


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """What is to be read, and by which model.

    model: its name. texts: opens the texts anew, from the first on; it may be pickled. n_texts: of
    the first; None for all. n_ablated: see `Part`. part: the texts of a part.
    """

    model: str
    texts: Callable[[], Iterable[str]]
    n_texts: int | None = None
    n_ablated: int = 0
    part: int = PART

    def parts(self) -> Iterator[Part]:
        """One after the other; in memory is only the one that is given."""
        texts, start = islice(self.texts(), self.n_texts), 0
        while some := tuple(islice(texts, self.part)):
            yield Part(start=start, texts=some, n_ablated=self.n_ablated)
            start += len(some)


def texts_of(path: Path) -> Iterator[str]:
    """A file's texts, one at a time: what END_OF_TEXT parts, or else its lines.

    Empty ones are passed over. Raises ValueError for what is not UTF-8.
    """
    try:
        with path.open(encoding="utf-8") as file:
            parted = any(line.strip() == END_OF_TEXT for line in islice(file, 1000))
        with path.open(encoding="utf-8") as file:
            yield from _parted(file) if parted else (line.strip() for line in file if line.strip())
    except UnicodeDecodeError as error:
        raise invalid("{path} is not UTF-8 text: {error}", path=path, error=error) from None


def _parted(lines: Iterable[str]) -> Iterator[str]:
    text: list[str] = []
    for line in lines:
        if line.strip() != END_OF_TEXT:
            text.append(line)
        elif whole := "".join(text).strip():
            yield whole
            text = []
    if whole := "".join(text).strip():
        yield whole

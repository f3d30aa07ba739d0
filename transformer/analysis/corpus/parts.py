"""A corpus in parts, each read by one process: this one, or one of several on this machine. Its
summary is kept on disk."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import add
from pathlib import Path

import torch

from transformer.analysis.corpus.reading import summary_of
from transformer.analysis.corpus.summary import Summary
from transformer.inference.model import Model, load

PART = 100  # texts
Done = tuple[Path, int]  # a part's summary on the disk, and how many texts it is of


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Consecutive texts of the corpus.

    start: of the first, counted from 0. n_ablated: at how many of the corpus's first texts each
    head is ablated.
    """

    start: int
    texts: tuple[str, ...]
    n_ablated: int

    def path(self, folder: Path, model: str) -> Path:
        """The summary's file; another model, text or setting has another name."""
        asked = repr((model, self.texts, max(0, self.n_ablated - self.start)))
        mark = hashlib.sha256(asked.encode(errors="surrogatepass")).hexdigest()[:16]
        return folder / f"part-{self.start:09}-{mark}.npz"

    def summary(self, model: Model) -> Summary:
        """The summary of a model's heads over its texts."""
        found = (
            summary_of(model, text, index, ablate=index < self.n_ablated)
            for index, text in enumerate(self.texts, self.start)
        )
        return reduce(add, found)


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """The texts to read, and the model.

    model: its name. texts: opens the texts anew, from the first on; it may be pickled. n_texts: how
    many to read, from the first on; None = all. n_ablated: see `Part`. part: how many texts a part
    has.
    """

    model: str
    texts: Callable[[], Iterable[str]]
    n_texts: int | None = None
    n_ablated: int = 0
    part: int = PART

    def parts(self) -> Iterator[Part]:
        """Yield the parts one by one; only the current one is kept in memory."""
        texts, start = islice(self.texts(), self.n_texts), 0
        while some := tuple(islice(texts, self.part)):
            yield Part(start=start, texts=some, n_ablated=self.n_ablated)
            start += len(some)


def by_one(corpus: Corpus, folder: Path) -> Iterator[Done]:
    """Yield every part of a corpus once its summary is in the folder; existing summaries are
    kept."""
    model = load(corpus.model)
    for part in corpus.parts():
        path = part.path(folder, corpus.model)
        if not path.exists():
            with one_thread():
                part.summary(model).save(path)
        yield path, len(part.texts)


def by_processes(corpus: Corpus, folder: Path, workers: int) -> Iterator[Done]:
    """`by_one` in several processes of this machine."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(corpus.model,))
    with pool:
        under_way: dict[Future[None], Done] = {}
        for part in corpus.parts():
            path = part.path(folder, corpus.model)
            if path.exists():
                yield path, len(part.texts)
                continue
            under_way[pool.submit(_work_here, part, path)] = path, len(part.texts)
            if len(under_way) >= 2 * workers:
                yield from _finished(under_way)
        while under_way:
            yield from _finished(under_way)


def _finished(under_way: dict[Future[None], Done]) -> Iterator[Done]:
    for future in wait(under_way, return_when=FIRST_COMPLETED).done:
        done = under_way.pop(future)
        future.result()
        yield done


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread: for one text two would mostly wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_MODEL: list[Model] = []  # of a worker


def _begin(name: str) -> None:
    torch.set_num_threads(1)
    _MODEL.append(load(name))


def _work_here(part: Part, path: Path) -> None:
    part.summary(_MODEL[0]).save(path)

"""The parts of a corpus by this process alone, or by several of this machine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

import torch

from transformer.analysis.corpus.parts import Corpus, Part
from transformer.inference.model import Model, load

Done = tuple[Path, int]  # a part's summary on the disk, and how many texts it is of


def by_processes(corpus: Corpus, folder: Path, workers: int) -> Iterator[Done]:
    """Every part of a corpus as soon as its summary is in the folder; one that is there stays."""
    return _alone(corpus, folder) if workers == 1 else _together(corpus, folder, workers)


def _alone(corpus: Corpus, folder: Path) -> Iterator[Done]:
    model = load(corpus.model)
    for part in corpus.parts():
        path = part.path(folder, corpus.model)
        if not path.exists():
            with _one_thread():
                part.summary(model).save(path)
        yield path, len(part.texts)


def _together(corpus: Corpus, folder: Path, workers: int) -> Iterator[Done]:
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
def _one_thread() -> Iterator[None]:
    """One text is too little work for two threads, which would mostly wait for each other."""
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

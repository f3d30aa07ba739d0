"""A file of texts in parts: each by one process, kept on the disk, and added up at the end."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import add
from pathlib import Path

import torch

from transformer.analysis.corpus.reading import summary_of
from transformer.analysis.corpus.summary import Summary
from transformer.inference.model import Model, load
from transformer.messages import say

END_OF_TEXT = "<|endoftext|>"  # alone on a line: texts may then have several lines
PART = 100  # texts


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Some texts that stand together in the file.

    start: of the first, counted from 0. n_silenced: at how many of the corpus's first texts each
    head is silenced.
    """

    start: int
    texts: tuple[str, ...]
    n_silenced: int

    def path(self, folder: Path, model: str) -> Path:
        """Where its summary stands: another model, text or setting has another name."""
        asked = repr((model, self.texts, max(0, self.n_silenced - self.start)))
        mark = hashlib.sha256(asked.encode(errors="surrogatepass")).hexdigest()[:16]
        return folder / f"part-{self.start:09}-{mark}.npz"


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
        raise ValueError(say("{path} is not UTF-8 text: {error}", path=path, error=error)) from None


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


def over_file(
    name: str,
    path: Path,
    folder: Path,
    *,
    n_texts: int | None = None,
    n_silenced: int = 0,
    workers: int = 1,
    told: Callable[[int], None] = lambda done: None,
) -> Summary:
    """The heads of a model over a file of texts: the same for any number of workers.

    Each part's summary is written to `folder` when it is done, and read from there if it is there:
    an interrupted run goes on. In memory are only the parts under way. n_texts: of the file's
    first; None for all. told(n): n more texts are done. Raises ValueError for a file that holds no
    text.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []

    def missing() -> Iterator[Part]:
        for part in _parts(path, n_texts, n_silenced):
            paths.append(part.path(folder, name))
            if paths[-1].exists():
                told(len(part.texts))
            else:
                yield part

    for part in _worked(name, missing(), folder, workers):
        told(len(part.texts))
    if not paths:
        raise ValueError(say("{path} holds no text", path=path))
    return reduce(add, (Summary.load(one) for one in paths))


def _parts(path: Path, n_texts: int | None, n_silenced: int) -> Iterator[Part]:
    texts, start = islice(texts_of(path), n_texts), 0
    while some := tuple(islice(texts, PART)):
        yield Part(start=start, texts=some, n_silenced=n_silenced)
        start += len(some)


def _worked(name: str, parts: Iterator[Part], folder: Path, workers: int) -> Iterator[Part]:
    """Each part once its summary is on the disk."""
    if workers == 1:
        model = load(name)
        for part in parts:
            _work(model, part, folder, name)
            yield part
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(name,))
    with pool:
        under_way: dict[Future[None], Part] = {}
        for part in parts:
            under_way[pool.submit(_work_here, part, folder, name)] = part
            if len(under_way) >= 2 * workers:
                yield from _finished(under_way)
        while under_way:
            yield from _finished(under_way)


def _finished(under_way: dict[Future[None], Part]) -> Iterator[Part]:
    for future in wait(under_way, return_when=FIRST_COMPLETED).done:
        part = under_way.pop(future)
        future.result()
        yield part


def _work(model: Model, part: Part, folder: Path, name: str) -> None:
    found = (
        summary_of(model, text, index, silence=index < part.n_silenced)
        for index, text in enumerate(part.texts, part.start)
    )
    reduce(add, found).save(part.path(folder, name))


_MODEL: list[Model] = []  # of a worker


def _begin(name: str) -> None:
    torch.set_num_threads(1)
    _MODEL.append(load(name))


def _work_here(part: Part, folder: Path, name: str) -> None:
    _work(_MODEL[0], part, folder, name)

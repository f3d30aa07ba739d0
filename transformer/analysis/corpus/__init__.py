"""Statistics of each head over many texts.

    python -m transformer.analysis.corpus stories --data FILE --out FOLDER

summary.py: the numbers, which may be merged in any order. reading.py: those of one text. parts.py:
a corpus in parts, each worked on by itself, by processes here; with_ray.py: by a cluster.
dossier.py: what was found about each head, as plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import add
from pathlib import Path

from transformer.analysis.corpus.dossier import dossiers
from transformer.analysis.corpus.parts import PART, Corpus, by_one, by_processes
from transformer.analysis.corpus.reading import summary_of
from transformer.analysis.corpus.summary import Summary
from transformer.analysis.corpus.with_ray import by_ray
from transformer.inference.progress import progress_bar

__all__ = ["Summary", "dossiers", "over_texts", "summary_of"]


def over_texts(
    name: str,
    texts: Callable[[], Iterable[str]],
    folder: Path,
    *,
    n_texts: int | None = None,
    n_ablated: int = 0,
    part: int = PART,
    workers: int = 1,
    ray: str | None = None,
    told: Callable[[int], None] = lambda done: None,
    progress: bool = True,
) -> Summary:
    """Measure the heads of a model over texts; the result does not depend on the workers.

    Each part's summary is written to `folder` when it is done, and read from there if it is there:
    an interrupted run can be continued, also by other workers. Only the current parts are in
    memory. texts: opens them anew, from the first on. n_texts: how many to read, from the first on;
    None = all. part: the texts of a part. ray: the address of a Ray cluster, see `by_ray`; None for
    processes of this machine. told(n): n more texts are done. progress: whether a bar is shown on
    stderr. Without any text the summary is `Summary.nothing()`.
    """
    corpus = Corpus(model=name, texts=texts, n_texts=n_texts, n_ablated=n_ablated, part=part)
    folder.mkdir(parents=True, exist_ok=True)
    if ray is not None:
        parts = by_ray(corpus, folder, workers, ray)
    else:
        parts = by_one(corpus, folder) if workers == 1 else by_processes(corpus, folder, workers)
    paths = []
    with progress_bar(name, n_texts, progress, unit="text") as bar:
        for path, n_done in parts:
            paths.append(path)
            bar.update(n_done)
            told(n_done)
    return reduce(add, map(Summary.load, sorted(paths)), Summary.nothing())

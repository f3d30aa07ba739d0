"""The parts of a corpus by a Ray cluster: of this machine, or of many.

One task reads the texts on the machine of the command; a pool of actors works on the parts, each
with the model; the command writes their summaries to its own folder. So no disk is shared.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from transformer.analysis.corpus.parts import Corpus, Done, Part
from transformer.analysis.corpus.summary import write_whole
from transformer.checks import needs_package
from transformer.inference.model import load

LOCAL = "local"  # a cluster of this machine, for this run alone
READER_CPUS = 0.1  # reading waits for the workers


def by_ray(corpus: Corpus, folder: Path, workers: int, address: str) -> Iterator[Done]:
    """Yield every part of a corpus once its summary is in the folder; existing summaries are kept.

    address: LOCAL, or a running cluster's ("auto", "HOST:PORT"), of which this machine is one. The
    other machines need this package, nothing else. A worker that dies is started again, and its
    part retried. Raises ValueError without the package ray.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        import ray.data
    except ImportError:
        raise ValueError(needs_package("--ray", "ray[data]")) from None
    model = load(corpus.model)
    with _cluster(ray, workers, address), _settings(ray):
        here = {"ray.io/node-id": ray.get_runtime_context().get_node_id()}
        there = frozenset(path.name for path in folder.glob("part-*.npz"))
        parts = ray.data.read_datasource(
            _source(corpus, there), override_num_blocks=1, num_cpus=READER_CPUS,
            label_selector=here,
        )  # fmt: skip
        pool = ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=2)
        found = parts.map_batches(
            Worker, fn_constructor_args=(ray.put(model),), batch_size=1, batch_format="pyarrow",
            compute=pool, num_cpus=1,
        )  # fmt: skip
        try:
            for row in found.iter_rows():
                if row["summary"]:
                    write_whole(folder / row["file"], row["summary"])
                yield folder / row["file"], row["n_texts"]
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, OSError | ValueError):
                raise error.cause from None
            raise


class Worker:
    """An actor: the summaries of the parts that it is given."""

    def __init__(self, model: Any) -> None:
        import ray

        torch.set_num_threads(1)
        self.model = ray.get(model)

    def __call__(self, parts: Any) -> dict[str, list[Any]]:
        """Columns of `_rows` -> file, n_texts, summary (b"" for a part that was there)."""
        rows = parts.to_pylist()
        return {
            "file": [row["file"] for row in rows],
            "n_texts": [row["n_texts"] for row in rows],
            "summary": [self._summary(row) for row in rows],
        }

    def _summary(self, row: dict[str, Any]) -> bytes:
        if not row["texts"]:
            return b""
        texts = tuple(text.decode(errors="surrogatepass") for text in row["texts"])
        part = Part(start=row["start"], texts=texts, n_ablated=row["n_ablated"])
        return part.summary(self.model).packed()


def _rows(corpus: Corpus, there: frozenset[str]) -> Iterator[Any]:
    """Each part as a table of one row; without its texts if its summary is there."""
    import pyarrow as pa

    schema = pa.schema(
        {
            "file": pa.string(), "start": pa.int64(), "n_ablated": pa.int64(),
            "n_texts": pa.int64(), "texts": pa.list_(pa.binary()),
        }
    )  # fmt: skip
    for part in corpus.parts():
        file = part.path(Path(), corpus.model).name
        texts = [] if file in there else [_bytes(text) for text in part.texts]
        row = {
            "file": file, "start": part.start, "n_ablated": part.n_ablated,
            "n_texts": len(part.texts), "texts": texts,
        }  # fmt: skip
        yield pa.Table.from_pylist([row], schema)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _source(corpus: Corpus, there: frozenset[str]) -> Any:
    """The rows as Ray reads them: by one task, which waits while the workers have enough."""
    from ray.data import Datasource, ReadTask
    from ray.data.block import BlockMetadata

    class Parts(Datasource):
        def estimate_inmemory_data_size(self) -> None:
            return None

        def get_read_tasks(self, *_: Any, **__: Any) -> list[Any]:
            unknown = BlockMetadata(
                num_rows=None, size_bytes=None, input_files=None, exec_stats=None
            )
            return [ReadTask(lambda: _rows(corpus, there), unknown)]

    return Parts()


@contextmanager
def _cluster(ray: Any, workers: int, address: str) -> Iterator[None]:
    """Join a cluster for the duration of the work; one that was joined before stays joined."""
    if ray.is_initialized():
        yield
        return
    own = {
        "num_cpus": workers + 1, "include_dashboard": False,
        # Ray's default is 15: its workers would get little time next to any other program.
        "_system_config": {"worker_niceness": 0},
    }  # fmt: skip
    ray.init(
        address=address, log_to_driver=False, logging_level=logging.ERROR,
        **(own if address == LOCAL else {}),
    )  # fmt: skip
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _settings(ray: Any) -> Iterator[None]:
    """One part per block, so that each part has one worker; and no output of Ray."""
    logger = logging.getLogger("ray.data")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        # Ray's own defaults
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="ray.data.context")
        # of a corpus with fewer parts than workers
        warnings.filterwarnings("ignore", message="The minimum number of concurrent actors")
        context = ray.data.DataContext.get_current().copy()
        context.target_max_block_size = 1  # byte: a block ends with its first row
        context.enable_progress_bars = False
        try:
            with ray.data.DataContext.current(context):
                yield
        finally:
            logger.setLevel(level)

"""Several texts read at once, as data: a Batch. It can be plotted, saved and loaded again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from torch import Tensor

from transformer.checks import check_whole
from transformer.model.config import ModelConfig
from transformer.model.trace import Trace
from transformer.runs import archive
from transformer.runs.archive import Place, Values
from transformer.runs.compact_trace import cloned, row_of
from transformer.runs.drawing import Drawable
from transformer.runs.request import Request, request_from_dict, request_to_dict
from transformer.runs.run import Run, rebuilt

OF_BATCH = "batch"  # the array of an NPZ that contains all other values as JSON
_TENSORS = ("ids", "padding", "target_ids", "target_padding")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Batch(Drawable):
    """Several texts read at once, padded to one length on the right.

    ids, labels, padding: (B, T) int64, B rows of T labels, (B, T) bool (True = a token, no
    padding), of an encoder-decoder's encoder or of the only stack. target_*: those of an
    encoder-decoder's decoder. outputs: the translations, if there are any. request: with what all
    of them were read, as for the first text; stopped: as of a Run.
    trace: (B, H, Tq, Tk) records with the combined masks that were used. logits: as of a Run.
    """

    model: str
    config: ModelConfig
    texts: tuple[str, ...]
    request: Request
    ids: Tensor
    labels: tuple[tuple[str, ...], ...]
    padding: Tensor
    trace: Trace
    target_ids: Tensor | None = None
    target_labels: tuple[tuple[str, ...], ...] = ()
    target_padding: Tensor | None = None
    outputs: tuple[str, ...] = ()
    logits: Tensor | None = None
    stopped: str = "read"

    def __repr__(self) -> str:
        """One line."""
        n_rows, width = self.ids.shape
        return (
            f"<Batch of {self.model!r}: {n_rows} texts, padded to {width} tokens; "
            f"attention at {len(self.trace.sites)} sites>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy with cloned tensors."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return rebuilt, (type(self), values | {"trace": cloned(self.trace)})

    def queries(self, stack: str, row: int) -> tuple[str, ...]:
        """Labels of the tokens that a stack read for one text: the rows of its attention."""
        return self.target_labels[row] if self._is_target(stack) else self.labels[row]

    def keys(self, stack: str, kind: str, row: int) -> tuple[str, ...]:
        """Labels of the tokens that this attention reads: its columns."""
        return self.queries("encoder" if kind == "cross" else stack, row)

    def is_token(self, stack: str) -> Tensor:
        """(B, T) bool: which positions of a stack are tokens and not padding."""
        if self._is_target(stack):
            assert self.target_padding is not None
            return self.target_padding
        return self.padding

    def _is_target(self, stack: str) -> bool:
        return stack == "decoder" and self.target_ids is not None

    def __len__(self) -> int:
        """The number of texts."""
        return len(self.texts)

    def __iter__(self) -> Iterator[Run]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, row: int) -> Run:
        """One of its texts as a Run, its padding included. Raises ValueError for no such row."""
        check_whole("row", row, 0, len(self.texts) - 1)
        both = self.target_ids is not None
        ids = self.target_ids if self.target_ids is not None else self.ids
        labels = (self.target_labels if both else self.labels)[row]
        return Run(
            model=self.model,
            config=self.config,
            request=replace(self.request, text=self.texts[row]),
            ids=tuple(ids[row].tolist()),
            labels=labels,
            n_prompt=len(labels),
            source_ids=tuple(self.ids[row].tolist()) if both else (),
            source_labels=self.labels[row] if both else (),
            text=self.outputs[row] if self.outputs else self.texts[row],
            stopped=self.stopped,
            trace=row_of(self.trace, row),
            logits=None if self.logits is None else self.logits[row, None],
        )

    def to_npz(self, place: Place) -> None:
        """Write a compressed NPZ: the arrays of a run with one more axis, B, and `ids`, `padding`,
        `target_ids`, `target_padding` (B, T). Raises OSError if it cannot be written.
        """
        own = {name: getattr(self, name) for name in _TENSORS if getattr(self, name) is not None}
        arrays = {name: archive.array_of(value) for name, value in own.items()}
        values: Values = {
            "schema": archive.BATCH_SCHEMA,
            "model": self.model,
            "config": self.config.to_dict(),
            "texts": self.texts,
            "request": request_to_dict(self.request),
            "stopped": self.stopped,
            "labels": self.labels,
            "target_labels": self.target_labels,
            "outputs": self.outputs,
            "sites": [str(site) for site in self.trace.sites],
        }
        arrays |= archive.trace_arrays(self.trace, archive.IN_NPZ)
        archive.write_npz(place, OF_BATCH, values, arrays)


def read_batch(place: Place) -> Batch:
    """The batch of an NPZ. Raises OSError if it cannot be read, ValueError if it holds no batch."""
    values, tensors = archive.read_npz(place, OF_BATCH, archive.BATCH_SCHEMA, _TENSORS)
    with archive.whole():
        return Batch(
            model=values["model"],
            config=ModelConfig.from_dict(values["config"]),
            texts=tuple(values["texts"]),
            request=request_from_dict(values["request"]),
            stopped=values["stopped"],
            labels=tuple(map(tuple, values["labels"])),
            target_labels=tuple(map(tuple, values["target_labels"])),
            outputs=tuple(values["outputs"]),
            trace=archive.trace_of(values["sites"], tensors, lambda x: x),
            **{name: tensors[name] for name in _TENSORS if name in tensors},
        )

"""A Run (one text) or a Batch (several, padded) that draws itself and writes itself to disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from transformer.checks import check_whole
from transformer.runs import archive, batch_archive
from transformer.runs.compact_trace import row_of
from transformer.runs.data import BatchData, RunData
from transformer.runs.drawing import Drawable, pictures
from transformer.runs.request import Request


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Run(RunData, Drawable):
    """All that a view needs of one generation (or of one text that was only read), see RunData."""

    def to_json(self, *, attention: bool = True) -> str:
        """The run as JSON, see `archive.to_json`."""
        return archive.to_json(self, attention=attention)

    def to_npz(self, path: str | Path) -> None:
        """The run as NPZ, see `archive.write_npz`. Raises OSError if it cannot be written."""
        archive.write_npz(self, path)

    def to_html(self, path: str | Path) -> None:
        """The run as one page that works offline. Raises OSError if it cannot be written."""
        pictures().save_page(self, path)

    def _repr_html_(self) -> str:
        """What a notebook shows of it."""
        return pictures().html(self)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Batch(BatchData, Drawable):
    """Several texts read at once, padded to one length, see BatchData."""

    def alone(self, row: int) -> Run:
        """One of its texts as a Run, its padding included. Raises ValueError for no such row."""
        check_whole("row", row, 0, len(self.texts) - 1)
        both = self.target_ids is not None
        ids = self.target_ids if self.target_ids is not None else self.ids
        labels = (self.target_labels if both else self.labels)[row]
        return Run(
            model=self.model,
            config=self.config,
            request=Request(text=self.texts[row], max_new_tokens=0),
            ids=tuple(ids[row].tolist()),
            labels=labels,
            n_prompt=len(labels),
            source_ids=tuple(self.ids[row].tolist()) if both else (),
            source_labels=self.labels[row] if both else (),
            text=self.outputs[row] if self.outputs else self.texts[row],
            steps=(),
            stopped="read",
            trace=row_of(self.trace, row),
            trace_start=0,
            position_matrices={},
            candidate_labels={},
        )

    def to_npz(self, path: str | Path) -> None:
        """The batch as NPZ, see `batch_archive.write_npz`. OSError if it cannot be written."""
        batch_archive.write_npz(self, path)

    def to_html(self, path: str | Path) -> None:
        """One page that works offline, with all its texts. OSError if it cannot be written."""
        pictures().save_page(self, path)

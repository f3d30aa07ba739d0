"""Several texts read at once, as data: a Batch. It can be plotted, saved and loaded again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, overload

from torch import Tensor

from transformer.checks import check_whole, is_whole
from transformer.interventions.descriptions import reads_padding
from transformer.model.config import ModelConfig
from transformer.model.trace import Trace
from transformer.runs import archive
from transformer.runs.archive import PathOrFile, Values
from transformer.runs.compact_trace import cloned, row_of
from transformer.runs.drawing import Drawable
from transformer.runs.request import Request, request_from_dict, request_to_dict
from transformer.runs.run import PADDING_READ, Run, rebuilt

OF_BATCH = "batch"  # the array of an NPZ that contains all other values as JSON
_TENSORS = ("ids", "padding", "target_ids", "target_padding", "token_types")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Batch(Drawable):
    """Several texts read at once, padded to one length on the right.

    ids, labels, padding: (B, T) int64, B rows of T labels, (B, T) bool (True = a token, no
    padding), of an encoder-decoder's encoder or of the only stack. target_*: those of an
    encoder-decoder's decoder. token_types: (B, T) int64, an encoder's; None where all are 0.
    outputs: the translations, if there are any. request: how all of them were read, as a request
    for the first text; stopped: as in a Run. trace: (B, H, Tq, Tk) records with the combined masks
    that were used. special_ids, position_matrices, logits, weights, altered_by: as in a Run.
    A row, `batch[0]` or `batch[-1]`, is the run of that text alone, without the padding; a slice is
    a list of such runs.
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
    token_types: Tensor | None = None
    outputs: tuple[str, ...] = ()
    logits: Tensor | None = None
    stopped: str = "read"
    special_ids: tuple[int, ...] = ()
    position_matrices: dict[str, Tensor] = field(default_factory=dict)
    weights: str | None = None
    altered_by: str | None = None

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
        matrices = {key: x.detach().clone() for key, x in self.position_matrices.items()}
        values |= {"trace": cloned(self.trace), "position_matrices": matrices}
        return rebuilt, (type(self), values)

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

    @property
    def attentions(self) -> tuple[Tensor, ...]:
        """Each layer's weights in the last stack's self-attention, (B, H, T, T), as transformers
        has them; padding, see `is_token`, is not read."""
        return tuple(self.trace.weights(self.trace.sites[-1].stack))

    @property
    def hidden_states(self) -> tuple[Tensor, ...]:
        """The last stack's residual stream, (B, T, C), as in a Run; at padding, see `is_token`, its
        numbers mean nothing."""
        return tuple(self.trace.residuals[self.trace.sites[-1].stack])

    @overload
    def __getitem__(self, row: int) -> Run: ...
    @overload
    def __getitem__(self, row: slice) -> list[Run]: ...
    def __getitem__(self, row: int | slice) -> Run | list[Run]:
        """One of its texts as the run of that text alone, without the padding; with it where the
        network read padding as text. Negative rows count from the end. Raises ValueError for a row
        that is not there."""
        n_texts = len(self.texts)
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(n_texts))]
        if is_whole(row) and -n_texts <= row < 0:
            row += n_texts
        row = check_whole("row", row, 0, n_texts - 1)
        both = self.target_ids is not None
        padded = any(map(reads_padding, self.request.interventions))
        last = self.trace.sites[-1].stack
        spans = {
            stack: slice(None) if padded else _span(self.is_token(stack)[row])
            for stack in (("encoder", last) if both else (last,))
        }
        own, source = spans[last], spans.get("encoder", slice(None))
        ids = self.target_ids if self.target_ids is not None else self.ids
        labels = (self.target_labels if both else self.labels)[row][own]
        logits = None if self.logits is None else self.logits[row, None]
        present = {*ids[row, own].tolist(), *(self.ids[row, source].tolist() if both else ())}
        return Run(
            model=self.model,
            config=self.config,
            request=self._request_of(row),
            ids=tuple(ids[row, own].tolist()),
            labels=labels,
            n_prompt=len(labels),
            source_ids=tuple(self.ids[row, source].tolist()) if both else (),
            source_labels=self.labels[row][source] if both else (),
            special_ids=tuple(index for index in self.special_ids if index in present),
            text=self.outputs[row] if self.outputs else self.texts[row],
            stopped=self.stopped,
            trace=row_of(self.trace, row, spans),
            position_matrices=self.position_matrices,
            logits=logits if logits is None or logits.dim() < 3 else logits[:, own],
            weights=self.weights,
            altered_by=PADDING_READ if padded and not self._is_even else self.altered_by,
        )

    def _request_of(self, row: int) -> Request:
        text = self.texts[row]
        if not self.request.input_ids:
            return replace(self.request, text=text)
        real, types = self.padding[row], self.token_types
        return replace(
            self.request,
            text=text,
            input_ids=self.ids[row][real].tolist(),
            token_type_ids=() if types is None else types[row][real].tolist(),
        )

    @property
    def _is_even(self) -> bool:
        """Whether there is no padding."""
        tokens = (
            [self.padding] if self.target_padding is None else [self.padding, self.target_padding]
        )
        return all(bool(each.all()) for each in tokens)

    def to_npz(self, place: PathOrFile) -> None:
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
            "special_ids": self.special_ids,
            "weights": self.weights,
            "altered_by": self.altered_by,
            "sites": [str(site) for site in self.trace.sites],
        }
        arrays |= archive.trace_arrays(self.trace, archive.IN_NPZ)
        for stack, matrix in self.position_matrices.items():
            arrays[f"position_matrix/{stack}"] = archive.array_of(matrix)
        archive.write_npz(place, OF_BATCH, values, arrays)


def _span(is_token: Tensor) -> slice:
    """Where a row's tokens are, between padding on either side."""
    places = is_token.nonzero()[:, 0].tolist()
    return slice(places[0], places[-1] + 1) if places else slice(0, 0)


def read_batch(place: PathOrFile) -> Batch:
    """The batch in an NPZ. Raises OSError if it cannot be read, ValueError if it holds no batch."""
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
            special_ids=tuple(values.get("special_ids", ())),
            weights=values.get("weights"),
            altered_by=values.get("altered_by"),
            position_matrices=archive.named(tensors, "position_matrix/"),
            trace=archive.trace_of(values["sites"], tensors, lambda x: x),
            **{name: tensors[name] for name in _TENSORS if name in tensors},
        )

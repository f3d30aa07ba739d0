"""What happened once, as data: of one text (RunData), or of several that were padded (BatchData).

`run.Run` and `run.Batch` are these with what draws and writes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.trace import Trace
from transformer.runs.candidates import GenerationStep
from transformer.runs.compact_trace import own
from transformer.runs.request import Request
from transformer.runs.search import Search

REPR_CHARACTERS = 40  # of the text


def _made(kind: Any, values: dict[str, Any]) -> Any:
    return kind(**values)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Lens:
    """What each layer would have said: the model's head put on every residual stream.

    Row 0 is the input of the last stack, row l what layer l - 1 made; the last row is the model's
    own prediction. ids, probabilities: (L + 1, T, K), the K likeliest next tokens, best first.
    """

    ids: Tensor
    probabilities: Tensor


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False, weakref_slot=True)
class RunData:
    """All that a view needs of one generation (or of one text that was only read).

    ids: every token of the text the decoder read, the leading end-of-text token included;
    ids[:n_prompt] were given, the rest generated. labels: the same as shown to people.
    trace: one pass over the last max_len of ids (an encoder-decoder's first max_len, with the
    whole source); `trace_start` is the index of its first token.
    source_ids, source_labels: what an encoder read, empty without one.
    stopped: "end" (the model ended its text), "length", "cancelled", "time" (a server's limit was
    reached), "read" (nothing generated), or "given" (attention of somebody's own model).
    candidate_labels: the label of every token that is a candidate of some step or layer, by id.
    surprise: for each traced token of the text, -log2 of the probability that the network gave it;
    None for the first, which nothing foresaw, and for all of an encoder's.
    lens: for each traced token, what each layer would have said comes next (an encoder: stands
    there). Both take the network: None until `analysis.with_lens` has worked them out.
    search: of a beam search; ids, text and steps are those of its best hypothesis.
    engine: what generated and traced it, "compiled", "packed" or the "network"; None if not known.
    read_as: the text as it was read, where quotes and spaces were made plain; else None.
    doubts: sentences on what in the text the model never learned to read.
    """

    model: str
    config: ModelConfig
    request: Request
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    n_prompt: int
    source_ids: tuple[int, ...]
    source_labels: tuple[str, ...]
    text: str
    steps: tuple[GenerationStep, ...]
    stopped: str
    trace: Trace
    trace_start: int
    position_matrices: dict[str, Tensor]
    candidate_labels: Mapping[int, str]
    surprise: Sequence[float | None] | None = None
    lens: Lens | None = None
    search: Search | None = None
    engine: str | None = None
    read_as: str | None = None
    doubts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line; everything else has a name of its own."""
        text, n = self.request.text, len(self.ids)
        shown = text if len(text) <= REPR_CHARACTERS else f"{text[:REPR_CHARACTERS]}…"
        config = self.config
        return (
            f"<{type(self).__name__} of {self.model!r}: {shown!r}, {n} tokens, {n - self.n_prompt} "
            f"of them new ({self.stopped}); {config.n_layers} layers x {config.n_heads} heads>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied in tensors of its own."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        matrices = {key: x.detach().clone() for key, x in self.position_matrices.items()}
        values |= {"trace": own(self.trace), "position_matrices": matrices}
        return _made, (type(self), values)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The labels: one for each id."""
        return self.labels

    def queries(self, stack: str) -> tuple[str, ...]:
        """Labels of a stack's own traced tokens: the rows of its attention."""
        if stack == "encoder" and self.config.family == "encoder-decoder":
            return self.source_labels
        return self.labels[self.trace_start :][: self.config.output_max_len]

    def keys(self, stack: str, kind: str) -> tuple[str, ...]:
        """Labels of the tokens that this attention reads: its columns."""
        return self.queries("encoder" if kind == "cross" else stack)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False, weakref_slot=True)
class BatchData:
    """Several texts read at once, padded to one length.

    ids, labels, padding: (B, T) int64, B rows of T labels, (B, T) bool (True = a token, no
    padding): what an encoder-decoder's encoder read, else what the only stack read. target_*: the
    same for what an encoder-decoder's decoder read. Padding stands on the right.
    outputs: the translations, if there are any.
    trace: (B, H, Tq, Tk) records with the combined masks that were used.
    """

    model: str
    config: ModelConfig
    texts: tuple[str, ...]
    ids: Tensor
    labels: tuple[tuple[str, ...], ...]
    padding: Tensor
    trace: Trace
    target_ids: Tensor | None = None
    target_labels: tuple[tuple[str, ...], ...] = ()
    target_padding: Tensor | None = None
    outputs: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line; everything else has a name of its own."""
        n_rows, width = self.ids.shape
        return (
            f"<{type(self).__name__} of {self.model!r}: {n_rows} texts, padded to {width} tokens; "
            f"attention at {len(self.trace.sites)} sites>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied in tensors of its own."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return _made, (type(self), values | {"trace": own(self.trace)})

    def queries(self, stack: str, row: int) -> tuple[str, ...]:
        """Labels of the tokens that a stack read for one text: the rows of its attention."""
        return self.target_labels[row] if self._is_target(stack) else self.labels[row]

    def keys(self, stack: str, kind: str, row: int) -> tuple[str, ...]:
        """Labels of the tokens that this attention reads: its columns."""
        return self.queries("encoder" if kind == "cross" else stack, row)

    def real(self, stack: str) -> Tensor:
        """(B, T) bool: which of the places that a stack read are tokens and not padding."""
        if self._is_target(stack):
            assert self.target_padding is not None
            return self.target_padding
        return self.padding

    def _is_target(self, stack: str) -> bool:
        return stack == "decoder" and self.target_ids is not None

"""What happened once: a Run (one text) or a Batch (several, padded). All that a view needs."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from transformer.inference.generation import GenerationStep
from transformer.inference.request import Request
from transformer.model.config import ModelConfig
from transformer.model.trace import Trace


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Run:
    """All that a view needs of one generation (or of one text that was only read).

    ids: every token of the text the decoder read, the leading end-of-text token included;
    ids[:n_prompt] were given, the rest generated. labels: the same as shown to people.
    trace: one pass over the last max_len of ids; `trace_start` is the index of its first token.
    source_ids, source_labels: what an encoder read, empty without one.
    stopped: "end" (the model ended its text), "length", "cancelled", or "read" (nothing generated).
    candidate_labels: the label of every token that is a candidate of some step, by id.
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
    candidate_labels: dict[int, str]

    @property
    def tokens(self) -> tuple[str, ...]:
        """The labels: one for each id."""
        return self.labels

    def queries(self, stack: str) -> tuple[str, ...]:
        """Labels of a stack's own traced tokens: the rows of its attention."""
        if stack == "encoder" and self.config.family == "encoder-decoder":
            return self.source_labels
        return self.labels[self.trace_start :]

    def keys(self, stack: str, kind: str) -> tuple[str, ...]:
        """Labels of the tokens that this attention reads: its columns."""
        return self.queries("encoder" if kind == "cross" else stack)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batch:
    """Several texts read at once, padded to one length.

    ids: (B, T) int64, padded on the right; labels: B rows of T labels, padding included.
    trace: (B, H, T, T) records with the combined masks that were used.
    """

    model: str
    texts: tuple[str, ...]
    ids: Tensor
    labels: tuple[tuple[str, ...], ...]
    padding: Tensor  # (B, T) bool, True = real token
    trace: Trace

"""What happened once: a Run (one text) or a Batch (several, padded). All that a view needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from transformer.inference.beam import BeamNode, Hypothesis
from transformer.inference.generation import GenerationStep
from transformer.inference.pictures import Drawable, pictures
from transformer.inference.request import Request
from transformer.model.config import ModelConfig
from transformer.model.trace import Trace


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """A beam search: what it found, best first, and the tree that it grew.

    texts: the hypotheses as text, in the same order. tree: by step, every extension that was
    weighed; the labels of its tokens are in the run's `candidate_labels`.
    """

    hypotheses: tuple[Hypothesis, ...]
    texts: tuple[str, ...]
    tree: tuple[tuple[BeamNode, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Lens:
    """What each layer would have said: the model's head put on every residual stream.

    Row 0 is the input of the last stack, row l what layer l - 1 made; the last row is the model's
    own prediction. ids, probabilities: (L + 1, T, K), the K likeliest next tokens, best first.
    """

    ids: Tensor
    probabilities: Tensor


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Run(Drawable):
    """All that a view needs of one generation (or of one text that was only read).

    ids: every token of the text the decoder read, the leading end-of-text token included;
    ids[:n_prompt] were given, the rest generated. labels: the same as shown to people.
    trace: one pass over the last max_len of ids (an encoder-decoder's first max_len, with the
    whole source); `trace_start` is the index of its first token.
    source_ids, source_labels: what an encoder read, empty without one.
    stopped: "end" (the model ended its text), "length", "cancelled", "time" (a server's limit was
    reached), or "read" (nothing generated).
    candidate_labels: the label of every token that is a candidate of some step or layer, by id.
    surprise: for each traced token of the text, -log2 of the probability that the network gave it;
    None for the first, which nothing foresaw, and for all of an encoder's.
    lens: for each traced token, what each layer would have said comes next (an encoder: stands
    there).
    search: of a beam search; ids, text and steps are those of its best hypothesis.
    engine: what generated and traced it, "compiled", "packed" or the "network"; None if not known.
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
    surprise: Sequence[float | None]
    lens: Lens
    search: Search | None = None
    engine: str | None = None

    @property
    def tokens(self) -> tuple[str, ...]:
        """The labels: one for each id."""
        return self.labels

    def queries(self, stack: str) -> tuple[str, ...]:
        """Labels of a stack's own traced tokens: the rows of its attention."""
        if stack == "encoder" and self.config.family == "encoder-decoder":
            return self.source_labels
        return self.labels[self.trace_start :][: self.config.max_len]

    def keys(self, stack: str, kind: str) -> tuple[str, ...]:
        """Labels of the tokens that this attention reads: its columns."""
        return self.queries("encoder" if kind == "cross" else stack)

    def to_json(self, *, attention: bool = True) -> str:
        """The run as JSON, see `archive.to_json`."""
        from transformer.inference import archive

        return archive.to_json(self, attention=attention)

    def to_npz(self, path: str | Path) -> None:
        """The run as NPZ, see `archive.write_npz`. Raises OSError if it cannot be written."""
        from transformer.inference import archive

        archive.write_npz(self, path)

    def to_html(self, path: str | Path) -> None:
        """The run as one page that works offline. Raises OSError if it cannot be written."""
        pictures().save_page(self, path)

    def _repr_html_(self) -> str:
        """What a notebook shows of it."""
        return pictures().html(self)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batch(Drawable):
    """Several texts read at once, padded to one length.

    ids, labels, padding: (B, T) int64, B rows of T labels, (B, T) bool (True = a token, no
    padding): what an encoder-decoder's encoder read, else what the only stack read. target_*: the
    same for what an encoder-decoder's decoder read. Padding stands on the right.
    outputs: the translations, if there are any.
    trace: (B, H, Tq, Tk) records with the combined masks that were used.
    """

    model: str
    texts: tuple[str, ...]
    ids: Tensor
    labels: tuple[tuple[str, ...], ...]
    padding: Tensor
    trace: Trace
    target_ids: Tensor | None = None
    target_labels: tuple[tuple[str, ...], ...] = ()
    target_padding: Tensor | None = None
    outputs: tuple[str, ...] = ()

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

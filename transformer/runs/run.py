"""One generated or read text, as data: a Run. It can be plotted, saved and loaded again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.trace import Trace
from transformer.runs import archive
from transformer.runs.archive import Arrays, PathOrFile, Values
from transformer.runs.compact_trace import cloned
from transformer.runs.drawing import DrawableRun
from transformer.runs.request import Request, request_from_dict, request_to_dict
from transformer.runs.steps import GenerationStep, Search, search_from_dict, step_from_dict

OWN_HOOKS, PADDING_READ = "own hooks", "padding read as text"  # what `Run.altered_by` may be
REPR_CHARACTERS = 40  # of the text
OF_RUN = "run"  # the array of an NPZ that contains all other values as JSON
# A run's fields that its JSON contains unchanged, and those that become lists.
_PLAIN = ("model", "n_prompt", "text", "stopped", "trace_start")
_LISTS = ("ids", "labels", "source_ids", "source_labels")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Lens:
    """The logit lens: predictions of the model's head from every layer's residual stream.

    Row 0 is the input of the last stack, row l the output of layer l - 1; the last row is the
    model's prediction. ids, probabilities: (L + 1, T, K), the K likeliest next tokens, best first.
    """

    ids: Tensor
    probabilities: Tensor

    def __repr__(self) -> str:
        """One line."""
        n_layers, n_tokens, n_best = self.ids.shape
        return f"<Lens: {n_best} likeliest of {n_layers - 1} layers at {n_tokens} tokens>"


def rebuilt(kind: Any, values: dict[str, Any]) -> Any:
    """Unpickle a dataclass from its fields."""
    return kind(**values)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Run(DrawableRun):
    """One generation, or one text that was only read.

    ids: every token that the decoder read, the leading end-of-text token included; ids[:n_prompt]
    are the prompt, the rest was generated. labels: the tokens as shown to people.
    trace: one pass over the last max_len of ids (an encoder-decoder's first max_len, with the
    whole source); `trace_start` is the index of its first token.
    source_ids, source_labels: the encoder's tokens, empty without one.
    special_ids: the special tokens among all these ids.
    stopped: "end" (the model ended its text), "stop" (it wrote a stop text), "length", "cancelled",
    "time" (a server's limit was reached), "read" (nothing generated), or "given" (attention from
    another tool).
    candidate_labels: labels of all candidates of steps and layers, by id.
    surprisal: for each traced token, -log2 of its predicted probability; None for the first, which
    nothing predicted, and for all of an encoder's.
    lens: each layer's prediction at each traced token. Both need the network: None until
    `analysis.with_lens` has computed them.
    search: the beam search, if it was one; ids, text and steps are those of its best hypothesis.
    engine: "compiled" or "network", which generated and traced it; None if not known.
    read_as: the text after its quotes and spaces were cleaned; None if it did not change.
    warnings: sentences about parts of the text that the model never learned to read, and names of
    special tokens in it.
    logits: the head's output at each token, (1, T, V); only in runs of `Model.trace`, not in files.
    weights: a short name of the network's weights, see `inference.engines.changes.digest`; None if
    not known. altered_by: what altered the network and is not in the request, so that no analysis
    can read the text again as it was read: the caller's own hooks, or padding read as text.
    """

    model: str
    config: ModelConfig
    request: Request
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    n_prompt: int
    text: str
    stopped: str
    trace: Trace
    source_ids: tuple[int, ...] = ()
    source_labels: tuple[str, ...] = ()
    special_ids: tuple[int, ...] = ()
    steps: tuple[GenerationStep, ...] = ()
    trace_start: int = 0
    position_matrices: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    candidate_labels: Mapping[int, str] = dataclasses.field(default_factory=dict)
    surprisal: Sequence[float | None] | None = None
    lens: Lens | None = None
    search: Search | None = None
    engine: str | None = None
    read_as: str | None = None
    warnings: tuple[str, ...] = ()
    logits: Tensor | None = None
    weights: str | None = None
    altered_by: str | None = None

    def __repr__(self) -> str:
        """One line."""
        text, n = self.request.text, len(self.ids)
        excerpt = text if len(text) <= REPR_CHARACTERS else f"{text[:REPR_CHARACTERS]}…"
        config = self.config
        return (
            f"<Run of {self.model!r}: {excerpt!r}, {n} tokens, {n - self.n_prompt} "
            f"of them new ({self.stopped}); {config.n_layers} layers x {config.n_heads} heads>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy with cloned tensors."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        matrices = {key: x.detach().clone() for key, x in self.position_matrices.items()}
        values |= {"trace": cloned(self.trace), "position_matrices": matrices}
        values["logits"] = None if self.logits is None else self.logits.clone()
        return rebuilt, (type(self), values)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The labels: one for each id."""
        return self.labels

    @property
    def attentions(self) -> tuple[Tensor, ...]:
        """Each layer's weights in the last stack's self-attention, (1, H, T, T), as transformers
        has them."""
        return tuple(self.trace.weights(self._last_stack))

    @property
    def hidden_states(self) -> tuple[Tensor, ...]:
        """The last stack's residual stream, (1, T, C), before its first layer and after each, as in
        transformers, except that the last is not normalised yet."""
        return tuple(self.trace.residuals[self._last_stack])

    @property
    def _last_stack(self) -> str:
        return self.trace.sites[-1].stack

    @property
    def new_text(self) -> str:
        """What was written after the prompt: the `new_text` of its steps."""
        return "".join(step.new_text for step in self.steps)

    def special_positions(self) -> dict[str, list[int]]:
        """The positions of special tokens in the text and in its source."""
        special = frozenset(self.special_ids)
        texts = {"special": self.ids, "source_special": self.source_ids}
        return {
            name: [at for at, index in enumerate(ids) if index in special]
            for name, ids in texts.items()
        }

    @property
    def reproducing_request(self) -> Request:
        """A request that reproduces this run, with its number of tokens if it was stopped early."""
        early = self.stopped in ("cancelled", "time") and self.search is None
        if not early:
            return self.request
        length = max(1, len(self.steps))
        forced = self.request.forced_tokens[:length]
        return dataclasses.replace(self.request, max_new_tokens=length, forced_tokens=forced)

    def queries(self, stack: str) -> tuple[str, ...]:
        """Labels of a stack's own traced tokens: the rows of its attention."""
        if stack == "encoder" and self.config.family == "encoder-decoder":
            return self.source_labels
        return self.labels[self.trace_start :][: self.config.output_max_len]

    def keys(self, stack: str, kind: str) -> tuple[str, ...]:
        """Labels of the tokens that this attention reads: its columns."""
        return self.queries("encoder" if kind == "cross" else stack)

    def to_json(self, *, attention: bool = True) -> str:
        """The run as one JSON text, see docs/library/run-format.md.

        attention=False leaves out the scores, weights and masks of all heads, nearly all of its
        size. The vectors behind them (queries, residual streams, ...) are in the NPZ form only.
        """
        arrays = self.arrays(archive.IN_JSON if attention else ())
        left_out = ("embed/", "pos_embed/", "residual/", "ids", "source_ids")
        rest = {name: x for name, x in arrays.items() if not name.startswith(left_out)}
        return archive.to_json(self.values(), rest)

    def to_npz(self, place: PathOrFile) -> None:
        """The run as a compressed NPZ. Raises OSError if it cannot be written."""
        archive.write_npz(place, OF_RUN, self.values(), self.arrays())

    def npz_bytes(self) -> int:
        """The size of the arrays before compression, in bytes, without making them."""
        n_heads, size = self.config.n_heads, self.config.d_head
        total = 0 if self.lens is None else self.lens.ids.nbytes + self.lens.probabilities.nbytes
        for stack, kind in self.trace.kinds():
            queries, keys = len(self.queries(stack)), len(self.keys(stack, kind))
            vectors = 4 * n_heads * size * (queries + 2 * keys)
            cells = queries * keys * (4 * 2 * n_heads + 1)
            total += self.config.n_layers_of(stack) * (vectors + cells)
        total += sum(matrix.nbytes for matrix in self.position_matrices.values())
        total += sum(2 * x.nbytes for x in self.trace.embed.values())
        return total + sum(x.nbytes for layers in self.trace.residuals.values() for x in layers)

    def arrays(self, of_site: Sequence[str] = archive.IN_NPZ) -> Arrays:
        """The run's arrays by name: `archive.trace_arrays` without the batch axis, and
        `position_matrix/STACK` (max_len, C), `lens/ids`, `lens/probabilities`, `ids`, `source_ids`.
        """
        arrays: Arrays = {"ids": np.array(self.ids, dtype=np.int64)}
        arrays["source_ids"] = np.array(self.source_ids, dtype=np.int64)
        arrays |= archive.trace_arrays(self.trace, of_site, lambda x: x[0])
        for stack, matrix in self.position_matrices.items():
            arrays[f"position_matrix/{stack}"] = archive.array_of(matrix)
        if self.lens is not None:
            arrays["lens/ids"] = archive.array_of(self.lens.ids)
            arrays["lens/probabilities"] = archive.array_of(self.lens.probabilities)
        return arrays

    def values(self) -> Values:
        """Everything but the arrays, as plain JSON values."""
        return {
            "schema": archive.SCHEMA,
            **{name: getattr(self, name) for name in (*_PLAIN, "read_as")},
            **{name: list(getattr(self, name)) for name in _LISTS},
            "config": self.config.to_dict(),
            "request": request_to_dict(self.request),
            "special_ids": list(self.special_ids),
            "doubts": list(self.warnings),
            "weights": self.weights,
            "altered_by": self.altered_by,
            "sites": [str(site) for site in self.trace.sites],
            "surprisal": None if self.surprisal is None else list(self.surprisal),
            "steps": [step.to_dict() for step in self.steps],
            "candidate_labels": {str(key): label for key, label in self.candidate_labels.items()},
            "search": None if self.search is None else self.search.to_dict(),
        }


def from_json(text: str) -> Run:
    """The run in a JSON text. Raises ValueError for another format, or if parts are missing."""
    return _read(*archive.from_json(text))


def read_npz(place: PathOrFile) -> Run:
    """The run in an NPZ. Raises OSError if it cannot be read, ValueError if it holds no run."""
    return _read(*archive.read_npz(place, OF_RUN))


def _read(values: Values, tensors: Mapping[str, Tensor]) -> Run:
    """The inverse of `Run.values` and `Run.arrays`."""
    with archive.whole():
        parts: dict[str, Any] = {name: values[name] for name in _PLAIN}
        parts |= {name: tuple(values[name]) for name in _LISTS}
        labels, lens = values["candidate_labels"], archive.named(tensors, "lens/")
        return Run(
            **parts,
            config=ModelConfig.from_dict(values["config"]),
            request=request_from_dict(values["request"]),
            read_as=values["read_as"],
            warnings=tuple(values["doubts"]),
            weights=values.get("weights"),
            altered_by=values.get("altered_by"),
            special_ids=tuple(values.get("special_ids", ())),
            steps=tuple(map(step_from_dict, values["steps"])),
            trace=archive.trace_of(values["sites"], tensors),
            position_matrices=archive.named(tensors, "position_matrix/"),
            candidate_labels={int(key): label for key, label in labels.items()},
            surprisal=None if values["surprisal"] is None else tuple(values["surprisal"]),
            lens=Lens(**lens) if lens else None,
            search=None if values["search"] is None else search_from_dict(values["search"]),
        )

"""Attention weights from another tool, as a Run or a Batch that can be drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from transformer.checks import shortened
from transformer.model.config import ModelConfig
from transformer.model.trace import AttentionRecord, Site, Trace
from transformer.runs.batch import Batch
from transformer.runs.request import Request
from transformer.runs.run import Run

GIVEN = "given"  # such a run's `stopped`: no model of this project made it
PADDING = "<|padding|>"
ROW_SUM = 0.02  # allowed difference of a row's sum from 1: half precision, truncated weights

Words = Sequence[str]
Sentences = list[list[str]]


def from_attention(
    weights: Any,
    tokens: Words | Sequence[Words],
    *,
    encoder: Any = None,
    cross: Any = None,
    source_tokens: Words | Sequence[Words] | None = None,
    causal: bool | None = None,
    name: str = "own attention",
) -> Run | Batch:
    """Turn attention weights from any tool into a Run or Batch to draw, measure and save.

    weights: (L, H, T, T) for one text, (L, B, H, T, T) for several, after softmax: a NumPy array, a
    tensor, or a sequence with an array for each layer, (H, T, T) or (B, H, T, T), like the
    `attentions` of Hugging Face's transformers. Those of its `generate` are joined, for one text
    without beams; they cover all tokens but the last, which the network never read.
    tokens: a list of strings, or for several texts one list each; shorter ones are padded on the
    right.
    For an encoder-decoder: weights are the decoder's self-attention; `encoder` and `cross` (Tq
    target by Tk source) need source_tokens; each may be None.
    causal: whether later tokens were hidden; None = if all weights above the diagonal are 0.

    Returns a Run for one text and a Batch for several. There are no queries, keys and values; the
    scores are the logarithms of the weights, whose softmax is the weights again. Raises ValueError
    for weights of another shape, negative or not finite weights, and rows that do not sum to 1 (or
    0).
    """
    both = encoder is not None or cross is not None or source_tokens is not None
    several = _are_several(tokens)
    targets = _sentences(tokens, several)
    sources = _sentences(source_tokens, several) if source_tokens is not None else []
    if both and not sources:
        raise ValueError("encoder and cross attention need source_tokens; got none")
    if weights is not None:
        weights = _stacked(weights, "self-attention")
    hidden = _is_causal(weights) if causal is None and weights is not None else bool(causal)
    stack = "decoder" if both or hidden else "encoder"
    kinds = [
        _Kind("encoder", "self", encoder, sources, sources, causal=False),
        _Kind(stack, "self", weights, targets, targets, causal=hidden),
        _Kind("decoder", "cross", cross, targets, sources, causal=False),
    ]
    records = {record.site: record for kind in kinds for record in kind.records()}
    if not records:
        raise ValueError("there are no weights to draw; needed: weights, encoder or cross")
    family = "encoder-decoder" if both else stack
    return _made(name, _config(family, records), Trace(records=records), targets, sources, several)


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of attention as given, with the tokens of its rows and columns."""

    stack: str
    kind: str
    given: Any
    queries: Sentences
    keys: Sentences
    causal: bool

    def records(self) -> Iterator[AttentionRecord]:
        if self.given is None:
            return
        # (L, B, H, Tq, Tk)
        weights = _stacked(self.given, f"{self.stack} {self.kind}-attention")
        shape = (len(self.queries), _longest(self.queries), _longest(self.keys))
        got = (weights.shape[1], *weights.shape[3:])
        if got != shape:
            raise ValueError(
                f"the {self.stack}'s {self.kind}-attention must be of {shape[0]} texts, "
                f"{shape[1]} query and {shape[2]} key tokens, as the tokens are; got {got[0]} "
                f"texts, {got[1]} queries and {got[2]} keys"
            )
        mask = self._mask(weights)
        for layer, each in enumerate(weights):
            yield AttentionRecord(
                site=Site(self.stack, layer, self.kind),
                scores=each.clamp_min(torch.finfo(each.dtype).tiny).log(),
                pattern=each,
                mask=mask,
            )

    def _mask(self, weights: Tensor) -> Tensor:
        """(B, 1, Tq, Tk), True = may attend."""
        n_queries, n_keys = weights.shape[3:]
        lengths = torch.tensor([len(row) for row in self.keys], device="cpu")
        real = torch.arange(n_keys, device="cpu") < lengths[:, None]
        order = torch.ones(n_queries, n_keys, dtype=torch.bool, device="cpu")
        return (order.tril() if self.causal else order) & real[:, None, None]


def _stacked(arrays: Any, what: str) -> Tensor:
    """Weights as (L, B, H, Tq, Tk) float32; raises ValueError for anything else."""
    if isinstance(arrays, np.ndarray | Tensor):
        layers: Any = arrays
    elif isinstance(arrays, Mapping) or not isinstance(arrays, Iterable):
        raise ValueError(
            f"the {what} must be arrays, as the attentions of an output; "
            f"got {type(arrays).__name__}"
        )
    else:
        layers = _joined(list(arrays), what)
    if len(layers) == 0 or any(layer is None for layer in layers):
        raise ValueError(
            f"the {what} has no weights at some layer; of Hugging Face's transformers, "
            "ask for attn_implementation='eager' and output_attentions=True"
        )
    try:
        weights = torch.stack([_tensor(layer) for layer in layers])
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"the {what} must be arrays of one shape a layer: {error}") from error
    if weights.dim() == 4:
        weights = weights[:, None]
    if weights.dim() != 5 or 0 in weights.shape:
        raise ValueError(
            f"the {what} must be (L, H, T, T) or (L, B, H, T, T); got {tuple(weights.shape)}"
        )
    masked = torch.nonzero(weights.isnan().all(dim=-1))
    if len(masked):
        layer, text, head, row = masked[0].tolist()
        raise ValueError(
            f"the {what} has rows of nan alone, the first at layer {layer}, text {text}, head "
            f"{head}, row {row}: a softmax gives them where padding masks every key; allowed: "
            "weights of 0 in such rows, or none of the padding"
        )
    sums = weights.sum(dim=-1)
    near = (sums - 1).abs().minimum(sums.abs()) <= ROW_SUM
    if not bool(weights.isfinite().all()) or bool((weights < 0).any()) or not bool(near.all()):
        raise ValueError(
            f"the {what} must be weights after softmax, of which each row sums to 1; got "
            f"values from {weights.min():g} to {weights.max():g}, and a row that sums to "
            f"{sums[~near][0] if not bool(near.all()) else 1:g}"
        )
    return weights


def _joined(weights: list[Any], what: str) -> list[Any]:
    """The layers' weights; those of `generate`, layers at each step, joined to whole maps."""
    if not weights or not all(isinstance(step, list | tuple) for step in weights):
        return weights
    if any(len(step) == 0 or any(layer is None for layer in step) for step in weights):
        return [None]
    if any(not isinstance(layer, np.ndarray | Tensor) or layer.ndim != 4 for layer in weights[0]):
        return weights  # layers as lists
    steps = [[_tensor(layer) for layer in step] for step in weights]
    joined = [_whole_map(list(parts)) for parts in zip(*steps, strict=False)]
    if len({len(step) for step in steps}) > 1 or any(layer is None for layer in joined):
        raise ValueError(
            f"the {what} of generate can be joined for one text without beams; needed: "
            "its attentions, or those of one pass over the whole text"
        )
    return joined


def _whole_map(parts: list[Tensor]) -> Tensor | None:
    """The rows (1, H, new, all so far) of all steps as one map; None if they do not fit together.

    Without a cache the last step has all rows. In cross-attention all steps have the same columns.
    """
    if any(part.shape[:2] != (1, parts[0].shape[1]) for part in parts):
        return None
    rows, columns = ([part.shape[dim] for part in parts] for dim in (2, 3))
    if len(parts) > 1 and rows == list(range(rows[0], rows[0] + len(parts))):
        return parts[-1]
    if len(set(columns)) > 1 and columns != np.cumsum(rows).tolist():
        return None
    return torch.cat([pad(part, (0, columns[-1] - part.shape[3])) for part in parts], dim=2)


def _tensor(layer: Any) -> Tensor:
    if not isinstance(layer, Tensor):
        layer = torch.from_numpy(np.array(layer, dtype=np.float32))
    return layer.detach().cpu().float()


def _is_causal(weights: Tensor) -> bool:
    """Whether there are weights above the diagonal and all of them are 0."""
    n_queries, n_keys = weights.shape[3:]
    return n_queries == n_keys > 1 and not bool(weights.triu(1).any())


def _are_several(tokens: Any) -> bool:
    """Whether these are the tokens of several texts. Raises ValueError unless it is a list."""
    if isinstance(tokens, str) or not isinstance(tokens, Sequence) or not tokens:
        raise ValueError(
            f"tokens must be a list of strings, or one list a text; got {shortened(tokens)}"
        )
    return not isinstance(tokens[0], str)


def _sentences(tokens: Any, several: bool) -> Sentences:
    rows = list(tokens) if several else [tokens]
    for row in rows:
        if isinstance(row, str) or not isinstance(row, Sequence) or not row:
            raise ValueError(
                f"each text must be a list of at least one token; got {shortened(row)}"
            )
        if not all(isinstance(token, str) for token in row):
            raise ValueError(f"each token must be a string; got {shortened(row[0])} and the like")
    return [[_shown(token) for token in row] for row in rows]


def _shown(token: str) -> str:
    return token.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥") or "‹empty›"


def _longest(rows: Sentences) -> int:
    return max(map(len, rows), default=0)


def _config(family: str, records: dict[Site, AttentionRecord]) -> ModelConfig:
    """A configuration with as much of the network's shape as its attention reveals."""
    n_heads = max(record.pattern.shape[1] for record in records.values())
    longest = max(max(record.pattern.shape[2:]) for record in records.values())
    depth = {site.stack: 1 + site.layer for site in sorted(records)}
    n_layers = next(depth[stack] for stack in ("encoder", "decoder") if stack in depth)
    return ModelConfig(
        family=family, vocab_size=longest, d_model=2 * n_heads, n_heads=n_heads, d_ff=1,
        n_layers=n_layers, max_len=longest,
        target_n_layers=depth["decoder"] if family == "encoder-decoder" else None,
    )  # fmt: skip


def _made(
    name: str, config: ModelConfig, trace: Trace, targets: Sentences, sources: Sentences,
    several: bool,
) -> Run | Batch:  # fmt: skip
    texts = tuple(" ".join(row) for row in targets)
    request = Request(text=texts[0], max_new_tokens=0)
    if not several:
        source = tuple(sources[0]) if sources else ()
        return Run(
            model=name, config=config, request=request,
            ids=tuple(range(len(targets[0]))), labels=tuple(targets[0]), n_prompt=len(targets[0]),
            source_ids=tuple(range(len(source))), source_labels=source, text=texts[0],
            stopped=GIVEN, trace=trace,
        )  # fmt: skip
    read = sources or targets
    more: dict[str, Any] = {}
    if sources:
        more = {f"target_{key}": value for key, value in _padded(targets).items()}
    return Batch(
        model=name, config=config, texts=texts, request=request, trace=trace, stopped=GIVEN,
        **_padded(read), **more,
    )  # fmt: skip


def _padded(rows: Sentences) -> dict[str, Any]:
    width = _longest(rows)
    lengths = torch.tensor([len(row) for row in rows], device="cpu")
    return {
        "ids": torch.arange(width, device="cpu").expand(len(rows), -1),
        "labels": tuple((*row, *[PADDING] * (width - len(row))) for row in rows),
        "padding": torch.arange(width, device="cpu") < lengths[:, None],
    }

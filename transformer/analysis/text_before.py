"""The text before one token of a run, read again: many variants of it in one batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from transformer.checks import is_whole
from transformer.inference import deadline
from transformer.inference.loaded import LoadedModel
from transformer.messages import invalid
from transformer.model.hooks import Hook
from transformer.model.transformer import DecoderOnly, EncoderDecoder
from transformer.runs.run import Run

T = TypeVar("T")

MAX_WEIGHTS = 16_000_000  # attention weights of one layer that a batch of variants may take
MAX_OPERATIONS = 2e10  # of a batch, about 0.2 s on two cores: others may run between two of them


@dataclass(frozen=True, slots=True, eq=False)
class TextBefore:
    """What the network reads before one token of a run."""

    network: DecoderOnly | EncoderDecoder
    source: tuple[int, ...]
    ids: tuple[int, ...]

    @classmethod
    def of(cls, model: LoadedModel, run: Run, place: int) -> TextBefore:
        first = run.trace_start + 1
        last = min(len(run.ids), run.trace_start + run.config.output_max_len + 1) - 1
        if not is_whole(place) or not first <= place <= last:
            raise invalid(
                "the token must be one that the network predicted, at a place from "
                "{first} to {last}; got {got}",
                first=first,
                last=last,
                got=repr(place),
            )
        ids = run.ids[run.trace_start : place]
        return cls(model.generator_network, run.source_ids, ids)

    def log_probabilities(self, hooks: Sequence[Hook], n_rows: int = 1) -> Tensor:
        """(n_rows, V) of the next token, each row as the hooks alter it."""
        return self.logits(hooks, n_rows).log_softmax(dim=-1)

    def logits(self, hooks: Sequence[Hook], n_rows: int = 1) -> Tensor:
        """The same before the softmax."""
        device = self.network.device
        ids = torch.tensor([self.ids], device=device).expand(n_rows, -1)
        where = torch.zeros(ids.shape, dtype=torch.bool, device=device)
        where[:, -1] = True
        if isinstance(self.network, EncoderDecoder):
            source = torch.tensor([self.source], device=device).expand(n_rows, -1)
            logits = self.network(source, ids, where=where, hooks=hooks)
        else:
            logits = self.network(ids, where=where, hooks=hooks)
        return logits.float()

    @property
    def largest_batch(self) -> int:
        """Variants that are read at once."""
        longest = max(len(self.ids), len(self.source))
        n_weights = self.network.config.n_heads * longest**2
        n_parameters = sum(one.numel() for one in self.network.parameters())
        operations = 2 * n_parameters * (len(self.ids) + len(self.source))
        return max(1, min(MAX_WEIGHTS // n_weights, int(MAX_OPERATIONS // operations)))


def in_parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """At most `size` items at a time. Raises ValueError before one if the deadline has passed."""
    for start in range(0, len(items), size):
        deadline.check()
        yield items[start : start + size]

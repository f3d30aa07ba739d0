"""What the head says of a recorded text: each layer's prediction, and the surprise of each token.

For a large vocabulary this costs as much as generating the text, and most looks at a run need
neither, so both are worked out at the first look.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer.inference.later import Later
from transformer.inference.run import Lens
from transformer.model.changes import Changes
from transformer.model.trace import Trace
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly

LENS_KEPT = 5  # tokens of each layer's prediction

Network = DecoderOnly | EncoderOnly | EncoderDecoder


@dataclass(frozen=True, slots=True, eq=False)
class Readout:
    """A text's (T,) ids and their trace, with the network that made it, whose weights must stay."""

    network: Network
    trace: Trace
    ids: Tensor
    changes: Changes | None = None

    @torch.inference_mode()
    def lens(self) -> Lens:
        """The head's LENS_KEPT likeliest tokens for every residual stream of the last stack."""
        found = [
            self.network.lens(x, self.changes)[0].float().softmax(dim=-1).topk(LENS_KEPT)
            for x in self._streams
        ]
        return Lens(
            ids=torch.stack([best.indices for best in found]),
            probabilities=torch.stack([best.values for best in found]),
        )

    @torch.inference_mode()
    def surprise(self) -> tuple[float | None, ...]:
        """-log2 of the probability of each token, as the place before foresaw it.

        None for the first, and for all where the network is an encoder, which foresees nothing.
        """
        if isinstance(self.network, EncoderOnly):
            return (None,) * len(self.ids)
        logits = self.network.lens(self._streams[-1][:, :-1], self.changes)[0].float()
        nats = torch.nn.functional.cross_entropy(logits, self.ids[1:], reduction="none")
        return (None, *(nats / math.log(2)).tolist())

    @property
    def _streams(self) -> list[Tensor]:
        return self.trace.residuals[self.network.last_stack.name]


class LaterSurprise(Later[float | None]):
    """`Readout.surprise` at the first look."""

    def __init__(self, readout: Readout) -> None:
        self._readout = readout
        self._made: tuple[float | None, ...] = ()

    def all(self) -> tuple[float | None, ...]:
        """Every token's."""
        self._made = self._made or self._readout.surprise()
        return self._made

    def __len__(self) -> int:
        return len(self._readout.ids)


class LaterLens(Lens):
    """`Readout.lens` at the first look; pickled, a plain Lens."""

    __slots__ = ("_made", "_readout")
    _made: Lens | None
    _readout: Readout

    def __init__(self, readout: Readout) -> None:
        object.__setattr__(self, "_readout", readout)
        object.__setattr__(self, "_made", None)

    @property
    def made(self) -> Lens:
        """The lens itself."""
        made = self._made or self._readout.lens()
        object.__setattr__(self, "_made", made)
        return made

    @property
    def ids(self) -> Tensor:
        """(L + 1, T, K) int64."""
        return self.made.ids

    @property
    def probabilities(self) -> Tensor:
        """(L + 1, T, K) float32."""
        return self.made.probabilities

    def __reduce__(self) -> tuple[Any, ...]:
        return _lens, (self.ids, self.probabilities)


def _lens(ids: Tensor, probabilities: Tensor) -> Lens:
    return Lens(ids=ids, probabilities=probabilities)

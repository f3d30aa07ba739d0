"""What an engine is: a faster way to compute a decoder's next token, equal to the network."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import ClassVar, NamedTuple

from torch import Tensor

from transformer.inference.engines.buffers import Buffers
from transformer.inference.engines.changes import Fingerprint, is_as_configured
from transformer.model.config import ModelConfig
from transformer.model.transformer import DecoderOnly, EncoderDecoder


class Greedy(NamedTuple):
    """How a text continues if the likeliest token is always chosen.

    most: tokens to read, the first included. ends: tokens that end the text and are not read.
    never: a token that is never chosen.
    """

    most: int
    ends: Collection[int]
    never: int | None


class TextReader(ABC):
    """Reads the tokens of one text into its buffers."""

    @abstractmethod
    def read(self, tokens: Sequence[int], position: int) -> Tensor:
        """Read tokens, the first at this position: logits (V,) for the token after the last."""

    @abstractmethod
    def ahead(self, token: int, position: int, greedy: Greedy) -> list[tuple[int, Tensor]]:
        """Read a token, and tokens after it by greedy choice, each with the logits (V,) after
        it."""


class Engine(ABC):
    """Reads a network's weights once, and then texts. Shared by all texts.

    name: the engine as a run names it.
    """

    name: ClassVar[str]

    def __init__(self, network: DecoderOnly | EncoderDecoder) -> None:
        self.network, self._lock = network, threading.Lock()
        self._usable = True
        self._as_read = Fingerprint(network, self.read_weights())

    @classmethod
    @abstractmethod
    def supports(cls, config: ModelConfig) -> bool:
        """Whether it has the arithmetic that this configuration describes."""

    @classmethod
    @abstractmethod
    def missing(cls, network: DecoderOnly | EncoderDecoder) -> str | None:
        """What it needs that this network or machine lacks; None if nothing."""

    @abstractmethod
    def read_weights(self) -> Sequence[Tensor]:
        """Read the network's weights; returns those that it has copied.

        Texts already begun keep the weights read before. Raises ValueError for weights that it
        cannot read.
        """

    @property
    @abstractmethod
    def weights(self) -> Sequence[Tensor]:
        """The matrices that it reads: the network's, or smaller copies of them."""

    @property
    @abstractmethod
    def about(self) -> str:
        """How it reads the weights on this machine."""

    @abstractmethod
    def reader(self, buffers: Buffers) -> TextReader:
        """A reader of the text that these buffers belong to."""

    def refresh(self) -> bool:
        """Read the weights again if the network has changed; returns whether the engine computes
        what the network does now. Called when a text begins."""
        if not self._as_read.same:
            with self._lock:
                if not self._as_read.same:  # another thread may have done it
                    self._read_again()
        return self._usable and not self._as_read.is_hooked

    def _read_again(self) -> None:
        copied: Sequence[Tensor] = ()
        try:
            fits = self._as_read.same_parts or is_as_configured(self.network)
            self._usable = fits and self.missing(self.network) is None
            if self._usable:
                copied = self.read_weights()
        except ValueError:
            self._usable = False
        self._as_read = Fingerprint(self.network, copied)

"""The three families: decoder only, encoder only, encoder-decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypedDict, Unpack

from torch import Generator, Tensor

from transformer.model.blocks import Embedding, Stack
from transformer.model.cache import KeyValueCache
from transformer.model.config import ModelConfig, preset
from transformer.model.functional import given_mask
from transformer.model.hooks import ForwardContext, Hook
from transformer.model.network import (
    IGNORED,
    Transformer,
    mean_nats,
    text_mask,
    text_targets,
)
from transformer.model.trace import Trace


class OneStack(Transformer):
    """A network with one stack, which reads one text."""

    STACK: ClassVar[str]

    def __init__(self, config: ModelConfig, generator: Generator | None = None) -> None:
        super().__init__()
        self.embedding = Embedding(config, self.STACK)
        setattr(self, self.STACK, Stack(config, self.STACK))
        self._finish(config, self.embedding, generator)

    @property
    def last_stack(self) -> Stack:
        stack: Stack = getattr(self, self.STACK)
        return stack

    @property
    def embeddings(self) -> dict[str, Embedding]:
        return {self.STACK: self.embedding}

    def forward(
        self,
        ids: Tensor,
        *,
        types: Tensor | None = None,
        is_text: Tensor | None = None,
        mask: Tensor | None = None,
        where: Tensor | None = None,
        cache: KeyValueCache | None = None,
        hooks: Sequence[Hook] = (),
        trace: Trace | None = None,
    ) -> Tensor:
        """ids: (B, T) int64 -> logits (B, T, V). Raises ValueError for more than max_len tokens.

        types: (B, T) int64, token types, if the network has them; None = all 0.
        is_text: (B, T) bool, False where a batch was padded; None = no padding.
        mask: replaces the causal and the padding mask (see `given_mask`).
        where: (B, T) bool, only these N positions' logits: (N, V), in reading order.
        cache: for a decoder; ids are then only the T tokens not read yet, and it grows by T.
        hooks: see `hooks.py`; trace: called as the last hook.
        """
        context = ForwardContext(
            mask=text_mask(ids, is_text),
            is_text=is_text,
            causal=self.STACK == "decoder",
            cache=cache,
            hooks=self.hooks_with(hooks, trace),
        )
        x = self._read(self.embedding, self.last_stack, ids, context, mask, types)
        return self.project(x, where, is_text)

    def loss(
        self,
        ids: Tensor,
        targets: Tensor,
        *,
        is_text: Tensor | None = None,
        smoothing: float = 0.0,
    ) -> Tensor:
        """Mean loss of targets (B, T) int64, in nats per token; IGNORED (-100) does not count.

        is_text: see `forward`. smoothing: see `mean_nats`.
        """
        where = targets != IGNORED
        return mean_nats(self(ids, is_text=is_text, where=where), targets[where], smoothing)


class DecoderOnly(OneStack):
    """A GPT: each token reads itself and the past, and predicts the next."""

    STACK = "decoder"
    decoder: Stack

    def loss(
        self,
        ids: Tensor,
        targets: Tensor | None = None,
        *,
        is_text: Tensor | None = None,
        smoothing: float = 0.0,
    ) -> Tensor:
        """Mean loss, in nats per token. targets: None = the next token of each id."""
        if targets is None:
            targets = text_targets(ids, is_text)
            ids, is_text = ids[:, :-1], None if is_text is None else is_text[:, :-1]
        return super().loss(ids, targets, is_text=is_text, smoothing=smoothing)


class EncoderOnly(OneStack):
    """A BERT: each token reads the whole text; logits predict the token at each position."""

    STACK = "encoder"
    encoder: Stack


class Decoding(TypedDict, total=False):
    """Options of `EncoderDecoder.forward` that it passes to `decode`."""

    tgt_is_text: Tensor | None
    tgt_mask: Tensor | None
    where: Tensor | None


class EncoderDecoder(Transformer):
    """The paper's Transformer: the decoder reads its own past and all of the encoded source."""

    def __init__(self, config: ModelConfig, generator: Generator | None = None) -> None:
        super().__init__()
        self.source_embedding = Embedding(config, "encoder")
        self.target_embedding = Embedding(config, "decoder")
        self.encoder = Stack(config, "encoder")
        self.decoder = Stack(config, "decoder", cross=True)
        self._finish(config, self.target_embedding, generator)
        if config.share_embeddings:
            self.source_embedding.tokens.weight = self.target_embedding.tokens.weight

    @property
    def last_stack(self) -> Stack:
        return self.decoder

    @property
    def embeddings(self) -> dict[str, Embedding]:
        return {"encoder": self.source_embedding, "decoder": self.target_embedding}

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        *,
        src_is_text: Tensor | None = None,
        src_mask: Tensor | None = None,
        hooks: Sequence[Hook] = (),
        trace: Trace | None = None,
        **decoding: Unpack[Decoding],
    ) -> Tensor:
        """source: (B, Ts), target: (B, Tt) int64 -> logits (B, Tt, V), each for the next token.

        src_is_text, src_mask: see `encode`. The other options: see `decode`.
        """
        hooks = self.hooks_with(hooks, trace)
        memory = self.encode(source, src_is_text=src_is_text, src_mask=src_mask, hooks=hooks)
        return self.decode(
            target, memory, source, src_is_text=src_is_text, src_mask=src_mask, hooks=hooks,
            **decoding,
        )  # fmt: skip

    def loss(
        self,
        source: Tensor,
        target: Tensor,
        *,
        src_is_text: Tensor | None = None,
        tgt_is_text: Tensor | None = None,
        smoothing: float = 0.0,
    ) -> Tensor:
        """Mean loss of target (B, Tt) without its first token, the start, in nats per token.

        src_is_text, tgt_is_text: see `decode`; padding does not count. smoothing: see `mean_nats`.
        """
        targets = text_targets(target, tgt_is_text)
        where = targets != IGNORED
        is_text = None if tgt_is_text is None else tgt_is_text[:, :-1]
        logits = self(
            source, target[:, :-1], src_is_text=src_is_text, tgt_is_text=is_text, where=where
        )
        return mean_nats(logits, targets[where], smoothing)

    def encode(
        self,
        source: Tensor,
        *,
        src_is_text: Tensor | None = None,
        src_mask: Tensor | None = None,
        hooks: Sequence[Hook] = (),
        trace: Trace | None = None,
    ) -> Tensor:
        """source: (B, Ts) int64 -> memory (B, Ts, C).

        src_is_text: (B, Ts) bool, False where a batch was padded; None = no padding. src_mask:
        replaces the padding mask (see `given_mask`).
        """
        hooks = self.hooks_with(hooks, trace)
        context = ForwardContext(
            mask=text_mask(source, src_is_text), is_text=src_is_text, hooks=hooks
        )
        return self._read(self.source_embedding, self.encoder, source, context, src_mask)

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        source: Tensor,
        *,
        src_is_text: Tensor | None = None,
        tgt_is_text: Tensor | None = None,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        where: Tensor | None = None,
        cache: KeyValueCache | None = None,
        hooks: Sequence[Hook] = (),
        trace: Trace | None = None,
    ) -> Tensor:
        """target: (B, Tt) int64, memory from `encode(source)` -> logits (B, Tt, V).

        source, src_is_text: which of the memory is text; a src_mask (B, 1, 1, Ts), equal for
        all queries, hides memory too. tgt_is_text: (B, Tt) bool, False where a batch was padded;
        None = no padding. tgt_mask: replaces the causal and the padding mask. where: (B, Tt) bool,
        only these N positions' logits: (N, V), in reading order. With a cache, target is only the
        tokens not read yet.
        """
        context = ForwardContext(
            mask=text_mask(target, tgt_is_text),
            is_text=tgt_is_text,
            causal=True,
            memory=memory,
            memory_mask=self._memory_mask(source, src_is_text, src_mask),
            cache=cache,
            hooks=self.hooks_with(hooks, trace),
        )
        x = self._read(self.target_embedding, self.decoder, target, context, tgt_mask)
        return self.project(x, where, tgt_is_text)

    def _memory_mask(
        self, source: Tensor, is_text: Tensor | None, given: Tensor | None
    ) -> Tensor | None:
        """The mask of cross-attention."""
        if given is not None and given.dim() > 1 and given.shape[-2] == 1:
            return given_mask(given, 1, source.shape[1])
        return text_mask(source, is_text)


FAMILY_CLASSES: dict[str, type[DecoderOnly] | type[EncoderOnly] | type[EncoderDecoder]] = {
    "decoder": DecoderOnly,
    "encoder": EncoderOnly,
    "encoder-decoder": EncoderDecoder,
}


def build_transformer(
    preset_or_config: str | ModelConfig, *, seed: int | None = None, **changes: Any
) -> DecoderOnly | EncoderOnly | EncoderDecoder:
    """A network with fresh weights, from a preset's name or a configuration.

    `changes` replace single fields: build_transformer("gpt", vocab_size=4096, n_layers=2).
    seed: the same weights for the same seed; None draws from PyTorch's global generator. The
    network is in evaluation mode, without dropout; to train it, call `train()` first. Raises
    ValueError for an unknown preset or an impossible configuration.
    """
    if isinstance(preset_or_config, str):
        config = preset(preset_or_config, **changes)
    else:
        config = preset_or_config.replace(**changes)
    generator = None if seed is None else Generator().manual_seed(seed)
    return FAMILY_CLASSES[config.family](config, generator).eval()

"""The three families, each put together from the same parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Generator, Tensor

from transformer.model.cache import KeyValueCache
from transformer.model.config import ModelConfig
from transformer.model.hooks import ForwardContext, Hook
from transformer.model.masks import given_mask, padding_mask
from transformer.model.network import Transformer, asked_for, mean_nats, with_trace
from transformer.model.presets import preset
from transformer.model.stacks import Embedding, Stack
from transformer.model.trace import Trace


class DecoderOnly(Transformer):
    """A GPT: each token reads itself and the past, and predicts the next."""

    def __init__(self, config: ModelConfig, generator: Generator | None = None) -> None:
        super().__init__()
        self.embedding = Embedding(config, "decoder")
        self.decoder = Stack(config, "decoder")
        self._finish(config, self.embedding, generator)

    @property
    def last_stack(self) -> Stack:
        return self.decoder

    def forward(
        self,
        ids: Tensor,
        *,
        is_text: Tensor | None = None,
        mask: Tensor | None = None,
        where: Tensor | None = None,
        cache: KeyValueCache | None = None,
        hooks: Sequence[Hook] = (),
        trace: Trace | None = None,
    ) -> Tensor:
        """ids: (B, T) int64 -> logits (B, T, V).

        is_text: (B, T) bool, False where any id is padding; None = only padding_id is.
        mask: what may be read, in place of the causal and the padding mask (see `given_mask`).
        where: (B, T) bool, the N positions whose logits are wanted; then (N, V), in reading order.
        With a cache, ids are only the tokens that it has not read; it grows by T. hooks: what is
        shown the numbers on the way; trace: the last of them. Raises ValueError for more than
        max_len tokens.
        """
        past, hooks = (cache.length if cache else 0), with_trace(hooks, trace)
        key_mask = padding_mask(ids, self.config.padding_id, is_text)
        if cache is not None:
            key_mask = cache.extend_mask(key_mask, ids.shape[1])
        positions = self._positions("decoder", ids, key_mask, past)
        if positions.dim() == 1 and cache is None and not hooks:
            key_mask = None  # padding stands only on the right: the future, hidden anyway
        own = ForwardContext(mask=key_mask, causal=True, cache=cache, hooks=hooks)
        context = self._context(own, mask, ids.shape[1])
        x = self._through(self.embedding, self.decoder, ids, positions, context)
        if cache is not None:
            cache.length += ids.shape[1]
        return self.project(x, where)

    def loss(self, ids: Tensor, targets: Tensor | None = None, *, smoothing: float = 0.0) -> Tensor:
        """Mean nats a token of what each position of ids (B, T) is to predict.

        targets: (B, T) int64, the token behind each; None: ids themselves, one place on. Padding
        and IGNORED (-100) do not count. smoothing: see `mean_nats`.
        """
        if targets is None:
            ids, targets = ids[:, :-1], ids[:, 1:]
        where = asked_for(targets, self.config.padding_id)
        return mean_nats(self(ids, where=where), targets[where], smoothing)


class EncoderOnly(Transformer):
    """A BERT: each token reads the whole text; logits say which token belongs at each place."""

    def __init__(self, config: ModelConfig, generator: Generator | None = None) -> None:
        super().__init__()
        self.embedding = Embedding(config, "encoder")
        self.encoder = Stack(config, "encoder")
        self._finish(config, self.embedding, generator)

    @property
    def last_stack(self) -> Stack:
        return self.encoder

    def forward(
        self,
        ids: Tensor,
        *,
        types: Tensor | None = None,
        is_text: Tensor | None = None,
        mask: Tensor | None = None,
        where: Tensor | None = None,
        hooks: Sequence[Hook] = (),
        trace: Trace | None = None,
    ) -> Tensor:
        """ids: (B, T) int64 -> logits (B, T, V). Raises ValueError for T above max_len.

        types: (B, T) int64, each token's type, of a network that has types; None = all 0.
        is_text: (B, T) bool, False where any id is padding; None = only padding_id is.
        mask: what may be read, in place of the padding mask (see `given_mask`).
        where: (B, T) bool, the N positions whose logits are wanted; then (N, V), in reading order.
        """
        key_mask = padding_mask(ids, self.config.padding_id, is_text)
        own = ForwardContext(mask=key_mask, hooks=with_trace(hooks, trace))
        context = self._context(own, mask, ids.shape[1])
        positions = self._positions("encoder", ids, key_mask)
        x = self._through(self.embedding, self.encoder, ids, positions, context, types)
        return self.project(x, where)

    def loss(self, ids: Tensor, targets: Tensor, *, smoothing: float = 0.0) -> Tensor:
        """Mean nats a token of what belongs at the places of ids (B, T) that are asked for.

        targets: (B, T) int64, IGNORED (-100) or padding where nothing is asked, as in masked
        language modelling. smoothing: see `mean_nats`.
        """
        where = asked_for(targets, self.config.padding_id)
        return mean_nats(self(ids, where=where), targets[where], smoothing)


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

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        *,
        src_is_text: Tensor | None = None,
        tgt_is_text: Tensor | None = None,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        where: Tensor | None = None,
        hooks: Sequence[Hook] = (),
        trace: Trace | None = None,
    ) -> Tensor:
        """source: (B, Ts), target: (B, Tt) int64 -> logits (B, Tt, V), each for the next token.

        src_is_text, tgt_is_text: (B, Ts), (B, Tt) bool, False where any id is padding; None = only
        the padding's own id is.
        src_mask, tgt_mask: what source and target may read of themselves, in place of the padding
        mask, and of the causal and the padding mask (see `given_mask`); a src_mask for all queries
        alike, (B, 1, 1, Ts), hides the same from the target.
        where: (B, Tt) bool, the N positions whose logits are wanted; then (N, V), in reading order.
        """
        hooks = with_trace(hooks, trace)
        memory = self.encode(source, src_is_text=src_is_text, src_mask=src_mask, hooks=hooks)
        return self.decode(
            target, memory, source, src_is_text=src_is_text, tgt_is_text=tgt_is_text,
            src_mask=src_mask, tgt_mask=tgt_mask, where=where, hooks=hooks,
        )  # fmt: skip

    def loss(self, source: Tensor, target: Tensor, *, smoothing: float = 0.0) -> Tensor:
        """Mean nats a token of target (B, Tt), each foreseen from the source and those before it.

        The first token, the start, is only read. Padding does not count. smoothing: see mean_nats.
        """
        read, targets = target[:, :-1], target[:, 1:]
        where = asked_for(targets, self.config.output_padding_id)
        return mean_nats(self(source, read, where=where), targets[where], smoothing)

    def encode(
        self,
        source: Tensor,
        *,
        src_is_text: Tensor | None = None,
        src_mask: Tensor | None = None,
        hooks: Sequence[Hook] = (),
        trace: Trace | None = None,
    ) -> Tensor:
        """source: (B, Ts) int64 -> memory (B, Ts, C). src_is_text: as in `forward`."""
        key_mask = padding_mask(source, self.config.padding_id, src_is_text)
        own = ForwardContext(mask=key_mask, hooks=with_trace(hooks, trace))
        context = self._context(own, src_mask, source.shape[1])
        positions = self._positions("encoder", source, key_mask)
        return self._through(self.source_embedding, self.encoder, source, positions, context)

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

        `source` says which memory positions are padding; masks and `where` are as in `forward`.
        With a cache, target is only the tokens that it has not read.
        """
        past = cache.length if cache else 0
        reads_first = self.config.padded_start and past == 0
        key_mask = padding_mask(
            target, self.config.output_padding_id, tgt_is_text, reads_first=reads_first
        )
        if cache is not None:
            key_mask = cache.extend_mask(key_mask, target.shape[1])
        own = ForwardContext(
            mask=key_mask,
            causal=True,
            memory=memory,
            memory_mask=self._memory_mask(source, src_is_text, src_mask),
            cache=cache,
            hooks=with_trace(hooks, trace),
        )
        context = self._context(own, tgt_mask, target.shape[1])
        positions = self._positions("decoder", target, key_mask, past)
        x = self._through(self.target_embedding, self.decoder, target, positions, context)
        if cache is not None:
            cache.length += target.shape[1]
        return self.project(x, where)

    def _memory_mask(
        self, source: Tensor, is_text: Tensor | None, given: Tensor | None
    ) -> Tensor | None:
        """Which of the memory the target may read."""
        if given is not None and given.dim() > 1 and given.shape[-2] == 1:
            return given_mask(given, 1, source.shape[1])
        return padding_mask(source, self.config.padding_id, is_text)


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
    seed: the same weights for the same seed, whatever was drawn before; None draws from PyTorch's
    global generator. It comes in evaluation mode, without dropout, so that two calls of it agree;
    to train it, call `train()` first. Raises ValueError for an unknown preset or an impossible
    configuration.
    """
    if isinstance(preset_or_config, str):
        config = preset(preset_or_config, **changes)
    else:
        config = preset_or_config.replace(**changes)
    generator = None if seed is None else Generator().manual_seed(seed)
    return FAMILY_CLASSES[config.family](config, generator).eval()

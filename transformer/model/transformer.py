"""The three families, each put together from the same parts."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from transformer.model import config as configs
from transformer.model.attention import KeyValueCache
from transformer.model.changes import Changes
from transformer.model.config import ModelConfig
from transformer.model.masks import padding_mask
from transformer.model.stacks import Embedding, Stack
from transformer.model.trace import Trace


class Transformer(nn.Module):
    """What the families share: the configuration, the head and the initial weights."""

    config: ModelConfig
    head: nn.Linear

    @property
    @abstractmethod
    def last_stack(self) -> Stack:
        """The stack that the head reads."""

    def lens(self, x: Tensor, changes: Changes | None = None) -> Tensor:
        """What the head would say of a residual stream, were it the last: (B, T, C) -> (B, T, V).

        The "logit lens" (nostalgebraist 2020): the last stack's own final norm, then the head.
        """
        logits: Tensor = self.head(self.last_stack.end(x, changes))
        return logits

    def _finish(self, config: ModelConfig, output_embedding: Embedding) -> None:
        self.config = config
        self.head = nn.Linear(config.d_model, config.output_vocab_size, bias=config.head_bias)
        self.apply(lambda module: _initialise(module, config))
        if config.tie_embeddings:
            self.head.weight = output_embedding.tokens.weight

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.head.weight.device

    @property
    def n_parameters(self) -> int:
        """How many numbers were (or would be) trained; a tied matrix counts once."""
        return sum(p.numel() for p in self.parameters())

    def _positions(self, ids: Tensor, key_mask: Tensor | None, past: int = 0) -> Tensor:
        """Positions of the T new ids: (T,) counted from 0, or (B, T) where a row is padded on the
        left, which does not count."""
        length = past + ids.shape[1]
        if past == 0 or key_mask is None:
            _check_length(length, self.config.max_len)
            if key_mask is None or bool(key_mask[..., 0].all()):
                return torch.arange(past, length, device=ids.device)
        places = key_mask[:, 0, 0].cumsum(dim=-1) - 1  # (B, length)
        if length > self.config.max_len:  # with padding on the left there may be room yet
            _check_length(int(places.max()) + 1, self.config.max_len)
        return places.clamp(min=0)[:, past:]


class DecoderOnly(Transformer):
    """A GPT: each token reads itself and the past, and predicts the next."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = Embedding(config, config.vocab_size, "decoder")
        self.decoder = Stack(config, "decoder")
        self._finish(config, self.embedding)

    @property
    def last_stack(self) -> Stack:
        return self.decoder

    def forward(
        self,
        ids: Tensor,
        *,
        where: Tensor | None = None,
        cache: KeyValueCache | None = None,
        trace: Trace | None = None,
        changes: Changes | None = None,
    ) -> Tensor:
        """ids: (B, T) int64 -> logits (B, T, V).

        where: (B, T) bool, the N positions whose logits are wanted; then (N, V), in reading order.
        With a cache, ids are only the tokens that it has not read; it grows by T.
        Raises ValueError for more than max_len tokens.
        """
        past, n_new = (cache.length if cache else 0), ids.shape[1]
        key_mask = padding_mask(ids, self.config.padding_id)
        if cache is not None:
            key_mask = cache.extend_mask(key_mask)
        positions = self._positions(ids, key_mask, past)
        if positions.dim() == 1 and trace is None and cache is None and changes is None:
            key_mask = None  # padding stands only on the right: the future, hidden anyway
        x = self.embedding(ids, positions, trace, changes)
        x = self.decoder(x, mask=key_mask, causal=True, cache=cache, trace=trace, changes=changes)
        if cache is not None:
            cache.length += n_new
        return self.head(_chosen(x, where))


class EncoderOnly(Transformer):
    """A BERT: each token reads the whole text; logits say which token belongs at each place."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = Embedding(config, config.vocab_size, "encoder")
        self.encoder = Stack(config, "encoder")
        self._finish(config, self.embedding)

    @property
    def last_stack(self) -> Stack:
        return self.encoder

    def forward(
        self, ids: Tensor, *, trace: Trace | None = None, changes: Changes | None = None
    ) -> Tensor:
        """ids: (B, T) int64 -> logits (B, T, V). Raises ValueError for T above max_len."""
        mask = padding_mask(ids, self.config.padding_id)
        x = self.embedding(ids, self._positions(ids, mask), trace, changes)
        return self.head(self.encoder(x, mask=mask, trace=trace, changes=changes))


class EncoderDecoder(Transformer):
    """The paper's Transformer: the decoder reads its own past and all of the encoded source."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.source_embedding = Embedding(config, config.vocab_size, "encoder")
        self.target_embedding = Embedding(config, config.output_vocab_size, "decoder")
        self.encoder = Stack(config, "encoder")
        self.decoder = Stack(config, "decoder", cross=True)
        self._finish(config, self.target_embedding)
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
        where: Tensor | None = None,
        trace: Trace | None = None,
        changes: Changes | None = None,
    ) -> Tensor:
        """source: (B, Ts), target: (B, Tt) int64 -> logits (B, Tt, V), each for the next token.

        where: (B, Tt) bool, the N positions whose logits are wanted; then (N, V), in reading order.
        """
        memory = self.encode(source, trace=trace, changes=changes)
        return self.decode(target, memory, source, where=where, trace=trace, changes=changes)

    def encode(
        self, source: Tensor, *, trace: Trace | None = None, changes: Changes | None = None
    ) -> Tensor:
        """source: (B, Ts) int64 -> memory (B, Ts, C)."""
        mask = padding_mask(source, self.config.padding_id)
        x = self.source_embedding(source, self._positions(source, mask), trace, changes)
        return self.encoder(x, mask=mask, trace=trace, changes=changes)

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        source: Tensor,
        *,
        where: Tensor | None = None,
        cache: KeyValueCache | None = None,
        trace: Trace | None = None,
        changes: Changes | None = None,
    ) -> Tensor:
        """target: (B, Tt) int64, memory from `encode(source)` -> logits (B, Tt, V).

        `source` says which memory positions are padding; `where` is as in `forward`. With a cache,
        target is only the tokens that it has not read.
        """
        past, n_new = (cache.length if cache else 0), target.shape[1]
        key_mask = padding_mask(target, self.config.padding_id)
        if cache is not None:
            key_mask = cache.extend_mask(key_mask)
        positions = self._positions(target, key_mask, past)
        x = self.target_embedding(target, positions, trace, changes)
        x = self.decoder(
            x,
            mask=key_mask,
            causal=True,
            memory=memory,
            memory_mask=padding_mask(source, self.config.padding_id),
            cache=cache,
            trace=trace,
            changes=changes,
        )
        if cache is not None:
            cache.length += n_new
        return self.head(_chosen(x, where))


FAMILY_CLASSES: dict[str, type[DecoderOnly] | type[EncoderOnly] | type[EncoderDecoder]] = {
    "decoder": DecoderOnly,
    "encoder": EncoderOnly,
    "encoder-decoder": EncoderDecoder,
}


def build_transformer(
    preset_or_config: str | ModelConfig, **changes: Any
) -> DecoderOnly | EncoderOnly | EncoderDecoder:
    """A network with fresh weights, from a preset's name or a configuration.

    `changes` replace single fields: build_transformer("gpt", vocab_size=4096, n_layers=2).
    Raises ValueError for an unknown preset or an impossible configuration.
    """
    if isinstance(preset_or_config, str):
        config = configs.preset(preset_or_config, **changes)
    else:
        config = preset_or_config.replace(**changes)
    return FAMILY_CLASSES[config.family](config)


def _chosen(x: Tensor, where: Tensor | None) -> Tensor:
    """(B, T, C) at the N positions (B, T) that are wanted: (N, C); all of x if None.

    x[where], whose gradient took ten times as long on a CPU.
    """
    if where is None:
        return x
    return x.flatten(0, 1).index_select(0, where.flatten().nonzero()[:, 0])


def _initialise(module: nn.Module, config: ModelConfig) -> None:
    """Xavier-uniform (as in the tutorials) or N(0, 0.02) (as GPT-2 and BERT); biases 0."""
    if isinstance(module, nn.Linear):
        if config.init == "xavier":
            nn.init.xavier_uniform_(module.weight)
        else:
            nn.init.normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        # Scaled embeddings start at 1/sqrt(C), so that times sqrt(C) they have unit variance.
        std = config.d_model**-0.5 if config.init == "xavier" else 0.02
        nn.init.normal_(module.weight, std=std)


def _check_length(length: int, max_len: int) -> None:
    if length > max_len:
        raise ValueError(f"at most {max_len} tokens fit this model; got {length}")

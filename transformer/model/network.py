"""The base class of the three families, and their losses and input checks."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.checks import InvalidRequest
from transformer.model.blocks import Embedding, Stack
from transformer.model.config import ModelConfig
from transformer.model.functional import given_mask, padding_mask, soft_cap
from transformer.model.heads import HEADS, HeadTransform
from transformer.model.hooks import ForwardContext, Hook, Point, called, points_of
from transformer.model.primitives import Table, initialise
from transformer.model.trace import Trace

IGNORED = -100  # a target that does not count, as in PyTorch


class Transformer(nn.Module):
    """The base class of all families: configuration, head and initial weights."""

    config: ModelConfig
    head: Any  # the module that HEADS makes; an nn.Linear if it predicts tokens
    transform: HeadTransform | None

    @property
    @abstractmethod
    def last_stack(self) -> Stack:
        """The stack that the head reads."""

    @property
    @abstractmethod
    def embeddings(self) -> dict[str, Embedding]:
        """Each stack's embedding, by the stack's name, in the order of the data."""

    def lens(self, x: Tensor, hooks: Sequence[Hook] = ()) -> Tensor:
        """Logits of the head applied to any layer's residual stream: (B, T, C) -> (B, T, V).

        The "logit lens" (nostalgebraist 2020): the last stack's final norm, then the head.
        """
        self.check_predicts()
        if x.shape[-1] != self.config.d_model:
            raise ValueError(
                f"a residual stream is (B, T, {self.config.d_model}); got {tuple(x.shape)}"
            )
        end = Point("final_norm", self.last_stack.name)
        context = ForwardContext(hooks=called(hooks, lambda: self.points() & {end}))
        return self.project(self.last_stack.end(x, context))

    def _read(
        self,
        embedding: Embedding,
        stack: Stack,
        ids: Tensor,
        context: ForwardContext,
        caller_mask: Tensor | None = None,
        types: Tensor | None = None,
    ) -> Tensor:
        """A stack's output for ids (B, T): (B, T, C). With a cache, they are the ids not read yet.

        context: its mask says which of ids are text. caller_mask: replaces this mask, the causal
        one and windows.
        """
        cache, mask, n_new, here = context.cache, context.mask, ids.shape[1], (stack.name,)
        past = 0 if cache is None else cache.length
        if cache is not None:
            mask = cache.extend_mask(mask, n_new)
        positions = self._positions(stack.name, ids, mask, past)
        before, positions = positions.split([past, n_new], dim=-1)
        if caller_mask is not None:
            mask = given_mask(caller_mask, n_new, past + n_new)
        positions = context.at("position_ids", here, positions)
        x = embedding(ids, positions, context, types)
        ours = caller_mask is None
        causal = context.causal and ours
        context = dataclasses.replace(context, mask=mask, causal=causal, windowed=ours)
        x = stack(x, stack.placed(context, positions, before if past else None))
        if cache is not None:
            cache.length += n_new
        return x

    def project(
        self, x: Tensor, where: Tensor | None = None, is_text: Tensor | None = None
    ) -> Tensor:
        """Logits of the last stack's output: (B, T, C) -> (B, T, V); a classifier's scores; or
        the output itself without a head.

        where: (B, T) bool, only these N positions; then (N, V), in reading order. is_text: (B, T)
        bool, False where a batch was padded; None = no padding.
        """
        if where is not None:
            self.check_predicts()
        x, pool = _select(x, where), HEADS[self.config.head].pool
        x = x if pool is None else pool(x, is_text)
        logits: Tensor = self.head(x if self.transform is None else self.transform(x))
        if self.config.logit_scale != 1.0:
            logits = logits * self.config.logit_scale
        return soft_cap(logits, self.config.logit_cap)

    def points(self) -> set[Point]:
        """The points at which hooks are called."""
        return points_of(self.config)

    def hooks_with(self, hooks: Sequence[Hook], trace: Trace | None) -> Sequence[Hook]:
        """The hooks, and the trace as the last of them: it records what the others return."""
        hooks = called(hooks, self.points)
        return hooks if trace is None else (*hooks, trace)

    def check_predicts(self) -> None:
        """Raise ValueError unless the head predicts tokens."""
        if not HEADS[self.config.head].predicts:
            raise InvalidRequest("no_head", "this network has no output layer that predicts tokens")

    def _finish(
        self, config: ModelConfig, output_embedding: Embedding, generator: torch.Generator | None
    ) -> None:
        self.config = config
        self.transform = HeadTransform(config) if config.head_transform else None
        self.head = HEADS[config.head].make(config)
        for module in self.modules():
            initialise(module, config.init, config.d_model, generator)
        if config.tie_embeddings:
            self.head.weight = output_embedding.tokens.weight

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The type of all computation; weights may be stored in a smaller one (see `Linear`)."""
        return next(part.unit.dtype for part in self.modules() if isinstance(part, Table))

    @property
    def n_parameters(self) -> int:
        """The number of parameters; a tied matrix counts once."""
        return sum(p.numel() for p in self.parameters())

    def _positions(self, stack: str, ids: Tensor, key_mask: Tensor | None, past: int = 0) -> Tensor:
        """Positions of all tokens up to the T new ids: (past + T,), or (B, past + T) in a padded
        batch, where padding on the left is not counted."""
        length, max_len = past + ids.shape[1], self.config.max_len_of(stack)
        if key_mask is None:
            _check_length(length, max_len)
            return torch.arange(length, device=ids.device)
        n_left = (key_mask[:, 0, 0].cumsum(dim=-1) == 0).sum(dim=-1, keepdim=True)  # (B, 1)
        if length > max_len:  # padding on the left takes no position
            _check_length(length - int(n_left.min()), max_len)
        return (torch.arange(length, device=ids.device) - n_left).clamp(min=0)


def text_targets(ids: Tensor, is_text: Tensor | None) -> Tensor:
    """The token after each of ids (B, T) but the last: (B, T - 1), IGNORED where it is padding."""
    targets = ids[:, 1:]
    return targets if is_text is None else targets.masked_fill(~is_text[:, 1:], IGNORED)


def mean_nats(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """logits: (N, V); targets: (N,) int64 -> their mean cross-entropy, in float32.

    smoothing: the share of each target that is spread evenly over all tokens (Szegedy et al. 2016).
    """
    return F.cross_entropy(logits.float(), targets, label_smoothing=smoothing)


def text_mask(ids: Tensor, is_text: Tensor | None) -> Tensor | None:
    """`padding_mask(is_text)`, after checks of ids (B, T) and is_text."""
    check_ids(ids)
    if is_text is not None and is_text.shape != ids.shape:
        raise ValueError(
            f"is_text must be of the ids' shape, {tuple(ids.shape)}; got {tuple(is_text.shape)}"
        )
    return padding_mask(is_text)


def check_ids(ids: Any) -> None:
    """Raise ValueError for anything but token ids (B, T)."""
    if not isinstance(ids, Tensor):
        got = type(ids).__name__
        raise ValueError(f"ids must be a tensor (B, T); got {got}: torch.tensor([[...]])")
    if ids.dim() != 2 or not all(ids.shape):
        shape = tuple(ids.shape)
        raise ValueError(f"ids must be a tensor (B, T) with at least one token; got {shape}")
    if ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"ids must be of int64 or int32; got {ids.dtype}")


def _select(x: Tensor, where: Tensor | None) -> Tensor:
    """x (B, T, C) at the N positions where (B, T) is True: (N, C); all of x if None.

    Equal to x[where], whose gradient took ten times as long on a CPU.
    """
    if where is None:
        return x
    return x.flatten(0, 1).index_select(0, where.flatten().nonzero()[:, 0])


def _check_length(length: int, max_len: int) -> None:
    if length > max_len:
        raise ValueError(f"this model takes at most {max_len} tokens; got {length}")

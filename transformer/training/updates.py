"""One loop for every training: a network, batches, and an update at a time; and the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from transformer.inference.logit_sources import pad
from transformer.messages import invalid
from transformer.model.hooks import Hook
from transformer.model.network import IGNORED
from transformer.training.attention import network_with_own_gradient
from transformer.training.data import Example
from transformer.training.optimizer import updated_by
from transformer.training.recipe import Settings

NUMBERS = 2**20  # logits at a time: 4 MB of float32, which nearly stay in a core's cache
Batch = tuple[int, int, list[Example]]  # the epoch, the batch's place in it, its rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """One update. step: from 1. loss: nats a token. norm: of the gradients, before they
    were clipped. stopping: whether a process asked to stop."""

    step: int
    epoch: int
    index: int
    tokens: int
    loss: float
    norm: float
    stopping: bool


def updates(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    settings: Settings,
    batches: Iterable[Batch],
    padding_id: int,
    *,
    dtype: torch.dtype = torch.float32,
    first: int = 0,
    rank: int = 0,
    n_processes: int = 1,
    backward: Callable[[Tensor], Any] = Tensor.backward,
    add: Callable[[Tensor], Tensor] = lambda values: values,
    before: Callable[[int], None] = lambda step: None,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Update]:
    """Yields after each update; to stop the training, stop iterating.

    first: the steps that were made before. dtype: what matrices are multiplied in. rank: of this
    one of the processes that train together. backward: fills the gradients of a loss, averaged over
    them; add: sums values over them. before: called with the step ahead of each, for a seed where
    the network draws. stopping: whether this process is to stop, asked once a step; the update that
    all of them make is the last. Raises ValueError where the loss is no longer a number.
    """
    updated = updated_by(optimizer)
    for step, (epoch, index, rows) in zip(range(first, settings.steps), batches, strict=False):
        total = sum(row.n_wanted for row in rows)
        own = rows[rank::n_processes]
        weight = 1.0 if own else 0.0  # more processes than rows: join in with nothing
        ending = stopping()
        before(step)
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate_at(step)
        narrow = torch.autocast(updated[0].device.type, dtype, enabled=dtype != torch.float32)
        with narrow, network_with_own_gradient(network):
            logits, wanted, _ = predictions(network, own or rows[:1], padding_id)
            nats = summed_nats(logits, wanted, settings.label_smoothing) * weight
        # Processes average their gradients; this makes the average that of the global batch.
        backward(nats * n_processes / total)
        norm = clip_grad_norm_(updated, settings.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        told = torch.stack([nats.detach().float(), nats.new_tensor(float(ending)).float()])
        all_nats, n_ending = add(told).tolist()
        loss = all_nats / total
        if not math.isfinite(loss):
            raise invalid(
                "the loss became {loss} at step {step}; lower learning_rate", loss=loss, step=step
            )
        yield Update(
            step=step + 1, epoch=epoch, index=index, tokens=total, loss=loss, norm=float(norm),
            stopping=n_ending > 0,
        )  # fmt: skip
        if n_ending > 0:
            return


def predictions(
    network: nn.Module, rows: Sequence[Example], padding_id: int, hooks: Sequence[Hook] = ()
) -> tuple[Tensor, Tensor, Tensor]:
    """(logits (N, V), the ids (N,) that are wanted, at which places of the rows: (B, T) bool)."""
    device = next(network.parameters()).device
    whole = [row.whole for row in rows]
    texts = [pad([row.source for row in whole], padding_id)] if whole[0].source else []
    texts.append(pad([row.read for row in whole], padding_id))
    wanted = pad([row.wanted or () for row in whole], IGNORED).to(device)
    where = wanted != IGNORED
    logits = network(*(text.to(device) for text in texts), where=where, hooks=hooks)
    return logits, wanted[where], where


def summed_nats(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """The summed cross-entropy of (N, V) logits and (N,) token ids, in nats; a float32 scalar.

    smoothing: the share of each target spread evenly over all V tokens (Szegedy et al. 2016).
    The sums are float32 whatever the logits' dtype; the gradient has the logits' dtype.
    """
    n_rows = max(1, NUMBERS // logits.shape[1])
    parts = [
        F.cross_entropy(rows.float(), wanted, reduction="sum", label_smoothing=smoothing)
        for rows, wanted in zip(logits.split(n_rows), targets.split(n_rows), strict=True)
    ]
    return torch.stack(parts).sum()

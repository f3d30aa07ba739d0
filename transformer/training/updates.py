"""One loop for every training: a network, batches, and an update at a time; and the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from transformer.messages import invalid
from transformer.training.attention import network_with_own_gradient
from transformer.training.optimizer import updated_by
from transformer.training.recipe import Settings

NUMBERS = 2**20  # logits at a time: 4 MB of float32, which nearly stay in a core's cache
Batch = tuple[int, int, list[Any]]  # the epoch, the batch's place in it, its rows


class Workers(Protocol):
    """The processes that train together, of which this is number `rank` of `count`."""

    rank: int
    count: int

    def backward(self, loss: Tensor) -> None:
        """Fill the gradients of a loss, averaged over the processes."""

    def add(self, values: Tensor) -> Tensor:
        """The sums of (N,) values over the processes."""


class Alone:
    """One process."""

    rank, count = 0, 1

    def backward(self, loss: Tensor) -> None:
        """Fill the gradients of a loss."""
        loss.backward()

    def add(self, values: Tensor) -> Tensor:
        """The values as they are."""
        return values


@dataclass(frozen=True, kw_only=True, slots=True)
class Objective:
    """How rows are scored. nats: the loss of rows, summed over their predicted tokens.
    count: how many tokens a row predicts."""

    nats: Callable[[nn.Module, list[Any], torch.device], Tensor]
    count: Callable[[Any], int]


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
    objective: Objective,
    *,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    first: int = 0,
    workers: Workers | None = None,
    before: Callable[[int, int], None] = lambda step, rank: None,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Update]:
    """Yields after each update; to stop the training, stop iterating.

    first: the steps that were made before. dtype: what matrices are multiplied in. before: called
    with (step, rank) ahead of each, for a seed where the network draws. stopping: whether this
    process is to stop, asked once a step; the update that all of them make is the last.
    Raises ValueError where the loss is no longer a number.
    """
    team = workers or Alone()
    updated = updated_by(optimizer)
    for step, (epoch, index, rows) in zip(range(first, settings.steps), batches, strict=False):
        total = sum(map(objective.count, rows))
        own = rows[team.rank :: team.count]
        weight = 1.0 if own else 0.0  # more processes than rows: join in with nothing
        ending = stopping()
        before(step, team.rank)
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate_at(step)
        narrow = torch.autocast(device.type, dtype, enabled=dtype != torch.float32)
        with narrow, network_with_own_gradient(network):
            nats = objective.nats(network, own or rows[:1], device) * weight
        # Processes average their gradients; this makes the average that of the global batch.
        team.backward(nats * team.count / total)
        norm = clip_grad_norm_(updated, settings.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        told = torch.stack([nats.detach().float(), nats.new_tensor(float(ending)).float()])
        all_nats, n_ending = team.add(told).tolist()
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

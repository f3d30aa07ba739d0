"""Cross-entropy over a large vocabulary, a slice of rows at a time.

F.cross_entropy keeps three float32 copies of the logits and reads each from memory several times:
with 3,700 rows of 8,000 logits it took twice as long as this on one CPU core.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

ROWS = 256  # of logits at a time: with 8,000 tokens 8 MB, which a core's cache nearly holds


def summed_nats(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """The summed cross-entropy of (N, V) logits and (N,) token ids, in nats; a float32 scalar.

    smoothing: the share of each target spread evenly over all V tokens (Szegedy et al. 2016).
    The sums are float32 whatever the logits' dtype; the gradient has the logits' dtype.
    """
    loss: Tensor = _SummedNats.apply(logits, targets, smoothing)
    return loss


class _SummedNats(torch.autograd.Function):
    """-log softmax at the target, and its gradient softmax - target, both slice by slice."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        total = torch.zeros((), device=logits.device)
        log_sums = []
        for rows, wanted in zip(logits.split(ROWS), targets.split(ROWS), strict=True):
            values = rows.float()
            log_sum = values.logsumexp(-1)
            chosen = values.gather(1, wanted[:, None])[:, 0]
            smoothed = (1 - smoothing) * chosen + smoothing * values.mean(-1)
            total += (log_sum - smoothed).sum()
            log_sums.append(log_sum)
        ctx.save_for_backward(logits, targets, torch.cat(log_sums))
        ctx.smoothing = smoothing
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        logits, targets, log_sums = ctx.saved_tensors
        found = torch.empty_like(logits)
        parts = (x.split(ROWS) for x in (found, logits, targets, log_sums))
        for into, rows, wanted, log_sum in zip(*parts, strict=True):
            difference = (rows.float() - log_sum[:, None]).exp_()  # the probabilities
            difference.sub_(ctx.smoothing / rows.shape[1])
            share = torch.full_like(wanted[:, None], -(1 - ctx.smoothing), dtype=torch.float32)
            difference.scatter_add_(1, wanted[:, None], share)
            into.copy_(difference.mul_(gradients[0]))
        return found, None, None

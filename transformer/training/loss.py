"""Cross-entropy over a large vocabulary, some rows of logits at a time."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

NUMBERS = 2**20  # logits at a time: 4 MB of float32, which nearly stay in a core's cache


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

"""Maps and tables that compute in one type of numbers with weights that are kept in a smaller one.

A checkpoint of bfloat16 or float16 numbers holds no more than those: kept so they take half the
memory of float32, and widened where they are used they give what float32 gives.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NARROW = (torch.bfloat16, torch.float16)
WIDENED = 1 << 20  # weights at a time, 4 MB as float32: what is widened stays near the processor


class Linear(nn.Linear):
    """x W + b. A weight narrower than x is widened to its type, some rows at a time."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out), in x's type."""
        if self.weight.dtype not in NARROW or x.dtype == self.weight.dtype:
            return super().forward(x)
        rows = max(1, WIDENED // self.in_features)
        made = [F.linear(x, some.to(x.dtype)) for some in self.weight.split(rows)]
        whole = made[0] if len(made) == 1 else torch.cat(made, dim=-1)
        return whole if self.bias is None else whole + self.bias


class Table(nn.Embedding):
    """Vectors by id, in the type that the network computes in, whatever they are kept in."""

    unit: Tensor

    def __init__(self, n_rows: int, size: int) -> None:
        super().__init__(n_rows, size)
        # Follows `network.double()` and the like, where the weights alone would not tell.
        self.register_buffer("unit", torch.ones(()), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        """(...) int64 -> (..., size)."""
        return super().forward(ids).to(self.unit.dtype)

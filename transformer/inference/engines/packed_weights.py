"""Weights laid out for products of one row: what `packed.py` is made of, and says why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from transformer.model.activations import ACTIVATIONS
from transformer.model.blocks import Residual
from transformer.model.feed_forward import FeedForward
from transformer.model.norms import RMSNorm

GELU_SCALE = 2**-0.5


class Norm:
    """A norm called directly: nn.Module and functional take as long again for one row."""

    def __init__(self, norm: nn.Module) -> None:
        self.function: Callable[..., Tensor] = torch.layer_norm
        self.rest: tuple[Any, ...]
        if isinstance(norm, RMSNorm):
            scale = norm.scale.detach()
            self.function, self.rest = torch.rms_norm, (list(scale.shape), scale, norm.eps)
        else:
            assert isinstance(norm, nn.LayerNorm)
            weights = norm.weight.detach(), norm.bias.detach()
            self.rest = (norm.normalized_shape, *weights, norm.eps)

    def __call__(self, x: Tensor) -> Tensor:
        return self.function(x, *self.rest)


class Product:
    """Linear maps of one input, side by side; the result times `by`."""

    def __init__(self, maps: Sequence[nn.Linear], blocks: int, by: float = 1.0) -> None:
        rows = _pack(maps)
        self.weight, self.bias = _blocks(rows[:-1], blocks), by * _blocks(rows[-1:], blocks)
        self.n_blocks, self.by = len(self.weight), by

    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """x: (in,) -> (blocks, 1, out / blocks): the features in order."""
        rows = x.expand(self.n_blocks, 1, -1)
        return torch.baddbmm(self.bias, rows, self.weight, alpha=self.by, out=out)


class Expanded:
    """The first half of a feed-forward, with its activation.

    by: 1 / what the result must be multiplied with. For GELU, whose factors are given to the
    products on both sides of it, x + x erf(x) is left, of x scaled by 1/sqrt(2).
    """

    def __init__(self, feed_forward: FeedForward, blocks: int) -> None:
        self.activation, gate = feed_forward.activation, feed_forward.gate
        self.gated = gate is not None
        self.plain_gelu = self.activation is ACTIVATIONS["gelu"].function and not self.gated
        self.by = GELU_SCALE if self.plain_gelu else 1.0
        maps = [feed_forward.expand] if gate is None else [gate, feed_forward.expand]
        self.product = Product(maps, blocks, self.by)

    def __call__(self, x: Tensor, out: Tensor) -> None:
        """(C,) -> out (d_ff,)."""
        made = self.product(x).view(-1)
        if self.plain_gelu:
            torch.addcmul(made, made, torch.erf(made), out=out)
        elif self.gated:
            gate, made = made.view(2, -1)
            torch.mul(self.activation(gate), made, out=out)
        elif self.activation is ACTIVATIONS["relu"].function:
            torch.clamp_min(made, 0, out=out)
        else:
            out.copy_(self.activation(made))


class Added:
    """A linear map whose result joins the residual stream, with the norm before or after.

    by: a factor for the product; the bias, as it is, is what 1 / by in the input's last place adds.
    """

    def __init__(self, linear: nn.Linear, residual: Residual, blocks: int, by: float = 1.0) -> None:
        self.weight, self.by = _blocks(_pack([linear]), blocks), by
        self.n_blocks = len(self.weight)
        self.norm = Norm(residual.norm)
        self.norm_first = residual.norm_first

    def before(self, x: Tensor) -> Tensor:
        """What the sub-layer reads of the stream."""
        return self.norm(x) if self.norm_first else x

    def __call__(self, rows: Tensor, stream: Tensor, out: Tensor) -> Tensor:
        """rows: (blocks, 1, in + 1); stream, out: (C,). Returns out."""
        parts = (self.n_blocks, 1, -1)
        torch.baddbmm(stream.view(parts), rows, self.weight, alpha=self.by, out=out.view(parts))
        return out if self.norm_first else out.copy_(self.norm(out))


class WithBias:
    """An input of `Added`: inner (n,), and all of it for each block, (blocks, 1, n + 1)."""

    def __init__(self, size: int, added: Added) -> None:
        whole = torch.full((size + 1,), 1 / added.by)
        self.inner = whole[:size]
        self.rows = whole.expand(added.n_blocks, 1, -1)


def _pack(maps: Sequence[nn.Linear]) -> Tensor:
    """(in + 1, out): weights side by side and a row of biases; the maps become views of it.

    An embedding that is tied to a map is the same parameter and becomes that view too.
    """
    rows = torch.cat([torch.cat([m.weight.T, _bias(m)[None]]) for m in maps], dim=1).detach()
    for linear, columns in zip(maps, rows.split([m.out_features for m in maps], 1), strict=True):
        linear.weight.data = columns[:-1].T
        if linear.bias is not None:
            linear.bias.data = columns[-1]
    return rows


def _bias(linear: nn.Linear) -> Tensor:
    """Its bias, or zeros."""
    bias: Tensor | None = linear.bias
    return torch.zeros(linear.out_features) if bias is None else bias


def _blocks(columns: Tensor, blocks: int) -> Tensor:
    """(in, out) -> (blocks, in, out / blocks), a view; one block where out cannot be cut."""
    n_out = columns.shape[1]
    count = blocks if n_out % blocks == 0 else 1
    return columns.unflatten(1, (count, n_out // count)).transpose(0, 1)

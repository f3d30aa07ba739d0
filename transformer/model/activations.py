"""Activations: the non-linearity between a feed-forward's two linear maps.

To add one: a line in ACTIVATIONS. Configuration, network, drawing and tests follow; an engine that
does not know it leaves the network to itself. An activation is a function of each number alone and
has nothing to train.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Activation:
    """title: its name on the page. does: what it does to a number. function: any shape -> same."""

    title: str
    does: str
    function: Callable[[Tensor], Tensor]


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(title="ReLU", does="what is below 0 becomes 0", function=F.relu),
    "gelu": Activation(
        title="GELU",
        does="what is far below 0 becomes 0, with a smooth transition around it",
        function=F.gelu,
    ),
    "gelu-tanh": Activation(
        title="GELU (tanh)",
        does="nearly GELU, by a formula with tanh: what is far below 0 becomes 0",
        function=partial(F.gelu, approximate="tanh"),
    ),
    "silu": Activation(
        title="SiLU",
        does="x times its logistic function: what is far below 0 becomes 0, softly",
        function=F.silu,
    ),
}

"""One more entry for each table of the network's parts, with only what an entry must have."""

import torch
from torch import Tensor, nn

from transformer.model.positions import Encoding
from transformer.model.primitives import Activation, Norm


class Ramp(nn.Module):
    """Place p adds p / max_len to every feature, times a trained factor."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.ones(1))
        ramp = torch.arange(max_len)[:, None] / max_len
        self.register_buffer("ramp", ramp.expand(max_len, d_model), persistent=False)

    @property
    def matrix(self) -> Tensor:
        return (self.factor * self.get_buffer("ramp")).detach()

    def forward(self, positions: Tensor) -> Tensor:
        return self.factor * self.get_buffer("ramp")[positions]


class Near(nn.Module):
    """Every head adds 1 to the score of the same token and of the one before it."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        behind = queries[..., :, None] - keys[..., None, :]
        near = ((behind == 0) | (behind == 1)).float()
        return near.unsqueeze(-3).expand(*near.shape[:-2], self.n_heads, -1, -1)


ODD = Norm(
    title="Odd norm", does="Divides {size} features", make=lambda size, eps: nn.RMSNorm(size, eps)
)
SINUS = Activation(title="Sinus", does="waves", function=torch.sin)
RAMP = Encoding(title="Ramp", does="Up to {max_len}.", short="one", make=Ramp)
NEAR = Encoding(title="Near", does="Reads what is near.", short="near", bias=Near)
NOTHING = Encoding(title="No positions", does="Nothing is told.", short="none")

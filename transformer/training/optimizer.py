"""What updates the weights of a training: Muon or Adam, with decay in the matrices alone."""

from __future__ import annotations

import torch
from torch import nn

from transformer.training.muon import Muon
from transformer.training.recipe import Settings
from transformer.training.side_by_side import check_gradients, side_by_side


def make_optimizer(
    network: nn.Module, settings: Settings, dtype: torch.dtype = torch.float32
) -> torch.optim.Optimizer:
    """The recipe's optimizer; weights decay in the matrices between activations alone.

    Embeddings, norms and biases do not decay, and under "muon" Adam updates them. Its parameters
    are those of `side_by_side`: reset their gradients with zero_grad(set_to_none=False).
    """
    embeddings = {id(m.weight) for m in network.modules() if isinstance(m, nn.Embedding)}
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for parameter in filter(lambda one: one.requires_grad, network.parameters()):
        decays = parameter.dim() >= 2 and id(parameter) not in embeddings
        (matrices if decays else others).append(parameter)
    wholes, rest = side_by_side(matrices), side_by_side(others)
    decay, betas = settings.weight_decay, settings.betas
    optimizer: torch.optim.Optimizer
    if settings.optimizer == "muon":
        optimizer = Muon(wholes, rest, weight_decay=decay, betas=betas, dtype=dtype)
    else:
        groups = [
            {"params": wholes, "weight_decay": decay},
            {"params": rest, "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, betas=betas, fused=True)
    optimizer.register_step_pre_hook(check_gradients)
    return optimizer

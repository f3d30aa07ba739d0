"""Muon against PyTorch's own; parameters side by side against the same updated one by one."""

import copy

import pytest
import torch
from torch import nn

from transformer.training.recipe import Settings
from transformer.training.updates import Muon, make_optimizer


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(6, 6), (4, 10), (10, 4)])
def test_each_of_several_matrices_moves_as_under_torch_muon(shape, dtype):
    """However large its gradients are beside those of the others."""
    torch.manual_seed(0)
    sizes = torch.tensor([1.0, 100.0, 0.01])[:, None, None]
    ours = nn.Parameter(torch.randn(3, *shape))
    theirs = [nn.Parameter(matrix.clone()) for matrix in ours.detach()]
    mine = Muon([ours], [], lr=0.02, weight_decay=0.1, dtype=dtype)
    peer = torch.optim.Muon(
        theirs, lr=0.02, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"
    )
    for _ in range(5):
        ours.grad = sizes * torch.randn(3, *shape)
        for matrix, gradient in zip(theirs, ours.grad, strict=True):
            matrix.grad = gradient.clone()
        mine.step()
        peer.step()
    assert torch.allclose(ours, torch.stack(list(theirs)), atol=5e-3)  # theirs is in bfloat16


def test_other_parameters_move_as_under_adam():
    torch.manual_seed(0)
    ours, theirs = nn.Parameter(torch.randn(7)), nn.Parameter(torch.empty(7))
    theirs.data.copy_(ours.data)
    mine = Muon([], [ours], lr=0.01, betas=(0.9, 0.99))
    peer = torch.optim.Adam([theirs], lr=0.01, betas=(0.9, 0.99))
    for _ in range(5):
        gradient = torch.randn(7)
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        mine.step()
        peer.step()
    assert torch.allclose(ours, theirs, atol=1e-6)


def test_a_network_is_updated_as_by_torch_adamw(tiny_model):
    ours, theirs = (copy.deepcopy(tiny_model.network).requires_grad_(True) for _ in range(2))
    settings = Settings(optimizer="adamw", weight_decay=0.1)
    optimizer = make_optimizer(ours, settings)
    embeddings = {"embedding.tokens.weight", "embedding.positions.table.weight"}
    named = list(theirs.named_parameters())
    parts = [[], []]
    for name, parameter in named:
        parts[parameter.dim() > 1 and name not in embeddings].append(parameter)
    plain, decaying = ({"params": part} for part in parts)
    groups = [plain | {"weight_decay": 0.0}, decaying | {"weight_decay": 0.1}]
    peer = torch.optim.AdamW(groups, betas=settings.betas)
    for group in [*optimizer.param_groups, *peer.param_groups]:
        group["lr"] = 1e-2
    for network, updates in ((ours, optimizer), (theirs, peer)):
        for _ in range(3):
            network(torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])).square().mean().backward()
            updates.step()
            updates.zero_grad(set_to_none=updates is peer)
    for (name, mine), wanted in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        # A key's bias adds one number to all of a query's scores: its gradient is but noise.
        assert name.endswith("key.bias") or torch.allclose(mine, wanted, atol=1e-6), name
    assert sum(len(group["params"]) for group in optimizer.param_groups) < len(named) / 2

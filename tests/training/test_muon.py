"""Muon against PyTorch's own, and its orthogonalisation against singular values."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from transformer.training.muon import Muon, orthogonalise


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(5, 9), (9, 5), (6, 6)])
def test_orthogonalised_matrices_have_singular_values_near_one(shape, dtype):
    torch.manual_seed(0)
    matrix = torch.randn(shape)
    found = orthogonalise(matrix, dtype)
    assert found.dtype is torch.float32
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.5
    assert values.max() < 1.3
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    cosine = torch.cosine_similarity(found.flatten(), (u @ v).flatten(), dim=0)
    assert cosine > 0.95


@pytest.mark.parametrize("shape", [(5, 9), (9, 5)])
def test_many_matrices_are_orthogonalised_each_for_itself(shape):
    torch.manual_seed(0)
    matrices = torch.randn(3, *shape) * torch.tensor([1.0, 100.0, 0.01])[:, None, None]
    together = orthogonalise(matrices)
    for found, matrix in zip(together, matrices, strict=True):
        assert torch.allclose(found, orthogonalise(matrix), atol=1e-5)


@pytest.mark.parametrize("shape", [(6, 6), (4, 10), (10, 4)])
def test_a_matrix_moves_as_under_torch_muon(shape):
    torch.manual_seed(0)
    ours, theirs = nn.Parameter(torch.randn(shape)), nn.Parameter(torch.empty(shape))
    theirs.data.copy_(ours.data)
    mine = Muon([ours], [], lr=0.02, weight_decay=0.1)
    peer = torch.optim.Muon(
        [theirs], lr=0.02, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"
    )
    for _ in range(5):
        gradient = torch.randn(shape)
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        mine.step()
        peer.step()
    assert torch.allclose(ours, theirs, atol=5e-3)  # theirs multiplies in bfloat16


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

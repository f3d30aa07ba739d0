"""The sliced cross-entropy against PyTorch's, in value and in gradient."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from transformer.training.loss import NUMBERS, summed_nats

V = 5000
ROWS = NUMBERS // V  # in a slice


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("n_rows", [1, ROWS, 2 * ROWS + 7])
def test_value_and_gradient_are_those_of_cross_entropy(smoothing, n_rows):
    torch.manual_seed(0)
    logits = (5 * torch.randn(n_rows, V)).requires_grad_()
    targets = torch.randint(V, (n_rows,))
    ours = summed_nats(logits, targets, smoothing)
    (found,) = torch.autograd.grad(ours / 3, logits)
    theirs = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    (wanted,) = torch.autograd.grad(theirs / 3, logits)
    assert float(ours.detach()) == pytest.approx(float(theirs.detach()), rel=1e-5)
    assert torch.allclose(found, wanted, atol=1e-6)


def test_half_precision_logits_are_summed_in_float32():
    torch.manual_seed(0)
    logits = torch.randn(600, 50).bfloat16().requires_grad_()
    targets = torch.randint(50, (600,))
    loss = summed_nats(logits, targets)
    loss.backward()
    wanted = F.cross_entropy(logits.detach().float(), targets, reduction="sum")
    assert loss.dtype is torch.float32
    assert float(loss.detach()) == pytest.approx(float(wanted), rel=1e-5)
    assert logits.grad is not None
    assert logits.grad.dtype is torch.bfloat16


def test_the_gradient_of_a_target_that_is_nearly_certain_is_not_rounded_away():
    logits = torch.tensor([[7.0, 0.0, 0.0]]).bfloat16().requires_grad_()
    summed_nats(logits, torch.tensor([0])).backward()
    wanted = torch.tensor([7.0, 0.0, 0.0]).softmax(-1) - torch.tensor([1.0, 0.0, 0.0])
    assert logits.grad is not None
    assert torch.allclose(logits.grad[0].float(), wanted, rtol=1e-2, atol=0)  # 1 - p is 0.0018

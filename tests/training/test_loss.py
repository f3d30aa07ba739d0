"""The losses against PyTorch's cross-entropy, in value and in gradient."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from builders import ids, network

from transformer.training.updates import NUMBERS, summed_nats

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
    assert logits.grad.dtype is torch.bfloat16


def test_the_gradient_of_a_target_that_is_nearly_certain_is_not_rounded_away():
    logits = torch.tensor([[7.0, 0.0, 0.0]]).bfloat16().requires_grad_()
    summed_nats(logits, torch.tensor([0])).backward()
    wanted = torch.tensor([7.0, 0.0, 0.0]).softmax(-1) - torch.tensor([1.0, 0.0, 0.0])
    assert torch.allclose(logits.grad[0].float(), wanted, rtol=1e-2, atol=0)  # 1 - p is 0.0018


TARGET = torch.tensor([[4, 7, 1, 9], [2, 5, 0, 0]])  # 0 is padding


def by_hand(logits, targets, counted, smoothing=0.0):
    """The mean over the counted (row, place) pairs, by the definition."""
    found = []
    for row, place in counted:
        says = logits[row, place].log_softmax(-1)
        hit, even = says[targets[row, place]], says.mean()
        found.append(-((1 - smoothing) * hit + smoothing * even))
    return torch.stack(found).mean()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_decoder_predicts_each_next_token_and_no_padding(smoothing):
    model = network()
    logits = model(TARGET[:, :-1])
    wanted = by_hand(logits, TARGET[:, 1:], [(0, 0), (0, 1), (0, 2), (1, 0)], smoothing)
    found = model.loss(TARGET, smoothing=smoothing)
    assert found.requires_grad
    torch.testing.assert_close(found, wanted)
    given = model.loss(TARGET[:, :-1], TARGET[:, 1:], smoothing=smoothing)
    torch.testing.assert_close(given, wanted)


def test_an_encoder_is_asked_only_where_there_is_a_target():
    model, tokens = network("encoder"), ids(2, 4)
    targets = torch.tensor([[-100, 7, -100, -100], [2, -100, -100, 0]])
    wanted = by_hand(model(tokens), targets, [(0, 1), (1, 0)])
    torch.testing.assert_close(model.loss(tokens, targets), wanted)


@pytest.mark.parametrize("padding", [0, 9])
def test_a_translator_predicts_its_target_from_the_source_and_its_past(padding):
    model, source = network("encoder-decoder", target_padding_id=padding), ids(2, 5)
    logits = model(source, TARGET[:, :-1])
    counted = [(r, p) for r in range(2) for p in range(3) if TARGET[r, p + 1] != padding]
    wanted = by_hand(logits, TARGET[:, 1:], counted)
    torch.testing.assert_close(model.loss(source, TARGET), wanted)

"""The losses against PyTorch's cross-entropy, in value and in gradient."""

import pytest
import torch
import torch.nn.functional as F
from kit.models import ids, network

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


def test_the_gradient_of_a_nearly_certain_target_is_not_rounded_away():
    logits = torch.tensor([[7.0, 0.0, 0.0]]).bfloat16().requires_grad_()
    loss = summed_nats(logits, torch.tensor([0]))
    loss.backward()
    assert loss.dtype is torch.float32
    wanted = torch.tensor([7.0, 0.0, 0.0]).softmax(-1) - torch.tensor([1.0, 0.0, 0.0])
    assert torch.allclose(logits.grad[0].float(), wanted, rtol=1e-2, atol=0)  # 1 - p is 0.0018


TARGET = torch.tensor([[4, 7, 1, 9], [2, 5, 0, 0]])  # 0 is padding


def over(logits, targets, rows, places, smoothing=0.0):
    """The mean over the tokens at these places of these rows."""
    chosen = logits[rows, places], targets[rows, places]
    return F.cross_entropy(*chosen, label_smoothing=smoothing)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_networks_loss_is_the_mean_over_predicted_tokens_not_padding(smoothing):
    decoder, encoder, tokens = network(), network("encoder"), ids(2, 4)
    told = {"smoothing": smoothing} if smoothing else {}  # none is the default
    is_text = TARGET != 0
    wanted = over(decoder(TARGET[:, :-1]), TARGET[:, 1:], [0, 0, 0, 1], [0, 1, 2, 0], smoothing)
    found = decoder.loss(TARGET, is_text=is_text, **told)
    assert found.requires_grad
    torch.testing.assert_close(found, wanted)
    asked = TARGET[:, 1:].masked_fill(~is_text[:, 1:], -100)
    given = decoder.loss(TARGET[:, :-1], asked, **told)
    torch.testing.assert_close(given, wanted)
    asked = torch.tensor([[-100, 7, -100, -100], [2, -100, -100, -100]])
    wanted = over(encoder(tokens), asked, [0, 1], [1, 0], smoothing)
    torch.testing.assert_close(encoder.loss(tokens, asked, **told), wanted)


@pytest.mark.parametrize("padded", [False, True])
def test_a_translator_predicts_its_target_from_the_source_and_its_past(padded):
    """Which ids are padding is told: the padding's own id counts where it is text."""
    model, source = network("encoder-decoder"), ids(2, 5)
    src, tgt = torch.ones(2, 5).bool(), (TARGET != 0) | (not padded)
    src[1, 3:] = not padded
    rows, places = tgt[:, 1:].nonzero().T
    logits = model(source, TARGET[:, :-1], src_is_text=src)
    wanted = over(logits, TARGET[:, 1:], rows, places)
    told = dict(src_is_text=src, tgt_is_text=tgt) if padded else {}
    torch.testing.assert_close(model.loss(source, TARGET, **told), wanted)

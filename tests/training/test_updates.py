"""Losses and optimizers against PyTorch's own, in value and in gradient."""

import copy

import pytest
import torch
import torch.nn.functional as F
from kit.models import ids, network
from torch import nn

from transformer.training.recipe import Settings
from transformer.training.updates import CHUNK_LOGITS, Muon, make_optimizer, summed_nats

V = 5000
ROWS = CHUNK_LOGITS // V  # in a slice


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
    options = {"smoothing": smoothing} if smoothing else {}  # none is the default
    is_text = TARGET != 0
    wanted = over(decoder(TARGET[:, :-1]), TARGET[:, 1:], [0, 0, 0, 1], [0, 1, 2, 0], smoothing)
    found = decoder.loss(TARGET, is_text=is_text, **options)
    assert found.requires_grad
    torch.testing.assert_close(found, wanted)
    labels = TARGET[:, 1:].masked_fill(~is_text[:, 1:], -100)
    given = decoder.loss(TARGET[:, :-1], labels, **options)
    torch.testing.assert_close(given, wanted)
    labels = torch.tensor([[-100, 7, -100, -100], [2, -100, -100, -100]])
    wanted = over(encoder(tokens), labels, [0, 1], [1, 0], smoothing)
    torch.testing.assert_close(encoder.loss(tokens, labels, **options), wanted)


@pytest.mark.parametrize("padded", [False, True])
def test_a_translator_predicts_its_target_from_the_source_and_its_past(padded):
    """Padding is given by the masks: the padding id counts where it is text."""
    model, source = network("encoder-decoder"), ids(2, 5)
    src, tgt = torch.ones(2, 5).bool(), (TARGET != 0) | (not padded)
    src[1, 3:] = not padded
    rows, places = tgt[:, 1:].nonzero().T
    logits = model(source, TARGET[:, :-1], src_is_text=src)
    wanted = over(logits, TARGET[:, 1:], rows, places)
    options = dict(src_is_text=src, tgt_is_text=tgt) if padded else {}
    torch.testing.assert_close(model.loss(source, TARGET, **options), wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(6, 6), (4, 10), (10, 4)])
def test_each_of_several_matrices_moves_as_under_torch_muon(shape, dtype):
    """However large its gradients are compared with the others'."""
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
    assert torch.allclose(ours, torch.stack(list(theirs)), atol=5e-3)  # PyTorch's is in bfloat16


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
    for trained, updates in ((ours, optimizer), (theirs, peer)):
        for _ in range(3):
            trained(torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])).square().mean().backward()
            updates.step()
            updates.zero_grad(set_to_none=updates is peer)
    for (name, mine), wanted in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        # A key's bias adds one number to all of a query's scores: its gradient is but noise.
        assert name.endswith("key.bias") or torch.allclose(mine, wanted, atol=1e-6), name
    assert sum(len(group["params"]) for group in optimizer.param_groups) < len(named) / 2

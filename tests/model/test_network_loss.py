"""What a network says its loss is, against PyTorch's cross-entropy worked out by hand."""

from __future__ import annotations

import pytest
import torch
from builders import ids, network

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
def test_a_decoder_foresees_each_next_token_and_no_padding(smoothing):
    model = network()
    logits = model(TARGET[:, :-1])
    wanted = by_hand(logits, TARGET[:, 1:], [(0, 0), (0, 1), (0, 2), (1, 0)], smoothing)
    torch.testing.assert_close(model.loss(TARGET, smoothing=smoothing), wanted)
    given = model.loss(TARGET[:, :-1], TARGET[:, 1:], smoothing=smoothing)
    torch.testing.assert_close(given, wanted)


def test_an_encoder_is_asked_only_where_there_is_a_target():
    model, tokens = network("encoder"), ids(2, 4)
    targets = torch.tensor([[-100, 7, -100, -100], [2, -100, -100, 0]])
    wanted = by_hand(model(tokens), targets, [(0, 1), (1, 0)])
    torch.testing.assert_close(model.loss(tokens, targets), wanted)


@pytest.mark.parametrize("padding", [0, 9])
def test_a_translator_foresees_its_target_from_the_source_and_its_past(padding):
    model, source = network("encoder-decoder", target_padding_id=padding), ids(2, 5)
    logits = model(source, TARGET[:, :-1])
    counted = [(r, p) for r in range(2) for p in range(3) if TARGET[r, p + 1] != padding]
    wanted = by_hand(logits, TARGET[:, 1:], counted)
    torch.testing.assert_close(model.loss(source, TARGET), wanted)


@pytest.mark.parametrize("family", ["decoder", "encoder", "encoder-decoder"])
def test_a_few_steps_on_the_loss_make_it_smaller(family):
    model = network(family).train()
    given = {
        "decoder": (TARGET,),
        "encoder": (TARGET, TARGET),
        "encoder-decoder": (TARGET.flip(1), TARGET),
    }[family]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    before = model.eval().loss(*given).item()
    for _ in range(20):
        optimizer.zero_grad()
        model.train().loss(*given).backward()
        optimizer.step()
    assert model.eval().loss(*given).item() < 0.5 * before

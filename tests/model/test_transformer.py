"""Whole networks: the three families and the presets."""

import pytest
import torch
from kit.models import ids, network
from torch import nn

from transformer import Trace
from transformer.model.cache import KeyValueCache

FAMILIES = ["decoder", "encoder", "encoder-decoder"]


def test_source_and_target_may_have_lengths_and_paddings_of_their_own():
    model = network("encoder-decoder", target_vocab_size=7, target_max_len=4, target_padding_id=6)
    source, target = torch.tensor([[12, 3, 6, 1, 1]]), torch.tensor([[5, 0, 2]])
    read = nn.functional.pad(source, (0, 2)), nn.functional.pad(target, (0, 1), value=6)
    padded = model(*read, src_is_text=torch.arange(7)[None] < 5)
    torch.testing.assert_close(padded[:, :3], model(source, target), atol=1e-5, rtol=1e-5)
    trace = Trace()
    model(source, target, trace=trace)  # 6 is text in the source, and 0 in the target
    assert bool(trace["decoder.0.cross"].allowed.all())
    assert torch.equal(trace["decoder.0.self"].allowed[0], torch.ones(3, 3).bool().tril())
    with pytest.raises(ValueError, match="at most 4 tokens fit this model; got 5"):
        model(source, torch.tensor([[1, 2, 3, 4, 5]]))
    assert model(ids(1, 9), target).shape == (1, 3, 7)
    assert model.target_embedding.positions.matrix.shape[0] == 4


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_longer_than_the_model_is_an_error_that_names_both(family):
    model, cache = network(family, positions="learned"), KeyValueCache()
    source = [ids(2, 3)] if family == "encoder-decoder" else []
    with pytest.raises(ValueError, match="at most 9 tokens fit this model; got 10"):
        model(*source, ids(2, 10))
    if family == "decoder":
        model(ids(2, 9), cache=cache)
        with pytest.raises(ValueError, match="at most 9 tokens fit this model; got 10"):
            model(ids(2, 1), cache=cache)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_network_is_exported_padded_or_not(family):
    """No step of a pass depends on what the ids are."""
    model, both = network(family).requires_grad_(False), family == "encoder-decoder"
    read = (ids(2, 6), ids(2, 4)) if both else (ids(2, 6),)
    is_text = {"src_is_text" if both else "is_text": torch.arange(6) < torch.tensor([[6], [3]])}
    for told in ({}, is_text):
        exported = torch.export.export(model, read, told).module()
        other = tuple(one.flip(-1) for one in read)
        torch.testing.assert_close(exported(*other, **told), model(*other, **told))

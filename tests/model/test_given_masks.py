"""Masks that the caller gives, against the network's own and against PyTorch's attention."""

import pytest
import torch
from kit.interventions import close
from kit.models import ids, network

from transformer import Trace
from transformer.model.cache import KeyValueCache
from transformer.model.functional import causal_mask

T, TS = 6, 7


@pytest.mark.parametrize("family", ["decoder", "encoder"])
def test_a_given_mask_replaces_the_networks_own(family):
    model, tokens, trace = network(family), ids(2, T), Trace()
    window = (torch.arange(T)[:, None] - torch.arange(T)).abs() < 2  # one to either side
    logits = model(tokens, mask=window, trace=trace)
    for record in trace.records.values():
        assert torch.equal(record.allowed, window.expand(2, T, T))
        wanted = record.scores.masked_fill(~window, -torch.inf).softmax(-1)
        torch.testing.assert_close(record.pattern, wanted)
    close(model(tokens, mask=window), logits)  # the fused kernel reads it too


def test_a_source_mask_also_hides_keys_from_cross_attention():
    model, source, target = network("encoder-decoder"), ids(1, TS), ids(1, T)
    first_five = (torch.arange(TS) < 5)[None, None, None]
    short = model(source[:, :5], target)
    close(model(source, target, src_mask=first_five), short)
    trace = Trace()
    own = torch.eye(T, dtype=torch.bool)
    model(source, target, src_mask=causal_mask(TS, TS), tgt_mask=own, trace=trace)
    assert torch.equal(trace["encoder.0.self"].allowed[0], causal_mask(TS, TS))
    assert torch.equal(trace["decoder.1.self"].allowed[0], own)
    assert bool(trace["decoder.0.cross"].allowed.all())


def test_a_given_mask_and_a_cache_read_a_text_piece_by_piece():
    model, tokens, cache = network(), ids(1, T), KeyValueCache()
    window = causal_mask(T, T) & (torch.arange(T)[:, None] - torch.arange(T) < 3)
    whole = model(tokens, mask=window)
    first = model(tokens[:, :4], mask=window[:4, :4], cache=cache)
    rest = model(tokens[:, 4:], mask=window[4:], cache=cache)
    close(torch.cat([first, rest], dim=1), whole)


MASKS = [
    (torch.ones(T, T), "must be bool, True = may attend; got torch.float32; needed: mask == 1"),
    (torch.ones(T, T).bool()[:-1], r"must be of shape \(6, 6\) or .*; got \(5, 6\)"),
    (torch.ones(2, T, T).bool(), r"got \(2, 6, 6\)"),
    (torch.ones(2, 3, T, T).bool(), r"got \(2, 3, 6, 6\)"),
    (torch.ones(T).bool(), r"got \(6,\)"),
]


@pytest.mark.parametrize("family", ["decoder", "encoder"])
@pytest.mark.parametrize(("mask", "sentence"), MASKS)
def test_a_mask_of_another_kind_gets_a_sentence(mask, sentence, family):
    with pytest.raises(ValueError, match=sentence):
        network(family)(ids(2, T), mask=mask)


def test_more_queries_than_keys_is_an_error_that_names_both():
    with pytest.raises(ValueError, match="got 4 queries, 3 keys"):
        causal_mask(4, 3)

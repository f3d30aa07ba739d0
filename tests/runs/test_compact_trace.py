"""Scores and weights that are computed again, and what a trace takes."""

import dataclasses

import numpy as np
import pytest
import torch
from kit.models import ids, network

from transformer import Ablate, AttentionRecord, Break, EditMask, Site, Trace
from transformer.interventions.hooks import hooks_of
from transformer.runs.compact_trace import (
    QKV,
    CompactedRecords,
    bytes_of,
    qkv_of,
    row_of,
    to_device,
)
from transformer.runs.head_data import head_view, n_heads_at, one_head
from transformer.server.kept.service import on_cpu
from transformer.server.kept.store import size_of


def recorded(family="decoder", records=None, **changes):
    model, trace = network(family, **changes), Trace(records={} if records is None else records)
    tokens = torch.tensor([[4, 7, 1, 12, 3, 5], [6, 2, 9, 0, 0, 0]])
    given = [tokens, ids(2, 7)] if family == "encoder-decoder" else [tokens]
    with torch.inference_mode():
        model(*given, trace=trace)
    return trace


def compact(trace):
    """The same records, stored as they are while a pass is made."""
    made = Trace(records=CompactedRecords(exact=True), residuals=trace.residuals)
    made.records.update(trace.records)
    return made


def test_a_record_not_made_by_the_network_is_stored_unchanged():
    weights, site = torch.rand(1, 2, 3, 3), Site("decoder", 0, "self")
    trace = Trace()
    trace.record_attention(site, weights, weights, None)
    again = compact(trace)
    assert again[site].pattern is trace[site].pattern
    assert again[site].q is None
    other = AttentionRecord(site=site, scores=2 * weights, pattern=weights, mask=None)
    again.records[site] = other
    assert again[site] is other
    del again.records[site]
    with pytest.raises(ValueError, match="no record of site"):
        again[site]


def test_moving_a_compact_trace_keeps_it_equal_and_compact():
    trace = compact(recorded("encoder-decoder"))
    there = to_device(trace, "cpu")
    assert bytes_of(there) == bytes_of(trace)
    for site in trace.sites:
        assert there[site].pattern.equal(trace[site].pattern)
    for stack in trace.residuals:
        assert all(map(torch.equal, there.residuals[stack], trace.residuals[stack]))
    assert to_device(recorded(), "cpu")["decoder.0.self"].pattern is not None
    k = qkv_of(recorded(n_key_heads=1)["decoder.0.self"], 3).k
    assert k.shape[1] == 1
    assert k.untyped_storage().nbytes() == k.nbytes  # no view of all that the heads read


def test_the_store_weighs_all_that_is_kept_and_leaves_no_logits_behind(tiny_model):
    run = tiny_model.generate("the fox", max_new_tokens=6)
    waiting = [step.candidates for step in run.steps]
    assert all(candidates.pending is not None for candidates in waiting)
    assert on_cpu(run) is run
    assert all(candidates.pending is None for candidates in waiting)
    assert size_of(run) >= bytes_of(run.trace) > 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; none is present")
@pytest.mark.parametrize("settings", [{}, {"temperature": 1.1, "seed": 4}])
def test_a_gpu_keeps_the_trace_until_it_is_moved(tiny_model, settings):
    moved_model = tiny_model.to("cuda")
    assert (moved_model.device.type, tiny_model.device.type) == ("cuda", "cpu")
    there, here = (
        model.generate("the fox", max_new_tokens=8, **settings)
        for model in (moved_model, tiny_model)
    )
    assert there.ids == here.ids
    assert there.engine == "network"
    moved_run = on_cpu(there)
    for site in here.trace.sites:
        assert there.trace[site].pattern.device.type == "cuda"
        weights = moved_run.trace[site].pattern
        assert weights.device.type == "cpu"
        torch.testing.assert_close(weights, here.trace[site].pattern, atol=1e-4, rtol=0)


def test_a_mask_shared_by_all_texts_stays_complete_for_each():
    trace, mask = Trace(), torch.ones(3, 3, dtype=torch.bool).tril()
    weights = torch.rand(2, 1, 3, 3)
    trace.record_attention(Site("decoder", 0, "self"), weights, weights, mask)
    record = row_of(trace, 1, {"decoder": slice(None)})["decoder.0.self"]
    assert torch.equal(record.mask, mask)
    assert torch.equal(record.pattern, weights[1:])


@pytest.mark.parametrize("head", [None, 1])
def test_one_head_of_one_sentence_is_that_of_the_whole_record(tiny_encoder_decoder, head):
    batch = tiny_encoder_decoder.trace(["Hello", "The fox lived at the edge"])
    assert any(record.mask.shape[0] > 1 for record in batch.trace.records.values())
    in_full = Trace(records={site: batch.trace[site] for site in batch.trace.sites})
    for trace in (in_full, batch.trace, compact(batch.trace)):
        for site in trace.sites:
            whole, alone = trace[site], one_head(trace, site, 1, head)
            heads = slice(None) if head is None else slice(head, head + 1)
            assert n_heads_at(trace, site) == whole.scores.shape[1]
            torch.testing.assert_close(alone.scores, whole.scores[1:2, heads])
            torch.testing.assert_close(alone.pattern, whole.pattern[1:2, heads])
            assert torch.equal(alone.allowed, whole.allowed[1:2])
            item = dataclasses.replace(batch, trace=trace)
            view = head_view(item, site, "mean" if head is None else head, 1)
            np.testing.assert_allclose(view.scores, whole.scores[1, heads].mean(0), atol=1e-6)
            np.testing.assert_allclose(view.weights, whole.pattern[1, heads].mean(0), atol=1e-6)
            np.testing.assert_array_equal(view.allowed, whole.allowed[1])
            assert (view.vectors is None) == (head is None or trace is in_full)
            if view.vectors is not None:
                q, k = view.vectors
                np.testing.assert_allclose(q @ k.T / q.shape[1] ** 0.5, view.scores, atol=1e-5)
    for wrong in (whole.scores.shape[1], -1, "last"):
        with pytest.raises(ValueError, match=r"head must be a whole number from 0 to \d or 'mean'"):
            head_view(item, site, wrong, 1)


def replaced(name):
    def hook(point, value, **context):
        return value.flip(-1) if point.name == name else value

    return hook


def in_place(name, inner="value"):
    def hook(point, value, **context):
        if point.name == name:
            ({"value": value} | context)[inner].mul_(0.5)
        return value

    return hook


@pytest.mark.parametrize(
    ("hooks", "in_full"),
    [
        ([EditMask("decoder", 0, forbid=[(2, 1)])], False),
        ([Ablate("decoder", 1, [0])], False),
        ([Break("hard-attention")], True),
        ([Break("one-key-head")], False),
        ([replaced("k")], False),
        ([in_place("q")], False),
        ([replaced("scores")], True),
        ([in_place("scores")], True),
        ([in_place("pattern")], True),
        ([in_place("pattern", "scores")], True),
        ([in_place("pattern", "k")], True),
    ],
)
def test_an_altered_pass_stores_scores_that_qkv_cannot_reproduce(hooks, in_full):
    model, tokens, records = network("decoder"), ids(2, 7), CompactedRecords(exact=True)
    if not callable(hooks[0]):
        hooks = hooks_of(hooks, model.config)
    whole, stored = Trace(), Trace(records=records)
    with torch.no_grad():
        model(tokens, trace=whole, hooks=hooks)
        model(tokens, trace=stored, hooks=[records, *hooks])
    assert {isinstance(part, QKV) for part in records.parts.values()} == {not in_full}
    for site in whole.sites:
        for name in ("scores", "pattern", "q", "k", "v", "allowed"):
            assert getattr(stored[site], name).equal(getattr(whole[site], name)), (site, name)


def test_a_pass_that_records_more_than_it_may_ends_with_a_sentence():
    with pytest.raises(ValueError, match=r"record more than 0\.001 MB"):
        recorded(records=CompactedRecords(exact=True, most_bytes=1_000))
    recorded(records=CompactedRecords(exact=True))

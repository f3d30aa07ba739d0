"""One row worked out: every step is what plain arithmetic gives, and what the network recorded."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from pictured import planted
from torch.nn import functional as F

from transformer import Run, Site, Trace
from transformer.analysis.row_arithmetic import TOLERANCE
from transformer.views import attention_math, row_arithmetic


def made(run: Run, q: list[list[float]], k: list[list[float]], v: list[list[float]]) -> Run:
    """The run with one causal head whose queries, keys and values are these."""
    heads = tuple(torch.tensor(part)[None, None] for part in (q, k, v))
    scores = heads[0] @ heads[1].transpose(-2, -1) / math.sqrt(len(q[0]))
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
    trace = Trace()
    trace.record_attention(Site("decoder", 0, "self"), scores, weights, mask, heads)
    labels = tuple(f"t{place}" for place in range(len(q)))
    sizes = dict(d_model=len(q[0]), n_heads=1, max_len=max(len(q), run.config.max_len))
    config = run.config.replace(**sizes)
    return dataclasses.replace(run, config=config, trace=trace, labels=labels, trace_start=0)


def test_a_row_worked_by_hand(run):
    # D = 4, so the divisor is 2: the second query's dots are 2 ln 3 and 0, its weights 3/4 and 1/4.
    third = math.log(3.0)
    q = [[0.0, 0.0, 0.0, 0.0], [third, third, 0.0, 1.0], [0.0, 1.0, 2.0, 0.0]]
    k = [[1.0, 1.0, 5.0, 0.0], [0.0, 0.0, 7.0, 0.0], [9.0, 9.0, 9.0, 9.0]]
    v = [[4.0, 0.0, 8.0, -4.0], [0.0, 4.0, 8.0, 4.0], [100.0, 100.0, 100.0, 100.0]]
    found = row_arithmetic(made(run, q, k, v), "decoder.0.self", 0, 1)
    np.testing.assert_allclose(found.dots[:2], [2 * third, 0], rtol=1e-6)
    np.testing.assert_allclose(found.scores[:2], [third, 0], rtol=1e-6)
    np.testing.assert_array_equal(found.allowed, [True, True, False])
    np.testing.assert_allclose(found.exps, [1, 1 / 3, 0], rtol=1e-6)
    np.testing.assert_allclose(found.weights, [0.75, 0.25, 0], rtol=1e-6)
    np.testing.assert_allclose(found.output, [3, 1, 8, -2], rtol=1e-6)
    assert found.agrees


@pytest.mark.parametrize("site", ["encoder.1.self", "decoder.0.self", "decoder.1.cross"])
def test_every_row_agrees_with_the_networks_own_scores_weights_and_output(translation, site):
    record = translation.trace[site]
    mask = record.allowed[:, None]
    output = F.scaled_dot_product_attention(record.q, record.k, record.v, attn_mask=mask)
    for head in range(2):
        for query in range(record.pattern.shape[2]):
            found = row_arithmetic(translation, site, head, query)
            expected = record.pattern[0, head, query].numpy()
            np.testing.assert_allclose(found.weights, expected, atol=1e-6)
            np.testing.assert_allclose(
                found.scores, record.scores[0, head, query].numpy(), atol=1e-5
            )
            np.testing.assert_allclose(found.output, output[0, head, query].numpy(), atol=1e-5)
            assert found.weight_difference == np.abs(found.weights - expected).max()
            assert found.agrees


def test_a_sentence_of_a_batch_has_rows_of_its_own(batch):
    found = row_arithmetic(batch, "decoder.1.self", 1, 3, row=1)
    expected = batch.trace["decoder.1.self"].pattern[1, 1, 3].numpy()
    np.testing.assert_allclose(found.weights, expected, atol=1e-6)
    assert found.key_labels == batch.labels[1]


def test_numbers_that_were_changed_are_said_not_to_agree(run):
    record = run.trace["decoder.0.self"]
    bent = record.pattern.clone()
    bent[0, 1, 4, 2] += 2 * TOLERANCE
    trace = Trace(records={record.site: dataclasses.replace(record, pattern=bent)})
    changed = dataclasses.replace(run, trace=trace)
    assert not row_arithmetic(changed, record.site, 1, 4).agrees
    assert row_arithmetic(changed, record.site, 1, 4).weight_difference > TOLERANCE
    assert row_arithmetic(changed, record.site, 1, 3).agrees


def test_a_row_with_nothing_allowed_is_uniform_as_in_the_network(run):
    record = run.trace["decoder.0.self"]
    trace = Trace(records={record.site: dataclasses.replace(
        record,
        mask=torch.zeros_like(record.allowed[:, None]),
        pattern=torch.full_like(record.pattern, 1 / len(run.ids)),
    )})  # fmt: skip
    found = row_arithmetic(dataclasses.replace(run, trace=trace), record.site, 0, 2)
    np.testing.assert_allclose(found.weights, 1 / len(run.ids))
    assert found.agrees


def test_a_record_without_queries_is_refused(run):
    bare = planted(run, 5, (3, 1), 0.9)
    with pytest.raises(ValueError, match=r"decoder\.1\.self holds no queries, keys and values"):
        row_arithmetic(bare, "decoder.1.self", 0, 0)


def test_the_figure_draws_the_keys_q_the_bars_and_the_output(run):
    figure = attention_math(run, "decoder.1.self", 1, 4)
    found = row_arithmetic(run, "decoder.1.self", 1, 4)
    keys, q, scores, weights, output = figure.data
    record = run.trace["decoder.1.self"]
    np.testing.assert_array_equal(keys.z, record.k[0, 1].numpy())
    np.testing.assert_array_equal(q.z, record.q[0, 1, 4:5].numpy())
    np.testing.assert_array_equal(scores.x, found.scores)
    np.testing.assert_array_equal(weights.x, found.weights)
    np.testing.assert_allclose(output.z[0], found.output, rtol=1e-6)
    assert [shape == "/" for shape in weights.marker.pattern.shape] == list(~found.allowed)
    for cells in (keys, q, output):
        assert cells.zmax == -cells.zmin == np.abs(cells.z).max()
    assert "layer 1, head 1, query 4" in figure.layout.title.text

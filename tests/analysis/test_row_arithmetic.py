"""One row worked out: every step is what plain arithmetic gives, and what the network recorded."""

import dataclasses

import numpy as np
import pytest
import torch
from kit.runs import planted
from torch.nn import functional as F

from transformer import Trace
from transformer.analysis.row_arithmetic import TOLERANCE, row_arithmetic
from transformer.views.attention.attention_math import attention_math


@pytest.mark.parametrize("site", ["encoder.1.self", "decoder.0.self", "decoder.1.cross"])
def test_every_row_agrees_with_the_networks_own_scores_weights_and_output(translation, site):
    record = translation.trace[site]
    mask = record.allowed[:, None]
    output = F.scaled_dot_product_attention(record.q, record.k, record.v, attn_mask=mask)
    for head in range(2):
        for query in range(record.pattern.shape[2]):
            found = row_arithmetic(translation, site, head, query)
            expected = record.pattern[0, head, query].numpy()
            scores = record.scores[0, head, query].numpy()
            allowed = record.allowed[0, query].numpy()
            np.testing.assert_array_equal(found.allowed, allowed)
            np.testing.assert_allclose(found.scores, scores, atol=1e-5)
            np.testing.assert_allclose(found.dots, scores * 8**0.5, atol=1e-5)
            np.testing.assert_allclose(found.exps, expected / expected.max(), atol=1e-6)
            np.testing.assert_allclose(found.weights, expected, atol=1e-6)
            np.testing.assert_allclose(found.output, output[0, head, query].numpy(), atol=1e-5)
            assert found.weight_difference == np.abs(found.weights - expected).max()
            assert found.agrees


def test_a_sentence_of_a_batch_has_rows_of_its_own(batch):
    found = row_arithmetic(batch, "decoder.1.self", 1, 3, row=1)
    expected = batch.trace["decoder.1.self"].pattern[1, 1, 3].numpy()
    np.testing.assert_allclose(found.weights, expected, atol=1e-6)
    assert found.key_labels == batch.labels[1]


def test_changed_numbers_are_reported_as_different(run):
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

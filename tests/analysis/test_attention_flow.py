"""Mean, rollout and joint attention by hand and by loops; the colours' range."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pictured import with_weights

from transformer.analysis.attention_flow import joint_weights, mean_weights, rollout_weights
from transformer.views import PICTURES, attention_rollout

# Two layers x two heads of a causal text of two tokens.
WORKED = torch.tensor(
    [
        [[[1.0, 0.0], [0.25, 0.75]], [[1.0, 0.0], [0.75, 0.25]]],
        [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.5, 0.5]]],
    ]
)


def test_two_layers_worked_by_hand(run):
    worked = with_weights(run, WORKED)
    # Means: [[1, 0], [1/2, 1/2]] and [[1, 0], [3/4, 1/4]].
    np.testing.assert_array_equal(
        mean_weights(worked, "decoder", "self", 1), [[1, 0], [0.75, 0.25]]
    )
    np.testing.assert_array_equal(mean_weights(worked, "decoder", "self"), [[1, 0], [0.625, 0.375]])
    # Row 1 of the joint map: 3/4 of row 0 and 1/4 of row 1 of layer 0.
    np.testing.assert_array_equal(joint_weights(worked, "decoder"), [[1, 0], [0.875, 0.125]])
    # With the residual: [[1, 0], [1/4, 3/4]] and [[1, 0], [3/8, 5/8]].
    np.testing.assert_array_equal(rollout_weights(worked, "decoder", 0), [[1, 0], [0.25, 0.75]])
    np.testing.assert_array_equal(
        rollout_weights(worked, "decoder"), [[1, 0], [0.375 + 0.625 * 0.25, 0.625 * 0.75]]
    )


def test_a_layer_that_there_is_not_is_refused(run):
    for layer in (-1, 2, True, 0.5):
        with pytest.raises(ValueError, match="layer must be a whole number from 0 to 1, or None"):
            rollout_weights(run, "decoder", layer)


def test_rollout_is_every_path_through_the_layers_summed(translation):
    """An oracle without matrices: a token reaches a key over all tokens in between."""
    found = rollout_weights(translation, "encoder")
    n = len(translation.source_labels)
    means = [translation.trace["encoder", at, "self"].pattern[0].mean(dim=0) for at in (0, 1)]

    def step(layer: int, to: int, source: int) -> float:
        return 0.5 * float(means[layer][to, source]) + (0.5 if to == source else 0.0)

    for query in range(n):
        for key in range(n):
            expected = sum(step(1, query, via) * step(0, via, key) for via in range(n))
            assert found[query, key] == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)


def test_each_flow_is_drawn_and_sent_with_its_own_weights(run):
    for which, weights in (("rollout", rollout_weights), ("joint", joint_weights)):
        expected = weights(run, "decoder").astype("float32")
        asked = {"which": which, "stack": "decoder", "scale": "linear", "numbers": True}
        sent = PICTURES["flow"].ask(run, given=asked, item=run)["weights"]
        drawn = PICTURES[which].figure(run, "decoder").data[0].customdata
        np.testing.assert_array_equal(sent, expected)
        np.testing.assert_array_equal(drawn, expected)


def test_a_row_of_a_batch_reads_no_padding(two_way):
    found = rollout_weights(two_way, "encoder", row=0)
    real = two_way.padding[0].numpy()
    assert (found[np.ix_(real, ~real)] == 0).all()
    z = attention_rollout(two_way, "encoder", row=0).data[0].z
    assert np.isnan(z[:, ~real]).all()

"""Mean, rollout and joint attention by plain loops; the colours' range."""

import numpy as np
import pytest

from transformer.analysis.attention_flow import flow_weights
from transformer.views.attention.heatmap import attention_flow
from transformer.views.registry import PICTURES


@pytest.mark.parametrize(("which", "share"), [("rollout", 0.5), ("joint", 1.0)])
def test_a_flow_is_every_path_through_the_layers_summed(translation, which, share):
    """share: of a layer that its attention has; the rest stays where it is."""
    found, n = flow_weights(translation, "encoder", which), len(translation.source_labels)
    means = [translation.trace["encoder", at, "self"].pattern[0].mean(dim=0) for at in (0, 1)]
    layers = [flow_weights(translation, "encoder", layer=at) for at in (0, 1)]
    np.testing.assert_allclose(layers, np.stack(means), atol=1e-6)
    mean = flow_weights(translation, "encoder")
    np.testing.assert_allclose(mean, (means[0] + means[1]) / 2, atol=1e-6)

    def step(layer: int, to: int, source: int) -> float:
        return share * float(means[layer][to, source]) + (1 - share) * (to == source)

    for query in range(n):
        for key in range(n):
            expected = sum(step(1, query, via) * step(0, via, key) for via in range(n))
            assert found[query, key] == pytest.approx(expected, abs=1e-6)
            first = flow_weights(translation, "encoder", which, layer=0)[query, key]
            assert first == pytest.approx(step(0, query, key), abs=1e-6)
    parameters = {"which": which, "stack": "encoder", "scale": "linear", "numbers": True}
    sent = PICTURES["flow"].ask(translation, given=parameters, item=translation)["weights"]
    drawn = attention_flow(translation, "encoder", which).data[0].customdata
    np.testing.assert_array_equal(sent, found.astype("float32"))
    np.testing.assert_array_equal(drawn, sent)


def test_a_row_of_a_batch_reads_no_padding(two_way):
    found = flow_weights(two_way, "encoder", "rollout", row=0)
    real = two_way.padding[0].numpy()
    assert (found[np.ix_(real, ~real)] == 0).all()
    z = attention_flow(two_way, "encoder", "rollout", row=0).data[0].z
    assert np.isnan(z[:, ~real]).all()

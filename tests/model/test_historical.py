"""Two departures from the paper that tutorials have spread: what they compute, worked out anew."""

from __future__ import annotations

import pytest
from altered import FAMILIES, attention_of, close, given, read
from builders import C, H, network

from transformer import Trace
from transformer.interventions.breaks import breaks_of
from transformer.interventions.descriptions import Break
from transformer.interventions.hooks import hooks_of
from transformer.model.sites import sites_of

D = C // H


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_may_be_divided_by_the_root_of_d_model(family):
    usual, other = network(family), network(family, score_divisor="d_model")
    other.load_state_dict(usual.state_dict())
    text = given(usual, 2)
    broken = hooks_of([Break("model-scale")], usual.config)
    close(read(other, text), read(usual, text, hooks=broken))
    undivided = [hooks_of([Break("no-scale")], each.config) for each in (usual, other)]
    close(read(other, text, hooks=undivided[1]), read(usual, text, hooks=undivided[0]))
    assert "model-scale" not in breaks_of(other.config)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_small_projection_may_serve_all_heads(family):
    model, trace = network(family, shared_projection=True), Trace()
    text = given(model, 2)
    read(model, text, trace=trace)
    for site in sites_of(model.config):
        attention = attention_of(model, site)
        assert attention.query.weight.shape == attention.value.weight.shape == (D, D)
        assert attention.output.weight.shape == (C, C)
    first = sites_of(model.config)[0]
    stack = getattr(model, first.stack)
    x = trace.embed[first.stack] + trace.pos_embed[first.stack]
    x = stack.layers[0].self_residual.norm(x)
    query = attention_of(model, first).query
    for head in range(H):
        share = x[..., head * D : (head + 1) * D]
        close(trace[first].q[:, head], share @ query.weight.T + query.bias)

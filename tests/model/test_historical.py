"""Two departures from the paper that tutorials have spread: what they compute, worked out anew."""

from __future__ import annotations

import math

import pytest
import torch
from altered import FAMILIES, attention_of, close, given, read
from builders import C, H, network, save_model, tiny

from transformer import Trace, load, read_npz
from transformer.analysis.row_arithmetic import row_arithmetic
from transformer.interventions.breaks import breaks_of
from transformer.interventions.descriptions import Break
from transformer.interventions.hooks import hooks_of
from transformer.model.sites import sites_of
from transformer.views.architecture.parts import words

D = C // H


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_may_be_divided_by_the_root_of_d_model(family):
    usual, other = network(family), network(family, score_divisor="d_model")
    other.load_state_dict(usual.state_dict())
    text, trace = given(usual, 2), Trace()
    first = sites_of(usual.config)[0]
    read(other, text, trace=trace)
    record = trace[first]
    close(record.scores, record.q @ record.k.mT / math.sqrt(C))
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


@pytest.mark.parametrize("option", [{"score_divisor": "d_model"}, {"shared_projection": True}])
def test_a_run_holds_what_such_a_network_did_and_travels_with_it(option, tokenizer, tmp_path):
    model = tiny("history", "decoder", tokenizer, **option)
    run = model.generate("the fox said", max_new_tokens=5)
    trace = Trace()
    read(model.network, (torch.tensor([run.ids]),), trace=trace)
    run.to_npz(tmp_path / "run.npz")
    for each in (run, read_npz(tmp_path / "run.npz")):
        close(each.trace.weights("decoder"), trace.weights("decoder"))
        close(each.trace.scores("decoder"), trace.scores("decoder"))
    assert row_arithmetic(run, "decoder.1.self", 1).agrees
    save_model(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.engine is None
    assert again.generate("the fox said", max_new_tokens=5).ids == run.ids


def test_the_drawing_labels_them_as_history():
    from transformer.model.summary import blocks

    config = network(shared_projection=True, score_divisor="d_model").config
    said = next(words(config, block).does for block in blocks(config) if block.kind == "self")
    assert said.count("Historical: ") == 2
    usual = network().config
    said = next(words(usual, block).does for block in blocks(usual) if block.kind == "self")
    assert "Historical" not in said

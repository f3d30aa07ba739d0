"""A layer at one position, repeated from what a run recorded."""

import copy
import dataclasses

import pytest
import torch
from kit.models import EIGHT, model_of

from transformer import PRESETS, Ablate
from transformer.analysis.layer_at_position import layer_at_position
from transformer.model.config import preset

TEXT = "the fox said hello"


@pytest.mark.parametrize("name", PRESETS)
def test_a_layer_at_a_position_reproduces_the_recorded_stream(name, tokenizer):
    sizes = dict(d_model=24, n_heads=3, n_layers=2, d_ff=40, max_len=20)
    known = dict(vocab_size=tokenizer.vocab_size, **EIGHT.get(name, {}))
    model = model_of(name, preset(name, **sizes, **known), tokenizer)
    run, shown = model.trace(TEXT), {}

    def keep(point, value, **beside):
        shown[point[:3]] = value
        return value

    read = [torch.tensor([ids]) for ids in (run.source_ids, run.ids) if ids]
    with torch.inference_mode():
        model.network(*read, hooks=[keep])
    for stack, streams in run.trace.residuals.items():
        place = streams[0].shape[1] - 1
        for layer in range(2):
            found = layer_at_position(model, run, stack, layer, place)
            assert found.agrees
            assert found.parts[0].stream.equal(streams[layer][0, place])
            added = shown["mlp_out", stack, layer][0, place]
            torch.testing.assert_close(found.feed_forward.out, added, atol=1e-4, rtol=1e-4)
            assert (found.feed_forward.gate is not None) == model.config.gated
    stack = model.network.last_stack.name
    half = dataclasses.replace(model, network=copy.deepcopy(model.network).bfloat16())
    assert layer_at_position(half, half.trace(TEXT), stack, 1, 0).agrees  # but for its rounding
    off = model.trace(TEXT)
    with torch.inference_mode():
        off.trace.residuals[stack][2][0, 0, 0] += 0.02
    assert not layer_at_position(model, off, stack, 1, 0).agrees
    ablated = model.trace(TEXT, [Ablate(stack, 1, heads=[0])])
    agree = [layer_at_position(model, ablated, stack, layer, 0).agrees for layer in range(2)]
    assert agree == [True, False]

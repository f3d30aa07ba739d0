"""A layer and a sampled step at one place, repeated from what a run recorded."""

import copy
import dataclasses

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.models import EIGHT, model_of
from transformers import MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from transformer.analysis.layer_at_position import layer_at_position
from transformer.analysis.step_filters import step_filters
from transformer.interventions.descriptions import Ablate, Break
from transformer.model.config import PRESETS, preset

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
    ablated = model.trace(TEXT, [Ablate(stack, 1, heads=[0])])
    agree = [layer_at_position(model, ablated, stack, layer, 0).agrees for layer in range(2)]
    assert agree == [True, False]


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(
    temperature=st.sampled_from([0.5, 2.0]),
    top_k=st.none() | st.integers(1, 40),
    top_p=st.none() | st.sampled_from([0.5, 0.95]),
    min_p=st.none() | st.sampled_from([0.01, 0.2]),
    broken=st.booleans(),
)
def test_the_filters_of_a_step_are_those_it_was_drawn_with(
    tiny_model, temperature, top_k, top_p, min_p, broken
):
    options = dict(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, seed=3)
    altered = [Break("no-final-norm")] if broken else []
    run = tiny_model.generate(TEXT, max_new_tokens=4, interventions=altered, **options)
    for index, step in enumerate(run.steps):
        found = step_filters(tiny_model, run, index)
        assert found is not None
        left = found.logits[None] / temperature
        torch.testing.assert_close(found.scaled, left[0])
        for name, warper in (
            ("top_k", TopKLogitsWarper), ("top_p", TopPLogitsWarper), ("min_p", MinPLogitsWarper),
        ):  # fmt: skip
            assert (name in found.kept) == (options[name] is not None)
            if options[name] is not None:
                left = warper(options[name])(None, left)
                torch.testing.assert_close(found.kept[name], left[0])
        for one in step.candidates:
            assert float(found.probabilities[one.id]) == pytest.approx(
                one.sampling_probability, abs=1e-5
            )


def test_step_filters_are_none_after_the_window_slides(tiny_model):
    slid = tiny_model.generate(TEXT, max_new_tokens=40, temperature=2.0, seed=3)
    assert step_filters(tiny_model, slid, 0) is None
    assert step_filters(tiny_model, slid, len(slid.steps) - 1) is None

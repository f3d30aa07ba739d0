"""One feed-forward at one token, against PyTorch's own hooks on the modules."""

import pytest
import torch
from kit.models import tiny

from transformer import Ablate
from transformer.analysis.feed_forward import feed_forward_at
from transformer.analysis.journey import journey

TEXT = "hello to the fox"
SHAPES = {
    "pre": dict(activation="gelu"),
    "post": dict(norm="post"),
    "gated": dict(norm_kind="rms", activation="silu", gated=True, positions="rotary"),
    "parallel": dict(parallel=True),
}


@pytest.fixture(params=SHAPES)
def model(request, tokenizer):
    """Without biases, so that neurons are all that a feed-forward writes."""
    shape = dict(feed_forward_bias=False) | SHAPES[request.param]
    return tiny(request.param, "decoder", tokenizer, **shape)


def test_neurons_add_up_to_their_feed_forward(model, monkeypatch):
    monkeypatch.setattr("transformer.analysis.feed_forward.N_NEURONS", 10_000)
    run = model.trace(TEXT)
    for layer in range(model.config.n_layers):
        contract = model.network.last_stack.layers[layer].feed_forward.contract
        seen = []
        handle = contract.register_forward_pre_hook(lambda _, read, seen=seen: seen.append(read[0]))
        with torch.no_grad():
            model.network(torch.tensor([run.ids]))
        handle.remove()
        place = len(run.ids) - 2
        found = feed_forward_at(model, run, "decoder", layer, place)
        assert len(found.neurons) == found.n_neurons == model.config.d_ff
        for neuron in found.neurons:
            activations = seen[0][0, : place + 1, neuron.index]
            torch.testing.assert_close(neuron.activations, activations, rtol=1e-4, atol=1e-5)
            assert neuron.activation == pytest.approx(float(activations[-1]), rel=1e-4, abs=1e-5)
        parts = journey(model, run, place).parts
        assert parts is not None
        whole = sum(neuron.adds or 0 for neuron in found.neurons)
        assert whole == pytest.approx(float(parts.feed_forward[layer]), rel=1e-3, abs=1e-4)


def test_logits_without_it_are_the_network_s_with_its_output_at_0(model):
    run = model.trace(TEXT)
    feed_forward = model.network.last_stack.layers[0].feed_forward
    found = feed_forward_at(model, run, "decoder", 0)
    handle = feed_forward.register_forward_hook(lambda _, read, made: 0 * made)
    with torch.no_grad():
        wanted = model.network(torch.tensor([run.ids]))[0, -1]
    handle.remove()
    torch.testing.assert_close(found.logits, wanted, rtol=1e-4, atol=1e-4)


def test_a_feed_forward_that_is_off_is_tried_as_if_it_were_on(tokenizer):
    model = tiny("tiny", "decoder", tokenizer)
    off = [Ablate("decoder", 1, part="mlp_out")]
    intact, altered = model.trace(TEXT), model.trace(TEXT, off)
    with_it, without = (feed_forward_at(model, run, "decoder", 1) for run in (altered, intact))
    assert not with_it.neurons
    assert without.neurons
    new = dict(max_new_tokens=len(with_it.written) or 1)
    assert with_it.written == model.generate(TEXT, **new).ids[len(intact.ids) :]
    assert (
        without.written[:1]
        == model.generate(TEXT, max_new_tokens=1, interventions=off).ids[len(intact.ids) :]
    )


def test_a_neuron_writes_the_tokens_that_its_output_makes_likelier(tokenizer):
    model = tiny("tiny", "decoder", tokenizer)
    run = model.trace(TEXT)
    neuron = feed_forward_at(model, run, "decoder", 1).neurons[0]
    network = model.network
    column = network.last_stack.layers[1].feed_forward.contract.weight[:, neuron.index]
    vector = neuron.activation * column
    vector = (vector - vector.mean()) * network.last_stack.norm.weight
    order = (network.head.weight @ vector).argsort(descending=True).tolist()
    readable = [
        one for one in order if not tokenizer.is_special(one) and "‹" not in tokenizer.label(one)
    ]
    assert list(neuron.writes) == readable[:3]


def test_an_encoder_before_a_decoder_has_no_neurons_that_add(tiny_encoder_decoder):
    run = tiny_encoder_decoder.generate("the fox", max_new_tokens=3)
    found = feed_forward_at(tiny_encoder_decoder, run, "encoder", 0)
    assert found.neurons == ()
    with pytest.raises(ValueError, match=r"no site encoder\.9\.self"):
        feed_forward_at(tiny_encoder_decoder, run, "encoder", 9)

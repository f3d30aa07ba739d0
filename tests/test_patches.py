"""ActivationCache of another run patched into a network: in itself, at a place, in chosen heads."""

from __future__ import annotations

from kit.interventions import T, close, given, read
from kit.models import L, network

from transformer.interventions.descriptions import Patch
from transformer.interventions.hooks import ActivationCache, hooks_of


def activations_of(model, text):
    cache = ActivationCache()
    read(model, text, hooks=[cache])
    return cache


def test_all_of_the_last_layers_stream_makes_the_other_runs_prediction():
    model = network()
    text, other = given(model), given(model)
    patch = Patch("decoder", L - 1, range(T), "other")
    hooks = hooks_of([patch], model.config, {"other": activations_of(model, other)})
    close(read(model, text, hooks=hooks), read(model, other))


def test_patched_heads_are_the_chosen_ones_only():
    model = network()
    text, other = given(model), given(model)
    theirs = activations_of(model, other).activations
    patch = Patch("decoder", 1, [5], "other", part="z", heads=[1])
    cache = ActivationCache()
    read(model, text, hooks=[cache])
    place = next(p for p in theirs if p.name == "z" and p.layer == 1)
    mixed = cache.activations[place].clone()
    mixed[:, 1, 5] = theirs[place][:, 1, 5]

    def swapped(_module, _args):
        return (mixed.transpose(1, 2).flatten(2),)

    handle = model.decoder.layers[1].self_attention.output.register_forward_pre_hook(swapped)
    wanted = read(model, text)
    handle.remove()
    hooks = hooks_of([patch], model.config, {"other": activations_of(model, other)})
    close(read(model, text, hooks=hooks), wanted)

"""Helpers for tests of interventions: families, texts, and comparison of outputs."""

import copy

import torch
from kit.models import ids

FAMILIES = ["decoder", "encoder", "encoder-decoder"]
T, TS = 6, 7


def read(model, given, **settings):
    with torch.inference_mode():
        return model(*given, **settings)


def given(model, batch=1):
    """What a network reads: ids, or source and target."""
    if model.config.family == "encoder-decoder":
        return ids(batch, TS), ids(batch, T)
    return (ids(batch, T),)


def attention_of(model, site):
    layer = getattr(model, site.stack).layers[site.layer]
    return layer.self_attention if site.kind == "self" else layer.cross_attention


def embeddings_of(model):
    if model.config.family == "encoder-decoder":
        return [model.source_embedding, model.target_embedding]
    return [model.embedding]


def by_hand(model, alter):
    """A copy of the network that `alter` has changed."""
    altered = copy.deepcopy(model)
    with torch.no_grad():
        alter(altered)
    return altered


def close(got, wanted):
    torch.testing.assert_close(got, wanted, atol=2e-4, rtol=1e-4)

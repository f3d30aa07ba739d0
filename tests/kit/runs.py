"""What the tests of figures draw: small runs and batches, some with hostile token text."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch

from transformer import Batch, Model, Run, Site, Trace, with_lens

HOSTILE = (
    "<s>",
    "<b>x</b>",
    "{{value}}",
    "</script>",
    "%{meta.query_labels[0]}",
    "&amp;",
    "w" * 300,
)

SCRIPTED = "the fox </script><script>document.title='broken'</script><b>x</b> {{value}}"


def sampled_run(model: Model) -> Run:
    """Given tokens and six generated ones."""
    settings = {"max_new_tokens": 6, "temperature": 1.0, "top_k": 5, "seed": 3}
    return with_lens(model, model.generate("the fox said", **settings))


def scripted_run(model: Model) -> Run:
    """SCRIPTED and six generated tokens: a page that takes it for markup changes its title."""
    settings = {"max_new_tokens": 6, "temperature": 1.5, "top_k": 5, "seed": 2}
    return with_lens(model, model.generate(SCRIPTED, **settings))


def batch_of(model: Model, *texts: str) -> Batch:
    """The texts read together."""
    traced = model.trace(texts)
    assert isinstance(traced, Batch)
    return traced


def relabelled(run: Run, labels: tuple[str, ...]) -> Run:
    """The run with other token labels, as if the tokenizer had such tokens."""
    again = (labels * (len(run.labels) // len(labels) + 1))[: len(run.labels)]
    known = dict.fromkeys(run.candidate_labels, labels[0])
    return dataclasses.replace(run, labels=again, candidate_labels=known)


def planted(run: Run, length: int, cell: tuple[int, int], weight: float) -> Run:
    """The run with a longer trace of small weights and one bright one, at layer 1, head 1."""
    trace = Trace()
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    for layer in range(2):
        weights = torch.full((1, 2, length, length), 1e-4) * mask
        if layer == 1:
            weights[0, 1, cell[0], cell[1]] = weight
        trace.record_attention(Site("decoder", layer, "self"), weights, weights, mask)
    labels = tuple(f"t{place}" for place in range(length))
    return dataclasses.replace(run, labels=labels, trace=trace, trace_start=0)


def with_weights(run: Run, weights: torch.Tensor) -> Run:
    """The run with these causal self-attention weights (L, H, T, T)."""
    trace = Trace()
    mask = torch.ones(weights.shape[-2:], dtype=torch.bool).tril()
    for layer, heads in enumerate(weights):
        trace.record_attention(Site("decoder", layer, "self"), heads[None], heads[None], mask)
    labels = tuple(f"t{place}" for place in range(weights.shape[-1]))
    config = dataclasses.replace(run.config, max_len=max(run.config.max_len, len(labels)))
    return dataclasses.replace(run, trace=trace, labels=labels, trace_start=0, config=config)


def strings(value: Any) -> Iterator[str]:
    """Every string in a figure's plain JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)

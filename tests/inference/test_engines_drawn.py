"""Every engine that says it supports a configuration computes what the network does."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager

import pytest
import torch
from builders import spread
from drawn import FIELDS, N_READ, configurations
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transformer import ModelConfig, Sampling, build_transformer
from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines.buffers import unknown_in
from transformer.inference.engines.choice import KINDS, engine_of
from transformer.inference.generation import generate
from transformer.model.activations import ACTIVATIONS, Activation
from transformer.model.norms import NORMS, Norm

SOURCE, PROMPT, REST = [3, 1, 4], [2, 5], [1, 4, 3, 2]
assert len(PROMPT + REST) <= N_READ


@torch.inference_mode()
def by_the_network(network):
    """(n, V) logits for the tokens after the prompt and after each further one."""
    ids = torch.tensor([PROMPT + REST])
    given = [torch.tensor([SOURCE])] if network.config.family == "encoder-decoder" else []
    return network(*given, ids)[0, len(PROMPT) - 1 :]


def by_the_engine(engine):
    session = DecodeSession(engine)
    return torch.stack([session.begin(PROMPT, SOURCE), *map(session.read, REST)])


@contextmanager
def threads(count):
    """So many for torch, and so for the engines."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


def agree(found, wanted):
    size = float(wanted.abs().max()) + 1
    assert float((found - wanted).abs().max()) < 2e-4 * size


@settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    config=configurations(),
    stored=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
    n_threads=st.integers(1, 3),
)
def test_every_engine_that_supports_a_configuration_computes_what_the_network_does(
    config, stored, n_threads
):
    for kind in KINDS:
        if config.family == "encoder":  # it generates nothing
            assert engine_of(build_transformer(config), kind.name) is None
            continue
        if unknown_in(config):
            with pytest.raises(ValueError, match=f"engine '{kind.name}' needs "):
                engine_of(build_transformer(config), kind.name)
            continue
        network = spread(build_transformer(config)).eval().to(stored).float()
        wanted = by_the_network(network)
        with threads(n_threads):
            agree(by_the_engine(kind(network)), wanted)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    config=configurations().filter(lambda config: config.family != "encoder"),
    prompt=st.lists(st.integers(0, 5), min_size=1, max_size=N_READ),
    sampling=st.none() | st.just(Sampling(temperature=0.9, top_k=7)),
)
def test_generation_takes_the_networks_tokens_past_the_window_and_behind_padding_too(
    config, prompt, sampling
):
    network, both = spread(build_transformer(config)).eval(), config.family == "encoder-decoder"
    asked = dict(
        sources=[SOURCE] if both else None, max_new_tokens=config.output_max_len + 4, end_id=-1,
        sampling=sampling, seeds=[4],
    )  # fmt: skip
    wanted = [step for (step,) in generate(network, [prompt], **asked)]
    for kind in () if unknown_in(config) else KINDS:
        session = DecodeSession(kind(network))
        found = [step for (step,) in generate(network, [prompt], session=session, **asked)]
        assert [(one.token, one.window) for one in found] == [
            (one.token, one.window) for one in wanted
        ]
        for ours, theirs in zip(found, wanted, strict=True):
            assert ours.chosen.probability == pytest.approx(theirs.chosen.probability, rel=1e-3)


def small(**changes):
    sizes = dict(vocab_size=31, d_model=24, n_heads=3, n_layers=2, d_ff=40, max_len=12)
    return ModelConfig(**{**sizes, **changes})


def throw_away(monkeypatch, table):
    """A configuration with an activation or a norm that no engine was taught."""
    if table == "activation":
        entry = Activation(title="Sinus", does="waves", function=torch.sin)
        monkeypatch.setitem(ACTIVATIONS, "sinus", entry)
        return small(activation="sinus")
    made = Norm(
        title="Throw-away norm", does="{size}",
        make=lambda size, eps: torch.nn.RMSNorm(size, eps),
    )  # fmt: skip
    monkeypatch.setitem(NORMS, "throw-away", made)
    return small(norm_kind="throw-away", norm_embeddings=True)


@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16, torch.float16])
def test_weights_are_read_as_they_were_stored(stored):
    network = spread(build_transformer(small())).eval().to(stored).float()
    engine = engine_of(network, "compiled")
    assert engine.about.startswith(f"{str(stored).removeprefix('torch.')} in vectors of ")
    assert ";" not in engine.about
    agree(by_the_engine(engine), by_the_network(network))


@pytest.mark.parametrize("table", ["activation", "norm"])
def test_what_an_engine_was_not_taught_is_left_to_the_network(table, monkeypatch):
    network = spread(build_transformer(throw_away(monkeypatch, table))).eval()
    assert engine_of(network) is None
    for name in ("compiled", "packed"):
        with pytest.raises(ValueError, match=f"engine '{name}' needs parts that it knows, and"):
            engine_of(network, name)
    assert unknown_in(network.config)


def test_every_field_of_a_configuration_is_drawn():
    assert set(FIELDS) == {field.name for field in dataclasses.fields(ModelConfig)}

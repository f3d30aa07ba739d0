"""Every engine that says it supports a configuration computes what the network does.

Configurations are drawn at random, over every field and beyond the presets.
"""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager

import pytest
import torch
from builders import spread
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transformer import ModelConfig, build_transformer
from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines.choice import KINDS, engine_of
from transformer.model.activations import ACTIVATIONS, Activation
from transformer.model.config_checks import FAMILIES, SCORE_DIVISORS
from transformer.model.inits import INITS
from transformer.model.norms import NORMS, PLACEMENTS, Norm
from transformer.model.positions import POSITIONS
from transformer.model.rotary import SCALINGS

SOURCE, PROMPT, REST = [3, 1, 4], [2, 5], [1, 4, 3, 2]
VOCAB = st.integers(6, 40)
yes_or_no = st.booleans()
# How each field of a configuration is drawn. A new field must be drawn too: see the last test.
FIELDS = {
    "family": st.sampled_from(FAMILIES),
    "vocab_size": VOCAB,
    "target_vocab_size": st.none() | VOCAB,
    "d_model": st.integers(1, 12),  # times n_heads, and even where positions come in pairs
    "n_heads": st.integers(1, 5),
    "n_layers": st.integers(1, 3),
    "d_ff": st.integers(1, 70),
    "max_len": st.integers(len(PROMPT + REST), 20),
    "target_max_len": st.none() | st.integers(len(PROMPT + REST), 20),
    "norm": st.sampled_from(list(PLACEMENTS)),
    "norm_kind": st.sampled_from(list(NORMS)),
    "positions": st.sampled_from(list(POSITIONS)),
    "activation": st.sampled_from(list(ACTIVATIONS)),
    "head_size": st.none() | st.integers(1, 5).map(lambda half: 2 * half),
    "n_key_heads": st.none() | st.integers(1, 5),  # made to divide n_heads
    "norm_heads": st.integers(0, 3).map(lambda drawn: drawn == 0),
    "window": st.none() | st.integers(1, 8),
    "parallel": yes_or_no,  # where norms stand before blocks
    "gated": yes_or_no,
    "attention_bias": yes_or_no,
    "output_bias": st.none() | yes_or_no,
    "score_divisor": st.sampled_from(["d_head"] * 5 + list(SCORE_DIVISORS)),
    "shared_projection": st.integers(0, 5).map(lambda drawn: drawn == 0),
    "feed_forward_bias": yes_or_no,
    "head_bias": yes_or_no,
    "head_transform": st.integers(0, 3).map(lambda drawn: drawn == 0),
    "dropout": st.sampled_from([0.0, 0.3]),
    "attention_dropout": st.sampled_from([0.0, 0.3]),
    "feed_forward_dropout": st.sampled_from([0.0, 0.3]),
    "norm_eps": st.sampled_from([1e-12, 1e-5, 1e-2]),
    "n_token_types": st.sampled_from([0, 0, 2]),
    "norm_embeddings": yes_or_no,
    "tie_embeddings": yes_or_no,
    "share_embeddings": yes_or_no,
    "scale_embeddings": yes_or_no,
    "init": st.sampled_from(list(INITS)),
    "padding_id": st.none() | st.just(0),
    "target_padding_id": st.none() | st.just(0),
    "padded_start": yes_or_no,
    "rotary_size": st.none() | st.just(2),
    "rotary_base": st.sampled_from([100.0, 10_000.0]),
    "rotary_scaling": st.sampled_from(list(SCALINGS)),
    "rotary_factor": st.sampled_from([1.0, 4.0]),
    "rotary_low": st.just(1.0),
    "rotary_high": st.just(4.0),
    "rotary_trained_len": st.none() | st.just(32),
}


@st.composite
def configurations(draw):
    """Any possible configuration with a decoder or without."""
    fields = {name: draw(strategy) for name, strategy in FIELDS.items()}
    encoding = POSITIONS[fields["positions"]]
    pairs = 2 if encoding.pairs or encoding.turns else 1
    fields["d_model"] *= fields["n_heads"] * pairs
    two_stacks = fields["family"] == "encoder-decoder"
    if not two_stacks or fields["share_embeddings"]:
        fields["target_vocab_size"] = None
    if not two_stacks:
        fields["target_max_len"] = fields["target_padding_id"] = None
    fields["share_embeddings"] &= two_stacks
    fields["parallel"] &= fields["norm"] == "pre"
    paddings = fields["padding_id"], fields["target_padding_id"]
    fields["padded_start"] &= two_stacks and paddings != (None, None)
    if fields["n_key_heads"] and fields["n_heads"] % fields["n_key_heads"]:
        fields["n_key_heads"] = 1
    if fields["head_size"] or fields["n_key_heads"] or fields["norm_heads"]:
        fields["shared_projection"] = False
    return ModelConfig(**fields)


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
        if kind.unknown(config):
            with pytest.raises(ValueError, match=f"engine '{kind.name}' needs "):
                engine_of(build_transformer(config), kind.name)
            continue
        network = spread(build_transformer(config)).eval().to(stored).float()
        wanted = by_the_network(network)
        with threads(n_threads):
            agree(by_the_engine(kind(network)), wanted)


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
        title="Throw-away norm", does="{size}", n_parameters=lambda size: size,
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
    assert all(kind.unknown(network.config) for kind in KINDS)


def test_every_field_of_a_configuration_is_drawn():
    assert set(FIELDS) == {field.name for field in dataclasses.fields(ModelConfig)}

"""The compiled engine computes what the network does, for any configuration it supports."""

import dataclasses
from contextlib import contextmanager

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.models import spread
from kit.strategies import FIELDS, N_READ, configurations

from transformer import ModelConfig, Sampling, Trace, build_transformer
from transformer.inference.beam import beam_search
from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines.compiled import SUPPORTED, CompiledDecoder, engine_of
from transformer.inference.generation import generate
from transformer.model.primitives import ACTIVATIONS, NORMS, Activation, Norm

SOURCE = [3, 1, 4]
SUPPORTED_ALONE = {name: next(iter(known)) for name, known in SUPPORTED.items() if len(known) == 1}


@contextmanager
def threads(count):
    """So many for torch, and so for the engines."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


def agree(found, wanted):
    size = float(wanted.abs().max()) + 1
    assert found.shape == wanted.shape
    assert float((found - wanted).abs().max()) < 2e-4 * size


@torch.inference_mode()
def read_by(network, ids):
    """The network's own logits after each of ids, and its trace."""
    trace = Trace()
    given = [torch.tensor([SOURCE])] if network.config.family == "encoder-decoder" else []
    return network(*given, torch.tensor([ids]), trace=trace)[0], trace


def same_trace(found, wanted, config):
    assert found.sites == wanted.sites
    scores = ("scores", "pattern") if config.scores_from_heads else ()
    for ours, theirs in zip(found, wanted, strict=True):
        for name in (*scores, "q", "k", "v"):
            agree(getattr(ours, name), getattr(theirs, name))
        assert ours.allowed.equal(theirs.allowed)
    for name in ("embed", "pos_embed", "residuals"):
        ours, theirs = getattr(found, name), getattr(wanted, name)
        assert ours.keys() == theirs.keys()
        for stack, x in theirs.items():
            agree(*(torch.stack(list(one)) for one in (ours[stack], x)))


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(
    config=configurations() | configurations(**SUPPORTED_ALONE),
    stored=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
    n_threads=st.integers(1, 2),
    pieces=st.lists(st.integers(1, 3), min_size=1, max_size=4).filter(lambda n: sum(n) <= N_READ),
)
def test_the_engine_reads_as_the_network_does(config, stored, n_threads, pieces):
    """pieces: how many tokens are read at once; the first of them by `begin`."""
    if config.family == "encoder":  # it generates nothing
        assert engine_of(build_transformer(config), "compiled") is None
        return
    if not CompiledDecoder.supports(config):
        with pytest.raises(ValueError, match="engine 'compiled' needs "):
            engine_of(build_transformer(config), "compiled")
        return
    network = spread(build_transformer(config)).eval().to(stored).float()
    ids = [2, 5, 1, 4, 3, 2][: sum(pieces)]
    logits, trace = read_by(network, ids)
    with threads(n_threads):
        session, parts = DecodeSession(CompiledDecoder(network)), torch.tensor(ids).split(pieces)
        for n, part in enumerate(parts):
            tokens = part.tolist()
            last = session.read(*tokens) if n else session.begin(tokens, SOURCE)[0]
            agree(last, logits[len(session.ids) - 1])
            if n == 0:
                early = session.trace()
        same_trace(session.trace(), trace, config)
    same_trace(
        early, read_by(network, ids[: pieces[0]])[1], config
    )  # later tokens left it as it was


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(
    config=configurations(**SUPPORTED_ALONE).filter(CompiledDecoder.supports),
    prompt=st.lists(st.integers(0, 5), min_size=1, max_size=N_READ),
    sampling=st.none() | st.just(Sampling(temperature=0.9, top_k=7)),
)
def test_the_engine_generates_the_networks_tokens_past_the_window(config, prompt, sampling):
    network, both = spread(build_transformer(config)).eval(), config.family == "encoder-decoder"
    options = dict(
        sources=[SOURCE] if both else None, max_new_tokens=config.output_max_len + 4, end_ids={-1},
        sampling=sampling, seeds=[4],
    )  # fmt: skip
    wanted = [step for (step,) in generate(network, [prompt], **options)]
    session = DecodeSession(CompiledDecoder(network))
    found = [step for (step,) in generate(network, [prompt], session=session, **options)]
    assert [(one.token, one.window) for one in found] == [(one.token, one.window) for one in wanted]
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.chosen.probability == pytest.approx(theirs.chosen.probability, rel=1e-3)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(
    config=configurations(**SUPPORTED_ALONE | {"family": "encoder-decoder"}).filter(
        CompiledDecoder.supports
    ),
    start=st.lists(st.integers(0, 5), min_size=1, max_size=3),
    beams=st.integers(1, 5),
    n_threads=st.integers(1, 2),
)
def test_the_engine_scores_beams_as_the_network_does(config, start, beams, n_threads):
    network, sources = spread(build_transformer(config)).eval(), [SOURCE, [2, 5, 5, 1], [4]]
    engine, options = CompiledDecoder(network), dict(
        start=start, end_ids={3}, beams=beams, max_new_tokens=[9, 2, 6]
    )  # fmt: skip
    with threads(n_threads):
        found = beam_search(
            network, sources, **options, sessions=[DecodeSession(engine) for _ in sources]
        )
    for result, source in zip(found, sources, strict=True):
        texts = [start]
        for nodes in result.steps:  # each node's score is that of its text, by one full pass
            texts = [[*texts[node.parent], node.token] for node in nodes]
            ids = torch.tensor(texts)
            with torch.inference_mode():
                logits = network(torch.tensor([source] * len(ids)), ids[:, :-1])
            taken = logits.log_softmax(-1)[:, len(start) - 1 :].gather(
                -1, ids[:, len(start) :, None]
            )
            agree(torch.tensor([node.score for node in nodes]), taken.sum(dim=(1, 2)))


def small(**changes):
    sizes = dict(vocab_size=31, d_model=24, n_heads=3, n_layers=2, d_ff=40, max_len=12)
    return ModelConfig(**{**sizes, **changes})


SINUS = Activation(title="Sinus", does="waves", function=torch.sin)
ODD = Norm(title="Odd", does="{size}", make=lambda size, eps: torch.nn.RMSNorm(size, eps))


@pytest.mark.parametrize(("table", "entry", "changes"), [
    (ACTIVATIONS, SINUS, {"activation": "odd"}),
    (NORMS, ODD, {"norm_kind": "odd", "norm_embeddings": True}),
])  # fmt: skip
def test_an_unsupported_table_entry_is_left_to_the_network(table, entry, changes, monkeypatch):
    monkeypatch.setitem(table, "odd", entry)
    network = spread(build_transformer(small(**changes))).eval()
    assert engine_of(network) is None
    with pytest.raises(ValueError, match=r"engine 'compiled' needs a network without .*='odd'"):
        engine_of(network, "compiled")


def test_every_field_of_a_configuration_is_drawn():
    assert set(FIELDS) == {field.name for field in dataclasses.fields(ModelConfig)}

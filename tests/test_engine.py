"""The packed decoder against the network that it repeats."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from builders import spread

from transformer.inference.engine import PackedDecoder, Reading, packing_of
from transformer.inference.generation import generate
from transformer.inference.sampling import Sampling
from transformer.model.attention import KeyValueCache
from transformer.model.config import PRESETS
from transformer.model.transformer import build_transformer

V, MAX_LEN = 31, 14
SOURCE = [3, 9, 4, 4, 2]
DECODERS = [name for name in PRESETS if name != "bert"]


def network(preset, **changes):
    sizes = dict(
        vocab_size=V, d_model=24, n_heads=3, n_layers=2, d_ff=40, max_len=MAX_LEN, padding_id=0
    )
    return spread(build_transformer(preset, **{**sizes, **changes})).eval()


def tokens(model, *, packed, n_new=8, **settings):
    sources = [SOURCE] if model.config.family == "encoder-decoder" else None
    steps = generate(
        model, [[5]], sources=sources, max_new_tokens=n_new, end_id=1, packed=packed, **settings
    )
    return [step for (step,) in steps]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("preset", DECODERS)
def test_logits_are_those_of_the_network_token_by_token(preset, threads):
    model = network(preset)
    packed, cache, same = PackedDecoder(model, threads), KeyValueCache(), KeyValueCache()
    with torch.inference_mode():

        def read(ids, into):
            if model.config.family == "decoder":
                return model(torch.tensor([ids]), cache=into)[0, -1]
            memory = model.encode(torch.tensor([SOURCE]))
            return model.decode(torch.tensor([ids]), memory, torch.tensor([SOURCE]), cache=into)[
                0, -1
            ]

        read([5, 7, 2], cache)
        read([5, 7, 2], same)
        reading = Reading(packed, cache)
        for token in [8, 30, 1, 1, 12]:
            torch.testing.assert_close(
                reading.read(token), read([token], same), atol=1e-4, rtol=1e-4
            )


@pytest.mark.parametrize("sampling", [None, Sampling(temperature=0.9, top_k=7)])
@pytest.mark.parametrize("preset", DECODERS)
def test_generation_takes_the_same_tokens_past_the_window_too(preset, sampling):
    model = network(preset)
    n_new = MAX_LEN + 4
    plain = tokens(model, packed=None, n_new=n_new, sampling=sampling, seeds=[4])
    fast = tokens(model, packed=packing_of(model), n_new=n_new, sampling=sampling, seeds=[4])
    assert [step.token for step in fast] == [step.token for step in plain]
    assert [step.window for step in fast] == [step.window for step in plain]
    for ours, theirs in zip(fast, plain, strict=True):
        assert ours.chosen.probability == pytest.approx(theirs.chosen.probability, rel=1e-4)


def test_eight_threads_share_a_packing_and_get_their_own_texts():
    model = network("gpt")
    packed = packing_of(model)

    def one(seed):
        steps = tokens(model, packed=packed, sampling=Sampling(temperature=1.0), seeds=[seed])
        return [step.token for step in steps]

    alone = [one(seed) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(8))) == alone
    assert len({tuple(found) for found in alone}) > 1


def test_an_encoder_or_another_precision_has_no_packing():
    assert packing_of(network("bert")) is None
    assert packing_of(network("gpt").double()) is None
    with pytest.raises(ValueError, match=r"needs float32 weights on a CPU; got torch\.float64"):
        PackedDecoder(network("gpt").double())


def test_a_loaded_model_generates_with_its_packing(tiny_model, tmp_path):
    import transformer
    from transformer.checkpoint import save

    save(tmp_path / "m", tiny_model.network, tiny_model.config, tiny_model.tokenizer)
    assert transformer.load(tmp_path / "m").packed is not None

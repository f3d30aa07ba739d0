"""Networks on another device: no tensors of two devices meet, and few results are waited for.

On the device "meta" an operation with a tensor of the CPU raises, as it does on a GPU. What reads a
tensor's value, for which the CPU waits for a GPU, is counted on the CPU and measured on a GPU.
"""

import time
import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from transformer import Ablate, Add, Break, EditMask, Patch, Trace, load
from transformer.interventions.breaks import breaks_of
from transformer.interventions.hooks import hooks_of
from transformer.model.cache import KeyValueCache
from transformer.model.config import ModelConfig
from transformer.model.transformer import EncoderDecoder, build_transformer

SIZES = dict(vocab_size=11, d_model=8, n_heads=2, n_layers=2, d_ff=12, max_len=16)
NETWORKS = {
    "gpt": dict(positions="learned"),
    "llama": dict(positions="rotary", norm_kind="rms", gated=True, n_key_heads=1, window=3),
    "bloom": dict(positions="alibi"),
    "t5": dict(positions="relative", relative_buckets=8, family="encoder-decoder", score_scale=1.0),
    "translator": dict(family="encoder-decoder", norm="post", padding_id=0),
    "bert": dict(family="encoder", positions="learned", norm="post", norm_embeddings=True),
}


def altered(config: ModelConfig) -> Iterator[list]:
    stack = "encoder" if config.family == "encoder" else "decoder"
    yield []
    yield [Ablate(stack, 0, [1])]
    yield [Ablate(stack, 0, [1], by="mean", positions=[1])]
    yield [Ablate(stack, 1, part="layer", positions=[2])]
    yield [EditMask(stack, allow=[(0, 1)], forbid=[(1, None)], without=["padding"])]
    yield [Patch(stack, 0, [1], values=torch.ones(1, 8)), Add(stack, 0, torch.ones(8))]
    yield [Patch(stack, 0, [0, 1], values=torch.ones(2, 4), part="z", heads=[1])]
    yield from ([Break(what)] for what in breaks_of(config))


@pytest.mark.parametrize("name", NETWORKS)
def test_no_tensors_of_two_devices_meet(name):
    config = ModelConfig(**SIZES | NETWORKS[name])
    network = build_transformer(config, seed=0).to("meta")
    ids = torch.ones(2, 5, dtype=torch.int64, device="meta")
    real = torch.ones(2, 5, dtype=torch.bool, device="meta")
    for interventions in altered(config):
        hooks, trace = hooks_of(interventions, config), Trace()
        if isinstance(network, EncoderDecoder):
            network(ids, ids, src_is_text=real, tgt_is_text=real, hooks=hooks, trace=trace)
        else:
            network(ids, is_text=real, hooks=hooks, trace=trace)
        assert all(record.pattern.is_meta for record in trace)
    if config.family == "decoder":
        cache = KeyValueCache()
        network(ids, is_text=real, cache=cache)
        assert network(ids[:, :1], cache=cache).is_meta


READS = ("item", "tolist", "cpu", "numpy", "__bool__", "__int__", "__float__", "nonzero", "equal")


def waits(monkeypatch, call) -> int:
    """How often a call reads a tensor's value."""
    count = 0
    with monkeypatch.context() as patched:
        for name in READS:
            own = getattr(Tensor, name)

            def read(self, *given, own=own, **named):
                nonlocal count
                count += 1
                return own(self, *given, **named)

            patched.setattr(Tensor, name, read)
        call()
    return count


@pytest.mark.parametrize("settings", [{}, {"interventions": [Ablate("decoder", 0, [0])]}])
def test_a_token_waits_once(settings, tiny_model, tmp_path, monkeypatch):
    tiny_model.save(tmp_path)
    model = load(tmp_path, engine="network")

    def generate(n: int) -> int:
        run = {"max_new_tokens": n, **settings}
        return waits(monkeypatch, lambda: [*model.stream("the fox", **run)])

    generate(2)
    assert generate(9) - generate(3) == 6


@pytest.mark.parametrize("interventions", [[], [Ablate("decoder", 0, [0])]])
def test_a_pass_waits_for_nothing(interventions, tiny_model, monkeypatch):
    assert waits(monkeypatch, lambda: tiny_model.trace("the fox", interventions)) == 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; none is present")
@pytest.mark.parametrize("name", ["stories", "translate-en-fr", "fill-in"])
def test_a_gpu_gives_the_same_and_waits_once_a_token(name):
    here = load(name, engine="network")
    there, text = here.to("cuda"), "The black cat is sleeping on the bed."
    stack = "encoder" if here.config.family == "encoder" else "decoder"
    vector = torch.linspace(-1, 1, here.config.d_model)
    for interventions in ([], [Ablate(stack, 0, part="layer"), Add(stack, 1, vector)]):
        runs = [model.trace(text, interventions) for model in (here, there)]
        for kind in here.trace(text).trace.kinds():
            one, other = (run.trace.weights(*kind).cpu() for run in runs)
            torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)
    batches = [model.trace([text, "It is late."]) for model in (here, there)]
    one, other = (batch.trace.weights(stack).cpu() for batch in batches)
    torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)
    if here.config.family == "encoder":
        return
    greedy = dict(max_new_tokens=24)
    assert there.generate(text, **greedy).ids == here.generate(text, **greedy).ids
    if here.config.family == "encoder-decoder":
        assert there.generate(text, beams=4).ids == here.generate(text, beams=4).ids
    for altering in ([], [Ablate("decoder", 0, [0])]):
        counts, seconds = [], 0.0
        for n in (8, 24):
            torch.cuda.synchronize()
            started = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                torch.cuda.set_sync_debug_mode("warn")
                steps = [*there.stream(text, max_new_tokens=n, interventions=altering)]
                torch.cuda.set_sync_debug_mode("default")
            seconds = time.perf_counter() - started
            counts.append((len(caught), len(steps)))
        (few, n_few), (many, n_many) = counts
        each = (many - few) / max(1, n_many - n_few)
        speed = f"{n_many / seconds:.0f} tokens a second on {torch.cuda.get_device_name()}"
        print(f"{name}, {len(altering)} interventions: {each:.2f} waits a token, {speed}")

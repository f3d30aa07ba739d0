"""Networks on another device: no tensors of two devices meet, and few results are waited for."""

import copy
import dataclasses
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from kit.models import tiny
from kit.pretended_device import DEVICE, pretended_device

from transformer import Ablate, Add, Batch, Break, EditMask, Model, Patch, Run, load, with_lens
from transformer.analysis.ablation import head_importance
from transformer.analysis.journey import journey
from transformer.analysis.layer_at_position import layer_at_position
from transformer.analysis.logit_lens import surprisal
from transformer.analysis.patching import patch_effect
from transformer.interventions.breaks import breaks_of
from transformer.model.config import ModelConfig

NETWORKS: dict[str, dict[str, Any]] = {
    "gpt": dict(positions="learned", max_len=10),
    "llama": dict(positions="rotary", norm_kind="rms", gated=True, n_key_heads=1, window=3),
    "bloom": dict(positions="alibi"),
    "t5": dict(positions="relative", relative_buckets=8, family="encoder-decoder", score_scale=1.0),
    "translator": dict(family="encoder-decoder", norm="post"),
    "bert": dict(family="encoder", positions="learned", norm="post", norm_embeddings=True),
}
TEXT, OTHER = "the fox said", "hello"
FEW = dict(max_new_tokens=4)
SAMPLED = dict(temperature=1.3, top_k=30, top_p=0.9, min_p=0.01, seed=3)


def altered(config: ModelConfig) -> Iterator[list]:
    stack = "decoder" if config.family == "decoder" else "encoder"
    yield [Ablate(stack, 0, [1]), Ablate(stack, 1, part="layer", positions=[2])]
    yield [Ablate(stack, 0, [1], by="mean", positions=[1])]
    yield [EditMask(stack, allow=[(0, 1)], forbid=[(1, None)], without=["padding"])]
    yield [Patch(stack, 0, [0], values=torch.ones(1, 16)), Add(stack, 0, torch.ones(16))]
    yield [Patch(stack, 0, [0, 1], values=torch.ones(2, 8), part="z", heads=[1])]
    yield [Patch(stack, 0, [0], OTHER)]
    yield [Break(what) for what in breaks_of(config)]


def reading(config: ModelConfig) -> Iterator[Callable[[Model], Any]]:
    yield lambda model: model.trace(TEXT)
    for interventions in [[], *altered(config)]:
        yield lambda model, altered=interventions: model.trace([TEXT, OTHER], altered)
    if config.family == "encoder":
        yield lambda model: model.fill("the [MASK] said [MASK]")


def writing(config: ModelConfig) -> Iterator[Callable[[Model], Any]]:
    yield lambda model: model.generate(TEXT, **FEW)  # beyond the gpt's max_len
    yield lambda model: model.generate([TEXT, OTHER], repetition_penalty=1.4, stop=["e"], **FEW)
    yield lambda model: model.generate([TEXT, OTHER], **FEW, **SAMPLED)
    yield lambda model: model.generate(TEXT, forced_tokens=[70, 71], **FEW)
    interventions = [Ablate("decoder", 0, [1]), Add("decoder", 1, torch.ones(16), positions=[3])]
    yield lambda model: model.generate(TEXT, interventions=interventions, **FEW)
    if config.family == "encoder-decoder":
        yield lambda model: model.generate([TEXT, OTHER], beams=3, **FEW)
        yield lambda model: model.translate_batch([TEXT, OTHER], **FEW)


def studying(config: ModelConfig) -> Iterator[Callable[[Model], Any]]:
    """Questions about what a model has read."""
    stack = "encoder" if config.family == "encoder" else "decoder"
    last = dict(position=1) if config.family == "encoder" else {}
    yield lambda model: with_lens(model, model.trace(TEXT)).lens
    yield lambda model: journey(model, model.trace(TEXT), **last)
    yield lambda model: layer_at_position(model, model.trace(TEXT), stack, 1, 0).parts[0].out
    yield lambda model: model.trace([TEXT, OTHER])[1].arrays()
    if config.family != "encoder":
        yield lambda model: surprisal(model, model.trace(TEXT))
        yield lambda model: head_importance(model, model.generate(TEXT, **FEW), 2, "mean")
        yield lambda model: patch_effect(model, model.trace(TEXT), OTHER, 1, part="z")


def numbers(result: Any) -> Any:
    """What a result holds, as nested tensors and numbers on the CPU."""
    if isinstance(result, torch.Tensor):
        return result.cpu()
    if isinstance(result, dict):
        return {name: numbers(each) for name, each in result.items()}
    if isinstance(result, list | tuple):
        return [numbers(each) for each in result]
    if isinstance(result, Run | Batch):
        patterns = [result.trace.weights(*kind) for kind in result.trace.kinds()]
        steps = getattr(result, "steps", ())
        candidates = [[c.probability for c in step.candidates] for step in steps]
        ids = [step.token for step in steps]
        return numbers([patterns, result.trace.residuals, result.logits, ids, candidates])
    if dataclasses.is_dataclass(result):
        return numbers({name: getattr(result, name) for name in result.__slots__})
    return list(result.encode()) if isinstance(result, str) else result


def moved(model: Model) -> Model:
    return dataclasses.replace(model, network=copy.deepcopy(model.network).to(DEVICE))


@pytest.mark.parametrize(
    ("name", "flows"),
    [
        *((name, reading) for name in NETWORKS),
        *((name, writing) for name in ("gpt", "t5")),
        *((name, studying) for name in ("llama", "translator", "bert")),
    ],
)
def test_every_flow_gives_the_same_on_another_device(name, flows, tokenizer):
    options = {"family": "decoder", **NETWORKS[name]}
    tokenizer = tokenizer.with_mask() if name == "bert" else tokenizer
    here = tiny(name, options.pop("family"), tokenizer, **options)
    with pretended_device():
        there = moved(here)
        for flow in flows(here.config):
            one, other = numbers(flow(there)), numbers(flow(here))
            torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


def test_a_tensor_on_the_cpu_or_a_list_does_not_pass_for_one_on_a_device():
    with pretended_device() as waits:
        there, here = torch.zeros(3, device=DEVICE), torch.ones(3)
        assert (there + torch.tensor(2.0)).device == DEVICE  # as on a GPU, one number may
        assert not waits
        for fault in (
            lambda: there + here,
            lambda: torch.nn.functional.linear(here, there[None]),
            lambda: there[[1]],
            lambda: there.index_select(0, torch.tensor([1])),
        ):
            with pytest.raises(RuntimeError, match="of a tensor on the CPU, or a list, and one"):
                fault()
        there[1] = 5
        assert (there + here.to(DEVICE)).tolist() == [1, 6, 1]
        assert waits == {"aten._to_copy": 1}
        assert bool(there.sum() == 5)
        assert there[there > 0].shape == (1,)
        assert sum(waits.values()) == 3


def waits_of(model: Model, flow: Callable[[Model], Any]) -> int:
    """How often the CPU reads a number from another device."""
    with pretended_device() as waits:
        there = moved(model)
        flow(there)  # reads the weights once, to name them
        waits.clear()
        flow(there)
        return sum(waits.values())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        SAMPLED,
        {"repetition_penalty": 1.4},
        {"interventions": [Ablate("decoder", 0, [0], positions=[1]), Break("hard-attention")]},
        {"beams": 3},
    ],
)
def test_a_token_waits_once(settings, tiny_model, tiny_encoder_decoder):
    model = tiny_encoder_decoder if "beams" in settings else tiny_model
    few, many = (
        waits_of(model, lambda m, n=n: [*m.stream("the fox", max_new_tokens=n, **settings)])
        for n in (3, 9)
    )
    assert many - few == 6


@pytest.mark.parametrize("interventions", [[], [Ablate("decoder", 0, [0]), Break("no-scale")]])
@pytest.mark.parametrize("texts", ["the fox", ["the fox", "hello"]])
def test_a_pass_waits_for_nothing(texts, interventions, tiny_model):
    assert waits_of(tiny_model, lambda model: model.trace(texts, interventions)) == 0


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

"""What each part adds to a logit, against a pass in numpy with that part left out."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from builders import tiny
from numpy.typing import NDArray
from torch import nn

from transformer import Model
from transformer.analysis.logit_contribution import LogitContribution, logit_contribution
from transformer.model.hooks import Point
from transformer.model.norms import NORMS
from transformer.tokenizer import Tokenizer
from transformer.views import contribution
from transformer.views.contribution import sentence

Array = NDArray[np.float64]
SHAPES = {
    "pre": ("decoder", {}),
    "post": ("decoder", {"norm": "post"}),
    "embedding norm": ("decoder", {"norm": "post", "norm_embeddings": True, "head_bias": True}),
    "no biases": ("decoder", {"attention_bias": False, "positions": "sinusoidal"}),
    "rms": ("decoder", {"norm_kind": "rms", "positions": "rotary", "gated": True}),
    "rms plus one": ("decoder", {"norm_kind": "rms-plus-one", "norm": "post", "head_size": 12}),
    "parallel": ("decoder", {"parallel": True, "n_key_heads": 1}),
    "translator": ("encoder-decoder", {}),
    "post translator": ("encoder-decoder", {"norm": "post", "share_embeddings": True}),
    "encoder": ("encoder", {"norm": "post", "norm_embeddings": True, "n_token_types": 2}),
}


@pytest.fixture(scope="module", params=SHAPES)
def model(request: pytest.FixtureRequest, tokenizer: Tokenizer) -> Model:
    """A network of random weights; none of its gains is 1, none of its biases 0."""
    family, changes = SHAPES[request.param]
    made = tiny(request.param, family, tokenizer, **changes)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weights in made.network.parameters():
            weights += 0.3 * torch.randn(weights.shape, generator=generator)
    return dataclasses.replace(made, engine=None)


class Kept(dict[Point, Array]):
    """What a pass shows, at one row."""

    def __init__(self, row: int) -> None:
        self.row = row

    def __call__(self, point: Point, value: Any, **beside: Any) -> Any:
        if point.name in ("embed", "pos_embed", "z", "mlp_out"):
            self[point] = value[..., self.row, :].double().numpy().squeeze()
        return value


def written(model: Model, run: Any, place: int) -> tuple[list[Any], float, int]:
    """([(name, vector) or norm, ...] in the order of the pass, the logit, the token)."""
    reads_all = model.config.family == "encoder"
    row = place if reads_all else place - 1
    network, kept, stack = model.network, Kept(row), "encoder" if reads_all else "decoder"
    ids = torch.tensor([run.ids if reads_all else run.ids[:place]])
    given = (torch.tensor([run.source_ids]), ids) if run.source_ids else (ids,)
    with torch.inference_mode():
        logits = network(*given, hooks=[kept])
    steps: list[Any] = [(name, kept[Point(point, stack)]) for name, point in
                        (("token", "embed"), ("position", "pos_embed"))]  # fmt: skip
    steps = [step for step in steps if step[1].any()]  # positions that turn add nothing
    embedding = network.target_embedding if run.source_ids else network.embedding
    steps += [("embedding norm", embedding.norm)] if embedding.norm is not None else []
    for at, layer in enumerate(network.last_stack.layers):
        for kind in ("self", "cross") if run.source_ids else ("self",):
            attention = getattr(layer, f"{kind}_attention")
            heads = kept[Point("z", stack, at, kind)]
            for head in range(len(heads)):
                alone = np.zeros_like(heads)
                alone[head] = heads[head]
                vector = attention.output.weight.detach().double().numpy() @ alone.reshape(-1)
                steps.append(((kind, at, head), vector))
            if attention.output.bias is not None:
                steps.append((("biases", at), attention.output.bias.detach().double().numpy()))
            if model.config.norm == "post":
                steps.append((("biases", at), getattr(layer, f"{kind}_residual").norm))
        steps.append((("feed-forward", at), kept[Point("mlp_out", stack, at)]))
        if model.config.norm == "post":
            steps.append((("biases", at), layer.feed_forward_residual.norm))
    if network.last_stack.norm is not None:
        steps.append(("final norm", network.last_stack.norm))
    return steps, float(logits[0, row, run.ids[place]]), run.ids[place]


def replay(steps: list[Any], head: nn.Linear, target: int, without: Any, held: list[Any]) -> float:
    """The logit with one part left out; held: each norm's scale, filled in where it is empty."""
    x, norms, known = 0.0, 0, bool(held)
    for name, step in steps:
        if not isinstance(step, nn.Module):
            x = x + (0 if name == without else step)
            continue
        gain = step.weight.detach().double().numpy()
        if isinstance(step, nn.LayerNorm):
            x, shift = x - np.mean(x), step.bias.detach().double().numpy()
        else:
            gain, shift = gain + step.plus_one, 0.0
        if not known:
            held.append(np.sqrt(np.mean(x**2) + step.eps))
        x = gain * x / held[norms] + (0 if name == without else shift)
        norms += 1
    bias = 0.0 if head.bias is None or without == "output bias" else float(head.bias[target])
    return float(head.weight[target].detach().double().numpy() @ x) + bias


def test_each_part_adds_what_is_missing_without_it_and_all_sum_to_the_logit(model):
    text = "The fox said hello"
    reads_all = model.config.family == "encoder"
    run: Any = model.trace(text) if reads_all else model.generate(text, max_new_tokens=4)
    place = 3 if reads_all else run.n_prompt + 2
    found = logit_contribution(model, run, place)
    steps, logit, target = written(model, run, place)
    held: list[Any] = []
    network = model.network
    whole = replay(steps, network.head, target, None, held)
    assert whole == pytest.approx(logit, abs=1e-4)
    assert (found.position, found.target) == (place, target)
    assert found.logit == pytest.approx(logit, abs=1e-5)
    assert found.total == pytest.approx(logit, abs=1e-4)

    def missing(name: Any) -> float:
        return whole - replay(steps, network.head, target, name, held)

    names = {name for name, step in steps if not hasattr(step, "plus_one")}
    names |= set() if network.head.bias is None else {"output bias"}
    assert set(found.others) == {name for name in names if isinstance(name, str)}
    for name, value in found.others.items():
        assert value == pytest.approx(missing(name), abs=1e-4)
    for layer in range(model.config.n_layers):
        assert float(found.feed_forward[layer]) == pytest.approx(
            missing(("feed-forward", layer)), abs=1e-4
        )
        assert float(found.biases[layer]) == pytest.approx(missing(("biases", layer)), abs=1e-4)
        for kind, heads in found.heads.items():
            for head in range(model.config.n_heads):
                assert float(heads[layer, head]) == pytest.approx(
                    missing((kind, layer, head)), abs=1e-4
                )
    assert max(float(heads.abs().max()) for heads in found.heads.values()) > 0.01


def test_what_has_no_such_sum_is_refused_in_a_sentence(
    tiny_model, tiny_encoder, tokenizer, monkeypatch
):
    run = tiny_model.generate("The fox", max_new_tokens=2)
    place, read = run.n_prompt, tiny_encoder.trace("The fox")
    bert = tiny("bert", "encoder", tokenizer, head_transform=True)
    for told, *given in (
        ("the token must be one that the network predicted", tiny_model, run, 0),
        ("target must be a whole number from 0 to 319", tiny_model, run, place, 320),
        ("target must be a whole number from 0 to", tiny_model, run, place, "3"),
        ("position must be a whole number from 0 to", tiny_encoder, read, len(read.ids)),
        ("the head of bert transforms the stream", bert, read, 1),
    ):
        with pytest.raises(ValueError, match=told):
            logit_contribution(*given)

    class Odd(nn.Module):
        def __init__(self, size: int, eps: float) -> None:
            super().__init__()
            self.gain = nn.Parameter(torch.ones(size))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.gain * x.tanh()

    odd = dataclasses.replace(NORMS["layer"], make=Odd)
    monkeypatch.setitem(NORMS, "layer", odd)
    other = tiny("odd", "decoder", tokenizer)
    monkeypatch.undo()
    read = dataclasses.replace(other, engine=None).generate("The fox", max_new_tokens=1)
    with pytest.raises(ValueError, match="layer norm and RMS norm; this network has Odd"):
        logit_contribution(other, read, place)
    capped = dataclasses.replace(tiny_model, network=tiny("capped", "decoder", tokenizer).network)
    capped.network.head.register_forward_hook(lambda module, given, out: 3 * (out / 3).tanh() + 9)
    with pytest.raises(ValueError, match="is not the sum of what its parts add: they add up to"):
        logit_contribution(capped, run, place)


# --- the picture ----------------------------------------------------------------------------------

FOUND = LogitContribution(
    position=7,
    target=3,
    logit=5.5,
    heads={"self": torch.tensor([[0.5, -1.0], [3.0, 0.25]])},
    feed_forward=torch.tensor([2.0, 0.5]),
    biases=torch.tensor([-0.25, 0.0]),
    others={"token": 0.25, "position": 0.125, "final norm": 0.125},
)


def test_the_map_and_the_sentence_hold_the_parts_and_sum_to_the_logit():
    figure, nothing = contribution(FOUND, "<b>"), np.nan
    (trace,) = figure.data
    rows = {
        "token": [nothing, nothing, nothing, 0.25],
        "position": [nothing, nothing, nothing, 0.125],
        "layer 0": [0.5, -1.0, 2.0, -0.25],
        "layer 1": [3.0, 0.25, 0.5, 0.0],
        "final norm": [nothing, nothing, nothing, 0.125],
    }
    assert figure.layout.meta["row_labels"] == list(rows)
    assert figure.layout.meta["column_labels"] == ["head 0", "head 1", "feed-forward", "rest"]
    np.testing.assert_array_equal(trace.z, list(rows.values()))
    assert np.nansum(trace.z) == FOUND.logit == FOUND.total
    assert (trace.zmin, trace.zmax) == (-3.0, 3.0)
    assert sentence(FOUND) == (
        "Of the logit 5.50, layer 1, head 0 adds most: +3.00. Next comes the feed-forward of "
        "layer 0 with +2.00. Most is taken away by layer 0, head 1: -1.00."
    )

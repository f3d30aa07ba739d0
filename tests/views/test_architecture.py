"""The drawing of a network: its numbers are the network's own, and nothing lies on anything."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
import torch
from torch import nn

from transformer import Model, ModelConfig, build_transformer
from transformer.model.presets import PRESETS, preset
from transformer.model.summary import KINDS, Block, blocks, last_stack
from transformer.views import architecture
from transformer.views.architecture.arrangement import Arrangement, arrange
from transformer.views.drawing import style

V, V_TARGET = 997, 613


def configs() -> list[ModelConfig]:
    """All presets, and every combination of switches that moves parameters about."""
    small = dict(vocab_size=V, d_model=12, n_heads=3, n_layers=2, d_ff=20, max_len=9)
    made = [preset(name, vocab_size=V) for name in PRESETS]
    for family, norm, tied in itertools.product(
        ("decoder", "encoder", "encoder-decoder"), ("pre", "post"), (True, False)
    ):
        switches: dict[str, Any] = dict(
            positions="learned" if tied else "sinusoidal",
            attention_bias=tied,
            feed_forward_bias=not tied,
            head_bias=norm == "pre",
            norm_embeddings=norm == "post",
            tie_embeddings=tied,
            scale_embeddings=not tied,
        )
        if family == "encoder-decoder":
            switches |= {"share_embeddings": norm == "pre"}
            switches |= {} if norm == "pre" else {"target_vocab_size": V_TARGET}
        made.append(ModelConfig(family=family, norm=norm, **small, **switches))
        history = dict(shared_projection=True, score_divisor="d_model")
        made.append(made[-1].replace(attention_bias=not tied, **history))
    grouped: dict[str, Any] = dict(
        positions="rotary", norm_kind="rms", gated=True, n_key_heads=1, head_size=6,
        norm_heads=True, attention_bias=True, output_bias=False, parallel=True, window=4,
        rotary_scaling="linear",
    )  # fmt: skip
    made += [ModelConfig(family=f, **small, **grouped) for f in ("decoder", "encoder-decoder")]
    made.append(ModelConfig(family="encoder", **small, n_token_types=2, head_transform=True))
    return made


CONFIGS = configs()
NAMES = [
    f"{c.family} {c.norm} {c.positions} {'tied' if c.tie_embeddings else 'free'} {c.d_model}"
    + " historical" * c.shared_projection
    + " parallel" * c.parallel
    + " types" * c.n_token_types
    for c in CONFIGS
]
each_config = pytest.mark.parametrize("config", CONFIGS, ids=NAMES)


def network(config: ModelConfig) -> nn.Module:
    """The real network, without memory for its numbers."""
    with torch.device("meta"):
        return build_transformer(config)


def count(*modules: nn.Module | None) -> int:
    return sum(p.numel() for module in modules if module is not None for p in module.parameters())


def of(config: ModelConfig, name: str) -> Block:
    return next(block for block in blocks(config) if block.name == name)


# --- parameters and shapes ------------------------------------------------------------------------


@each_config
def test_the_blocks_parameters_are_the_networks(config: ModelConfig) -> None:
    assert sum(block.n_parameters for block in blocks(config)) == network(config).n_parameters


@each_config
def test_each_block_has_the_parameters_of_its_modules(config: ModelConfig) -> None:
    built: Any = network(config)
    for stack in {block.stack for block in blocks(config)}:
        for layer in getattr(built, stack).layers:
            assert of(config, f"{stack}.self").each == count(layer.self_attention)
            assert of(config, f"{stack}.self_norm").each == count(layer.self_residual.norm)
            assert of(config, f"{stack}.feed_forward").each == count(layer.feed_forward)
            if hasattr(layer, "cross_attention"):
                assert of(config, f"{stack}.cross").each == count(layer.cross_attention)
                assert of(config, f"{stack}.cross_norm").each == count(layer.cross_residual.norm)
        assert of(config, f"{stack}.self").times == len(getattr(built, stack).layers)
        final = [b.each for b in blocks(config) if b.name == f"{stack}.norm"]
        assert sum(final) == count(getattr(built, stack).norm)
    head = of(config, "head")
    own = 0 if config.tie_embeddings else built.head.weight.numel()
    assert head.each == own + (built.head.bias.numel() if config.head_bias else 0)


@each_config
def test_shared_and_tied_matrices_are_said_and_counted_once(config: ModelConfig) -> None:
    built: Any = network(config)
    head = of(config, "head")
    assert (head.shared_with is not None) == config.tie_embeddings
    if config.family == "encoder-decoder":
        source, target = built.source_embedding.tokens, built.target_embedding.tokens
        shared = source.weight is target.weight
        assert (of(config, "decoder.tokens").shared_with == "encoder.tokens") == shared
        owner = source if shared else target
        assert not config.tie_embeddings or built.head.weight is owner.weight
        if config.tie_embeddings:
            assert head.shared_with == ("encoder.tokens" if shared else "decoder.tokens")
    elif config.tie_embeddings:
        assert head.shared_with == f"{config.family}.tokens"


@pytest.mark.parametrize("name", ["tiny_model", "tiny_encoder", "tiny_encoder_decoder"])
def test_shapes_are_those_of_a_real_pass(name: str, request: pytest.FixtureRequest) -> None:
    model: Model = request.getfixturevalue(name)
    run = model.trace("the fox said")
    stack = last_stack(model.config)
    length = len(run.queries(stack))  # type: ignore[union-attr,arg-type,call-arg]
    sizes = {"T": length, "S": len(getattr(run, "source_labels", ()))}

    def real(step: tuple[str | int, ...]) -> tuple[int, ...]:
        return tuple(sizes[size] if isinstance(size, str) else size for size in step)

    for block in blocks(model.config):
        if block.kind in ("self", "cross"):
            record = run.trace[block.stack, 0, block.kind]
            assert record.q is not None
            assert real(block.inside[1]) == tuple(record.q[0].shape)
        if block.kind == "tokens":
            assert real(block.inside[0]) == (run.trace.embed[block.stack].shape[1],)
            assert real(block.inside[1]) == tuple(run.trace.embed[block.stack][0].shape)
        if block.kind in ("norm", "final_norm", "positions"):
            assert real(block.inside[0]) == tuple(run.trace.residuals[block.stack][0][0].shape)
    assert of(model.config, "head").inside[-1][1] == model.config.output_vocab_size
    assert of(model.config, f"{stack}.feed_forward").inside[1][1] == model.config.d_ff


@each_config
def test_norms_stand_where_the_network_has_them(config: ModelConfig) -> None:
    names = [block.name for block in blocks(config)]
    assert len(set(names)) == len(names)
    assert {block.kind for block in blocks(config)} <= set(KINDS)
    for block in blocks(config):
        if block.kind in ("self", "cross", "feed_forward"):
            step = names.index(f"{block.name}_norm") - names.index(block.name)
            assert step == (-1 if config.norm == "pre" else 1)
    assert any(name.endswith(".norm") for name in names) == (config.norm == "pre")
    assert any("norm_embeddings" in name for name in names) == config.norm_embeddings


# --- the drawing ----------------------------------------------------------------------------------


def rectangles(plan: Arrangement) -> list[tuple[float, float, float, float]]:
    """Boxes, circles and a generous guess of the room that each label takes."""
    half = 126.0
    found = [(box.x - half, box.y, box.x + half, box.y + box.height) for box in plan.boxes]
    found += [(x - 9, y - 9, x + 9, y + 9) for x, y in plan.sums]
    for label in plan.labels:
        text = label.text.replace("<b>", "").replace("</b>", "")
        width = 8.0 * len(text)
        start = {"left": 0.0, "center": width / 2, "right": width}[label.anchor]
        found.append((label.x - start, label.y - 9, label.x - start + width, label.y + 9))
    return found


@each_config
def test_nothing_lies_on_anything_or_outside(config: ModelConfig) -> None:
    plan = arrange(config)
    found = rectangles(plan)
    for one, other in itertools.combinations(found, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (one, other)
    for x0, y0, x1, y1 in [*found, *plan.frames]:
        assert min(x0, y0) >= 0
        assert x1 <= plan.width
        assert y1 <= plan.height


@each_config
def test_no_line_runs_through_a_box(config: ModelConfig) -> None:
    plan = arrange(config)
    boxes = rectangles(plan)[: len(plan.boxes)]
    for link in plan.links:
        for (x0, y0), (x1, y1) in itertools.pairwise(link.path):
            for left, bottom, right, top in boxes:
                across = max(x0, x1) > left and min(x0, x1) < right
                along = max(y0, y1) > bottom and min(y0, y1) < top
                assert not (across and along), (link, left, bottom)


@each_config
def test_layer_blocks_stand_in_a_frame_and_each_sublayer_has_its_residual(
    config: ModelConfig,
) -> None:
    plan = arrange(config)
    stacks = {block.stack for block in blocks(config)}
    assert len(plan.frames) == len(stacks)
    for box in plan.boxes:
        framed = any(
            x0 < box.x < x1 and y0 < box.y and box.y + box.height < y1
            for x0, y0, x1, y1 in plan.frames
        )
        assert framed == box.block.in_layer, box.block.name
    n_sublayers = sum(b.kind in ("self", "cross", "feed_forward") for b in blocks(config))
    bent = [link for link in plan.links if len(link.path) > 2]
    aside = n_sublayers - len(stacks) if config.parallel else 0  # what reads beside the first
    assert len(bent) == n_sublayers + aside + (len(stacks) == 2)  # and the memory
    assert len(plan.sums) == (n_sublayers if config.norm == "pre" else 0)


@each_config
@pytest.mark.parametrize("dark", [False, True])
def test_the_figure_says_what_the_blocks_say(config: ModelConfig, dark: bool) -> None:
    figure = architecture(config, dark=dark)
    (bars,) = figure.data
    meta = figure.layout.meta
    found = blocks(config)
    assert [fact["name"] for fact in meta["blocks"]] == list(bars.customdata)
    assert list(bars.customdata) == [block.name for block in found]
    for block, fact, base, height, text in zip(
        found, meta["blocks"], bars.base, bars.y, bars.text, strict=True
    ):
        assert (fact["each"], fact["times"]) == (block.each, block.times)
        assert (fact["y"], fact["height"]) == (base, height)
        assert block.kind == "softmax" or f"{block.each:,}" in text
        assert fact["title"] in text.replace("&amp;", "&")
    assert meta["n_parameters"] == sum(block.n_parameters for block in found)
    assert f"{meta['n_parameters']:,}" in figure.layout.title.subtitle.text
    assert figure.layout.font.color == style.theme(dark).text
    assert figure.layout.font.size >= 14
    assert all(note.font.size in (None, 14) for note in figure.layout.annotations)
    layers = [a.text for a in figure.layout.annotations if "layer" in (a.text or "")]
    assert layers == [f"<b>× {config.n_layers} layers</b>"] * len(figure.layout.meta["stacks"])
    json.loads(figure.to_json())


def test_a_run_is_drawn_as_its_network(tiny_encoder_decoder: Model) -> None:
    run = tiny_encoder_decoder.generate("the fox", max_new_tokens=3)
    drawn, described = architecture(run), architecture(tiny_encoder_decoder.config)
    assert drawn.to_json() == described.to_json()
    assert drawn.layout.meta["n_parameters"] == tiny_encoder_decoder.n_parameters

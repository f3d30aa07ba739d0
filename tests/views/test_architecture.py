"""The drawing of a network: its numbers are the network's own, and nothing lies on anything."""

import itertools
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kit.strategies import configurations
from torch import nn

from transformer import PRESETS, Model, ModelConfig, build_transformer
from transformer.model.config import preset
from transformer.model.primitives import PLACEMENTS
from transformer.model.summary import KINDS, Block, blocks, last_stack
from transformer.views.model.architecture import architecture
from transformer.views.model.arrangement import Arrangement, arrange

# Those whose numbers are as long as a real network's, and any configuration.
PRESET = st.sampled_from(list(PRESETS)).map(lambda name: preset(name, vocab_size=997))


def count(*modules: nn.Module) -> int:
    return sum(p.numel() for module in modules for p in module.parameters())


def of(config: ModelConfig, name: str) -> Block:
    return next(block for block in blocks(config) if block.name == name)


@settings(max_examples=20)
@given(config=PRESET | configurations())
@example(config=preset("bert", vocab_size=997, relative_buckets=32))  # as MPNet has it
def test_the_drawn_have_the_networks_parameters_shared_matrices_and_norms(config):
    with torch.device("meta"):  # the real network, without memory for its numbers
        built: Any = build_transformer(config)
    found = blocks(config)
    assert sum(block.n_parameters for block in found) == built.n_parameters
    for stack in {block.stack for block in found}:
        layers = getattr(built, stack).layers
        assert of(config, f"{stack}.self").each == count(layers[0].self_attention)
        whole = len(layers) * count(layers[0].feed_forward)
        assert of(config, f"{stack}.feed_forward").n_parameters == whole

    owner = f"{config.family}.tokens"
    if config.family == "encoder-decoder":
        source, target = built.source_embedding.tokens, built.target_embedding.tokens
        shared = source.weight is target.weight
        assert (of(config, "decoder.tokens").shared_with == "encoder.tokens") == shared
        assert not config.tie_embeddings or built.head.weight is target.weight
        owner = "encoder.tokens" if shared else "decoder.tokens"
    assert of(config, "head").shared_with == (owner if config.tie_embeddings else None)

    names = [block.name for block in found]
    assert len(set(names)) == len(names)
    assert {block.kind for block in found} <= set(KINDS)
    for block in found:
        if block.kind in ("self", "cross", "feed_forward"):
            here, placement = names.index(block.name), PLACEMENTS[config.norm]
            before, after = names[here - 1], names[here + 1]
            assert (before == f"{block.name}_norm") == placement.of_input
            assert (after == f"{block.name}_norm") == placement.of_sum
            assert (after == f"{block.name}_output_norm") == placement.of_output
    assert any(name.endswith(".norm") for name in names) == (config.norm != "post")
    assert any("norm_embeddings" in name for name in names) == config.norm_embeddings


@pytest.mark.parametrize("name", ["tiny_model", "tiny_encoder", "tiny_encoder_decoder"])
def test_shapes_are_those_of_a_real_pass(name, request):
    model: Model = request.getfixturevalue(name)
    run = model.trace("the fox said")
    stack = last_stack(model.config)
    length = len(run.queries(stack))
    sizes = {"T": length, "S": len(getattr(run, "source_labels", ()))}

    def real(step: tuple[str | int, ...]) -> tuple[int, ...]:
        return tuple(sizes[size] if isinstance(size, str) else size for size in step)

    for block in blocks(model.config):
        if block.kind in ("self", "cross"):
            record = run.trace[block.stack, 0, block.kind]
            assert real(block.inside[1]) == tuple(record.q[0].shape)
        if block.kind == "tokens":
            assert real(block.inside[0]) == (run.trace.embed[block.stack].shape[1],)
            assert real(block.inside[1]) == tuple(run.trace.embed[block.stack][0].shape)
        if block.kind in ("norm", "final_norm", "positions"):
            assert real(block.inside[0]) == tuple(run.trace.residuals[block.stack][0][0].shape)
    assert of(model.config, "head").inside[-1][1] == model.config.output_vocab_size
    assert of(model.config, f"{stack}.feed_forward").inside[1][1] == model.config.d_ff


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


@settings(max_examples=20)
@given(config=PRESET | configurations())
def test_nothing_overlaps_and_the_figure_has_the_text_of_the_drawn(config):
    plan, drawn = arrange(config), blocks(config)
    found = rectangles(plan)
    for one, other in itertools.combinations(found, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (one, other)
    for x0, y0, x1, y1 in [*found, *plan.frames]:
        assert min(x0, y0) >= 0
        assert x1 <= plan.width
        assert y1 <= plan.height
    for link in plan.links:  # none runs through a box
        for (x0, y0), (x1, y1) in itertools.pairwise(link):
            for left, bottom, right, top in found[: len(plan.boxes)]:
                across = max(x0, x1) > left and min(x0, x1) < right
                along = max(y0, y1) > bottom and min(y0, y1) < top
                assert not (across and along), (link, left, bottom)
    for box in plan.boxes:
        framed = any(
            x0 < box.x < x1 and y0 < box.y and box.y + box.height < y1
            for x0, y0, x1, y1 in plan.frames
        )
        assert framed == box.block.in_layer, box.block.name

    # each sublayer has its residual
    n_stacks = len({block.stack for block in drawn})
    n_sublayers = sum(b.kind in ("self", "cross", "feed_forward") for b in drawn)
    bent = [link for link in plan.links if len(link) > 2]
    aside = n_sublayers - n_stacks if config.parallel else 0  # those that read the same stream
    assert len(bent) == n_sublayers + aside + (n_stacks == 2)  # and the memory
    assert len(plan.sums) == (n_sublayers if config.norm != "post" else 0)

    figure = architecture(config)
    facts, texts = figure.layout.meta["blocks"], figure.data[0].text
    for block, fact, text in zip(drawn, facts, texts, strict=True):
        assert (fact["name"], fact["each"], fact["times"]) == (block.name, block.each, block.times)
        assert block.kind == "softmax" or f"{block.each:,}" in text
    total = sum(block.n_parameters for block in drawn)
    assert f"{total:,}" in figure.layout.title.subtitle.text

"""The drawing of a network: its numbers are the network's own, and it has every part once."""

from dataclasses import dataclass
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
from transformer.views.model.architecture import answer_architecture

# Those whose numbers are as long as a real network's, and any configuration.
PRESET = st.sampled_from(list(PRESETS)).map(lambda name: preset(name, vocab_size=997))


def count(*modules: nn.Module) -> int:
    return sum(p.numel() for module in modules for p in module.parameters())


@dataclass
class Drawn:
    """All that the drawing reads of a run."""

    config: ModelConfig


def build_on_meta(config: ModelConfig) -> Any:
    """The real network, without memory for its numbers."""
    with torch.device("meta"):
        return build_transformer(config)


def of(config: ModelConfig, name: str) -> Block:
    return next(block for block in blocks(config) if block.name == name)


@settings(max_examples=20)
@given(config=PRESET | configurations())
@example(config=preset("bert", vocab_size=997, relative_buckets=32))  # as MPNet has it
def test_the_drawn_have_the_networks_parameters_shared_matrices_and_norms(config):
    built = build_on_meta(config)
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


@settings(max_examples=20)
@given(config=PRESET | configurations())
def test_every_part_is_in_one_column_once_and_each_sum_adds_one_sublayer(config):
    answer = answer_architecture(Drawn(config))
    drawn = []
    for column in answer["stacks"]:
        drawn += column["before"]
        for sublayer in column["sublayers"]:
            drawn += [*sublayer["branch"], *sublayer["after"]]
            added = [part["kind"] for part in sublayer["branch"] if part["kind"] != "norm"]
            assert len(added) == 1
            n_norms = len(sublayer["branch"]) + len(sublayer["after"]) - 1
            placement = PLACEMENTS[config.norm]
            assert len(sublayer["after"]) == placement.of_sum
            assert n_norms == placement.of_sum + placement.of_input + placement.of_output
        drawn += column["after"]
        is_memory = column["stack"] == "encoder" and config.family == "encoder-decoder"
        assert column["writes"].startswith("memory") == is_memory
    assert [part["name"] for part in drawn] == [block.name for block in blocks(config)]
    for part, block in zip(drawn, blocks(config), strict=True):
        assert (part["each"], part["times"]) == (block.each, block.times)
        assert part["does"]
    assert answer["n_parameters"] == build_on_meta(config).n_parameters

"""The blocks of a network as the page draws them: columns of boxes around the residual stream."""

from __future__ import annotations

from typing import Any

from transformer.messages import capital, mark, numeral, say, say_n
from transformer.model.config import ModelConfig
from transformer.model.positions import POSITIONS
from transformer.model.primitives import PLACEMENTS
from transformer.model.summary import Block, blocks, last_stack, length_of
from transformer.runs.run import Run
from transformer.views.declaration import Answer, tab_name, view
from transformer.views.model.block_text import shape_of, text_of
from transformer.views.model.equations import TITLES
from transformer.views.model.formulas import (
    SOFTMAX,
    of_added_positions,
    of_attention,
    of_feed_forward,
    of_residual,
    of_rotation,
)

FAMILIES = {
    "encoder-decoder": mark("encoder and decoder"),
    "decoder": mark("decoder alone"),
    "encoder": mark("encoder alone"),
}
# The tab that shows a kind of block.
LEADS = {
    "tokens": mark("Positions"),
    "positions": mark("Positions"),
    "self": mark("Attention"),
    "cross": mark("Attention"),
    "head": mark("Prediction"),
    "softmax": mark("Prediction"),
}

# The topic of `equations` that a press on a kind of block opens.
FORMULAS = {"norm": "norm", "feed_forward": "feed-forward"}
# The topics, as data meets them, each with the kinds of blocks that it is about.
KINDS_BY_TOPIC = {
    "positions": ("positions", "tokens"),
    "attention": ("self", "cross"),
    "feed-forward": ("feed_forward",),
    "norm": ("norm", "final_norm"),
    "sampling": ("softmax",),
}


@view(
    tab=mark("Model"),
    order=710,
    title=mark("Architecture"),
    help="The blocks of the network with their shapes and parameters, as data goes through them.",
)
def answer_architecture(item: Run) -> Answer:
    """The stacks in the order of the data, and the tab or formula that a kind of block leads to.

    Of a stack: `before`, `sublayers` and `after`, the blocks before, in and after its layers. Of a
    sublayer: `branch`, the blocks whose output is added to the stream, and `after`, those that read
    the sum. parallel: its sublayers read the same stream, and one sum adds them all. formulas: of
    the kinds of blocks, those that read the data last first, as they are drawn.
    """
    config = item.config
    leads = {kind: {"tab": tab_name(tab), "title": say(tab)} for kind, tab in LEADS.items()}
    formulas = {
        kind: {"equation": topic, "title": say("Formula")} for kind, topic in FORMULAS.items()
    }
    drawn = blocks(config)
    return {
        "title": say("Architecture: {family}", family=say(FAMILIES[config.family])),
        "n_parameters": sum(block.n_parameters for block in drawn),
        "stacks": [
            _stack(config, stack, [block for block in drawn if block.stack == stack])
            for stack in dict.fromkeys(block.stack for block in drawn)
        ],
        "leads": leads | formulas,
        "formulas": _formulas(config, {block.kind for block in drawn}),
    }


def _formulas(config: ModelConfig, drawn: set[str]) -> list[dict[str, Any]]:
    rotary = next(
        (settings for at in range(config.n_layers) if (settings := config.rotary_of(at))), None
    )
    of_positions = of_rotation(rotary) if rotary else []
    lines = {
        "positions": of_added_positions(config)
        if POSITIONS[config.positions].adds
        else of_positions,
        "attention": of_attention(config, "self", config.score_size),
        "feed-forward": of_feed_forward(config),
        "norm": of_residual(config, config.norm.removesuffix("-but-first")),
        "sampling": [SOFTMAX],
    }
    return [
        {
            "equation": topic, "title": capital(say(TITLES[topic])), "formula": lines[topic],
            "kinds": kinds,
        }
        for topic, kinds in reversed(KINDS_BY_TOPIC.items())
        if lines[topic] and drawn.intersection(kinds)
    ]  # fmt: skip


def _stack(config: ModelConfig, stack: str, column: list[Block]) -> dict[str, Any]:
    inside = [block for block in column if block.in_layer]
    first = column.index(inside[0])
    length, after = length_of(config, stack), column[first + len(inside) :]
    return {
        "stack": stack,
        "reads": f"{_reads(config, stack)} ({length})",
        "writes": _writes(config, stack, after),
        "shape": f"({length}, {numeral(config.d_model)})",
        "times": say_n("× {n} layer", "× {n} layers", config.n_layers_of(stack)),
        "parallel": config.parallel,
        "before": [_facts(config, block) for block in column[:first]],
        "sublayers": _sublayers(config, inside),
        "after": [_facts(config, block) for block in after],
    }


def _sublayers(config: ModelConfig, inside: list[Block]) -> list[dict[str, Any]]:
    """A layer's blocks by what is added to its stream: an attention or the feed-forward, and its
    norms."""
    size = len(inside) // sum(block.kind != "norm" for block in inside)
    n_added = size - PLACEMENTS[config.norm].of_sum
    facts = [_facts(config, block) for block in inside]
    groups = [facts[at : at + size] for at in range(0, len(facts), size)]
    return [{"branch": group[:n_added], "after": group[n_added:]} for group in groups]


def _reads(config: ModelConfig, stack: str) -> str:
    if config.family != "encoder-decoder":
        return say("tokens of the text")
    return say("source tokens") if stack == "encoder" else say("target tokens so far")


def _writes(config: ModelConfig, stack: str, after: list[Block]) -> str:
    """What leaves the stack, where a name says it."""
    if stack != last_stack(config):
        return say("memory (S, {d_model})", d_model=numeral(config.d_model))
    if not after or after[-1].kind != "softmax":
        return ""
    return say("what stands there") if stack == "encoder" else say("what comes next")


def _facts(config: ModelConfig, block: Block) -> dict[str, Any]:
    """One block as plain values; short: its sizes, for its box."""
    text = text_of(config, block)
    names = ("name", "kind", "stack", "each", "times", "shared_with")
    of_block = {name: getattr(block, name) for name in names}
    words = {"title": text.title, "short": text.short, "does": text.does}
    return of_block | words | {"shape": shape_of(block)}

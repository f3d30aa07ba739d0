"""List the parts of a network from its configuration: names, shapes and parameter counts.

Parameters are counted in a network with two layers per stack that takes no memory. Shapes are for
one text: T tokens, and S tokens of an encoder-decoder's source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from transformer.model.blocks import Embedding, Stack
from transformer.model.config import ModelConfig
from transformer.model.heads import HEADS
from transformer.model.positions import POSITIONS
from transformer.model.transformer import build_transformer

KINDS = (
    "tokens", "token_types", "positions", "norm_embeddings", "project", "self", "cross",
    "feed_forward", "norm", "final_norm", "transform", "labels", "head", "softmax",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """One part of a network.

    name: e.g. "decoder.self_norm", unique. kind: one of KINDS. stack: "encoder" or "decoder".
    inside: the shapes of the data in it, in order.
    each: parameters of one such block, of which the stack has `times`, one per layer.
    shared_with: the name of the block that owns this one's matrix, and counts it.
    """

    name: str
    kind: str
    stack: str
    inside: tuple[tuple[str | int, ...], ...]
    each: int = 0
    times: int = 1
    shared_with: str | None = None

    @property
    def n_parameters(self) -> int:
        """Parameters of all such blocks in the stack."""
        return self.each * self.times

    @property
    def in_layer(self) -> bool:
        """Whether every layer of the stack has one."""
        return self.kind in ("self", "cross", "feed_forward", "norm")


@lru_cache(maxsize=64)
def blocks(config: ModelConfig) -> tuple[Block, ...]:
    """Every part in the order of the data, an encoder before its decoder.

    Their `n_parameters` add up to the network's: a tied or shared matrix counts once.
    """
    return tuple(_blocks(config, _Count(config)))


class _Unfilled(TorchFunctionMode):
    """Parameters have shapes and no numbers. Only `empty` uses PyTorch's device "meta": its other
    functions take a second to load."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        options = dict(kwargs or {})
        if function is nn.init.normal_:
            return options["tensor"]
        return function(*args, **options | ({"device": "meta"} if function is torch.empty else {}))


class _Count:
    """Counts the parameters of each part that no earlier part has."""

    def __init__(self, config: ModelConfig) -> None:
        with _Unfilled():
            self.network = build_transformer(config, n_layers=2, target_n_layers=None)
        self._counted: set[nn.Parameter] = set()

    def __call__(self, part: nn.Module) -> int:
        new = set(part.parameters()) - self._counted
        self._counted |= new
        return sum(parameter.numel() for parameter in new)


def last_stack(config: ModelConfig) -> str:
    """The stack that the head reads."""
    return "encoder" if config.family == "encoder" else "decoder"


def length_of(config: ModelConfig, stack: str) -> str:
    """The letter of a stack's number of tokens: S for a source, else T."""
    return "T" if stack == last_stack(config) else "S"


def _blocks(config: ModelConfig, count: _Count) -> Iterator[Block]:
    network = count.network
    for stack, embedding in network.embeddings.items():
        yield from _inputs(config, embedding, getattr(network, stack), count)
        yield from _layers(config, getattr(network, stack), count)
    stack, size, vocab = last_stack(config), config.d_model, config.output_vocab_size
    head = HEADS[config.head]
    length = "T" if head.pool is None else "1"
    if network.transform is not None:
        yield Block(
            name="transform", kind="transform", stack=stack, inside=((length, config.d_embedding),),
            each=count(network.transform),
        )  # fmt: skip
        size = config.d_embedding
    if head.labelled:
        scores = len(config.labels)
        yield Block(
            name="labels", kind="labels", stack=stack, inside=((length, size), (length, scores)),
            each=count(network.head),
        )  # fmt: skip
    if config.head != "tokens":
        return
    owner = "encoder.tokens" if config.share_embeddings else f"{stack}.tokens"
    yield Block(
        name="head", kind="head", stack=stack, inside=(("T", size), ("T", vocab)),
        each=count(network.head), shared_with=owner if config.tie_embeddings else None,
    )  # fmt: skip
    yield Block(name="softmax", kind="softmax", stack=stack, inside=(("T", vocab),))


def _inputs(
    config: ModelConfig, embedding: Embedding, layers: Stack, count: _Count
) -> Iterator[Block]:
    """Token vectors and what is added to them. Positions include a bias on the layers' scores."""
    stack, length = embedding.stack, length_of(config, embedding.stack)
    narrow = (length, config.d_embedding)
    looked_up, stream = ((length,), narrow), (narrow,)
    shared = config.share_embeddings and stack == "decoder"
    yield Block(
        name=f"{stack}.tokens", kind="tokens", stack=stack, inside=looked_up,
        each=count(embedding.tokens), shared_with="encoder.tokens" if shared else None,
    )  # fmt: skip
    for kind, part, inside in (
        ("token_types", embedding.types, looked_up),
        (
            "positions",
            None if POSITIONS[config.positions].is_rotary else embedding.positions,
            stream,
        ),
        ("norm_embeddings", embedding.norm, stream),
        ("project", embedding.project, (narrow, (length, config.d_model))),
    ):
        if part is not None:
            bias = (layers.relative or layers.distances) if kind == "positions" else None
            yield Block(
                name=f"{stack}.{kind}", kind=kind, stack=stack, inside=inside,
                each=count(part) + (0 if bias is None else count(bias)),
            )  # fmt: skip


def _layers(config: ModelConfig, stack: Stack, count: _Count) -> Iterator[Block]:
    """The sub-layers, each between its norms, and the final norm."""
    name, (first, layer) = stack.name, stack.layers
    length, size = length_of(config, name), config.d_model
    stream = (length, size)
    attention = (stream, (config.n_heads, length, config.d_head), stream)
    for kind, part, inside in (
        ("self", "self_attention", attention),
        ("cross", "cross_attention", attention),
        ("feed_forward", "feed_forward", (stream, (length, config.d_ff), stream)),
    ):
        if not hasattr(layer, part):
            continue
        at = f"{part.removesuffix('_attention')}_residual"
        residual, bare = getattr(layer, at), isinstance(getattr(first, at).norm, nn.Identity)
        main = Block(
            name=f"{name}.{kind}", kind=kind, stack=name, inside=inside,
            each=count(getattr(layer, part)), times=config.n_layers_of(name),
        )  # fmt: skip
        norms = {"norm": residual.norm, "output_norm": residual.output_norm}
        before, after = (
            Block(
                name=f"{name}.{kind}_{part}",
                kind="norm",
                stack=name,
                inside=(stream,),
                each=count(norm),
                times=config.n_layers_of(name) - (bare and norm is residual.norm),
            )
            if norm is not None
            else None
            for part, norm in norms.items()
        )
        order = (main, before) if residual.placement.of_sum else (before, main, after)
        yield from filter(None, order)
    if stack.norm is not None:
        yield Block(
            name=f"{name}.norm", kind="final_norm", stack=name, inside=(stream,),
            each=count(stack.norm),
        )  # fmt: skip

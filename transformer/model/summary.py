"""The parts of a network as a list: names, shapes and parameter counts, from its configuration.

Nothing is built: `blocks(config)` works the numbers out. Shapes are written for one text: T tokens
of a stack's own text, S tokens of the source that an encoder-decoder's encoder reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from transformer.model.config import ModelConfig
from transformer.model.norms import NORMS
from transformer.model.positions import POSITIONS

KINDS = (
    "tokens", "token_types", "positions", "norm_embeddings", "self", "cross", "feed_forward",
    "norm", "final_norm", "transform", "head", "softmax",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """One part of a network.

    name: e.g. "decoder.self_norm", unique. kind: one of KINDS. stack: where it stands.
    inside: shapes that the data takes, in the order in which it takes them.
    each: trained numbers of one such block; `times` of them stand in the stack, one a layer.
    shared_with: the name of the block that owns this one's matrix, which is then counted there.
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
        """Trained numbers of all such blocks in the stack."""
        return self.each * self.times

    @property
    def in_layer(self) -> bool:
        """Whether every layer of the stack has one."""
        return self.kind in ("self", "cross", "feed_forward", "norm")


def blocks(config: ModelConfig) -> tuple[Block, ...]:
    """Every part, in the order in which the data goes through; an encoder before its decoder.

    The sum of their `n_parameters` is that of the network, a tied or shared matrix counted once.
    """
    stacks = ("encoder", "decoder") if config.family == "encoder-decoder" else (config.family,)
    return tuple(block for stack in stacks for block in _stack(config, stack, stack == stacks[-1]))


def last_stack(config: ModelConfig) -> str:
    """The stack that the head reads."""
    return "encoder" if config.family == "encoder" else "decoder"


def length_of(config: ModelConfig, stack: str) -> str:
    """The letter of a stack's number of tokens: S for a source, else T."""
    return "T" if stack == last_stack(config) else "S"


def _stack(config: ModelConfig, stack: str, is_last: bool) -> Iterator[Block]:
    yield from _inputs(config, stack)
    for kind in ("self", "cross", "feed_forward"):
        if kind != "cross" or (stack, config.family) == ("decoder", "encoder-decoder"):
            yield from _sublayer(config, stack, kind)
    stream = (length_of(config, stack), config.d_model)
    if config.norm == "pre":
        yield Block(
            name=f"{stack}.norm", kind="final_norm", stack=stack,
            inside=(stream,), each=norm_parameters(config),
        )  # fmt: skip
    if is_last:
        yield from _outputs(config, stack)


def _inputs(config: ModelConfig, stack: str) -> Iterator[Block]:
    """Token vectors and what is added to them."""
    size, length = config.d_model, length_of(config, stack)
    vocab = config.vocab_size_of(stack)
    shared = config.share_embeddings and stack == "decoder"
    yield Block(
        name=f"{stack}.tokens", kind="tokens", stack=stack, inside=((length,), (length, size)),
        each=0 if shared else vocab * size, shared_with="encoder.tokens" if shared else None,
    )  # fmt: skip
    if config.n_token_types:
        yield Block(
            name=f"{stack}.token_types", kind="token_types", stack=stack,
            inside=((length,), (length, size)), each=config.n_token_types * size,
        )  # fmt: skip
    encoding = POSITIONS[config.positions]
    if not encoding.turns:
        yield Block(
            name=f"{stack}.positions", kind="positions", stack=stack, inside=((length, size),),
            each=encoding.n_parameters(config.max_len_of(stack), size),
        )  # fmt: skip
    if config.norm_embeddings:
        yield Block(
            name=f"{stack}.norm_embeddings", kind="norm_embeddings", stack=stack,
            inside=((length, size),), each=norm_parameters(config),
        )  # fmt: skip


def _sublayer(config: ModelConfig, stack: str, kind: str) -> Iterator[Block]:
    """A sub-layer and its norm, which stands before it (pre) or after it (post)."""
    length, size, times = length_of(config, stack), config.d_model, config.n_layers
    stream = (length, size)
    inside: tuple[tuple[str | int, ...], ...]
    if kind == "feed_forward":
        inside = (stream, (length, config.d_ff), stream)
        each = feed_forward_parameters(config)
    else:
        inside = (stream, (config.n_heads, length, config.d_head), stream)
        each = attention_parameters(config)
    main = Block(
        name=f"{stack}.{kind}", kind=kind, stack=stack, inside=inside, each=each, times=times
    )
    norm = Block(
        name=f"{stack}.{kind}_norm", kind="norm", stack=stack, inside=(stream,),
        each=norm_parameters(config), times=times,
    )  # fmt: skip
    yield from (norm, main) if config.norm == "pre" else (main, norm)


def attention_parameters(config: ModelConfig) -> int:
    """Of one attention: the query, key, value and output matrices, biases, and norms of heads."""
    size, d_head = config.d_model, config.d_head
    asking, answering = config.n_heads * d_head, config.key_heads * d_head
    if config.shared_projection:
        inside, wide = d_head, 3 * d_head
    else:
        inside, wide = size, asking + 2 * answering
    made = (inside + config.attention_bias) * wide + (asking + config.has_output_bias) * size
    return made + 2 * config.norm_heads * NORMS[config.norm_kind].n_parameters(d_head)


def feed_forward_parameters(config: ModelConfig) -> int:
    """Of one feed-forward block: (C, d_ff), twice where it is gated, and back, and biases."""
    size, wide, bias = config.d_model, config.d_ff, config.feed_forward_bias
    return (1 + config.gated) * (size + bias) * wide + (wide + bias) * size


def norm_parameters(config: ModelConfig) -> int:
    """Of one norm."""
    return NORMS[config.norm_kind].n_parameters(config.d_model)


def _outputs(config: ModelConfig, stack: str) -> Iterator[Block]:
    """From the residual stream to probabilities."""
    size, vocab, length = config.d_model, config.output_vocab_size, length_of(config, stack)
    tied = config.tie_embeddings
    if config.head_transform:
        yield Block(
            name="transform", kind="transform", stack=stack, inside=((length, size),),
            each=(size + 1) * size + norm_parameters(config),
        )  # fmt: skip
    owner = "encoder.tokens" if config.share_embeddings else f"{stack}.tokens"
    yield Block(
        name="head", kind="head", stack=stack, inside=((length, size), (length, vocab)),
        each=(0 if tied else size * vocab) + (vocab if config.head_bias else 0),
        shared_with=owner if tied else None,
    )  # fmt: skip
    yield Block(name="softmax", kind="softmax", stack=stack, inside=((length, vocab),))

"""The parts of a network in words: what each is called, its shape, and what it does."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.model.config import ModelConfig
from transformer.model.shapes import Block, length_of

ACTIVATIONS = {"relu": "ReLU", "gelu": "GELU"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """title: its name for people. short: what a box has room for besides its parameters.
    shape: the shapes that the data takes. does: one or two sentences."""

    title: str
    short: str
    shape: str
    does: str


def words(config: ModelConfig, block: Block) -> Words:
    """How to speak of a block of this configuration."""
    shape = " → ".join(f"({', '.join(map(_whole, step))})" for step in block.inside)
    make = {
        "tokens": _tokens,
        "positions": _positions,
        "norm_embeddings": _norm_of_sum,
        "self": _self,
        "cross": _cross,
        "feed_forward": _feed_forward,
        "norm": _norm,
        "final_norm": _final_norm,
        "head": _head,
        "softmax": _softmax,
    }[block.kind]
    title, short, does = make(config, block)
    return Words(title=title, short=short, shape=shape, does=does)


def _whole(size: str | int) -> str:
    return size if isinstance(size, str) else f"{size:,}"


def _tokens(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    size = config.d_model
    vocab = config.output_vocab_size if block.stack == "decoder" else config.vocab_size
    title = "Token embedding" + (f" × √{size}" if config.scale_embeddings else "")
    does = f"Looks up {size:,} numbers for each token, in a table of {vocab:,} rows"
    does += f", and multiplies them by √{size}." if config.scale_embeddings else "."
    if block.shared_with:
        return title, "shared with the encoder", f"{does} It is the encoder's own table: shared."
    if config.tie_embeddings and (block.stack != "encoder" or _one_table(config)):
        does += " The head uses the same table: tied."
    return title, f"{vocab:,} × {size:,}", does


def _one_table(config: ModelConfig) -> bool:
    return config.share_embeddings or config.family == "encoder"


def _positions(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    if config.positions == "learned":
        short = f"{config.max_len:,} × {config.d_model:,}"
        does = f"Adds a trained vector for each position, of {config.max_len:,} that there are."
        return "+ Learned positions", short, does
    does = "Adds to each token a vector of sine and cosine waves that tells where it stands."
    return "+ Sinusoidal positions", "fixed waves", does


def _norm_of_sum(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    return "Norm of the sum", "", _normalises(config, block, "the sum of token and position")


def _self(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    masked = block.stack == "decoder"
    title = "Masked self-attention" if masked else "Self-attention"
    reads = "itself and what stands before it" if masked else "every token of the same text"
    does = f"Each token gathers from {reads}, in {_heads(config)}."
    return title, _heads_short(config, block), does


def _cross(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    does = (
        "Each token of the decoder gathers from the encoder's output, the memory "
        f"(S, {config.d_model:,}), in {_heads(config)}."
    )
    return "Cross-attention", _heads_short(config, block), does


def _heads(config: ModelConfig) -> str:
    many = "heads" if config.n_heads > 1 else "head"
    return f"{config.n_heads} {many} of {config.d_head} features each"


def _heads_short(config: ModelConfig, block: Block) -> str:
    many = "heads" if config.n_heads > 1 else "head"
    return f"{config.n_heads} {many} of ({length_of(config, block.stack)}, {config.d_head})"


def _feed_forward(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    activation, size, wide = ACTIVATIONS[config.activation], config.d_model, config.d_ff
    does = (
        f"Each token on its own: {size:,} features become {wide:,}, {activation} acts on each of "
        f"them, and {size:,} come out. No token sees another here."
    )
    return f"Feed-forward, {activation}", f"{size:,} → {wide:,} → {size:,}", does


def _norm(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    if config.norm == "pre":
        what = "what the next block reads; the stream itself goes by unchanged"
        return "Norm", "", _normalises(config, block, what)
    what = "the sum of what came in and what the block before made of it"
    return "Add & norm", "", _normalises(config, block, what)


def _final_norm(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    return "Final norm", "", _normalises(config, block, "the stream that leaves the last layer")


def _normalises(config: ModelConfig, block: Block, what: str) -> str:
    shape = f"({length_of(config, block.stack)}, {config.d_model:,})"
    return (
        f"Layer norm of {what}. Each token's {config.d_model:,} features get mean 0 and variance "
        f"1, then a trained scale and shift; {shape} stays {shape}."
    )


def _head(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    vocab, size = config.output_vocab_size, config.d_model
    does = f"A score for each of {vocab:,} tokens from {size:,} features."
    if block.shared_with is None:
        return "Linear head", f"{size:,} → {vocab:,}", does
    does += " Its matrix is the token embedding's, transposed: tied, and counted once."
    return "Linear head", "tied to embedding", does


def _softmax(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    what = "which token stands there" if config.family == "encoder" else "which token comes next"
    does = f"Turns the scores into probabilities of {what}; they sum to 1 at each place."
    return "Softmax", f"({length_of(config, block.stack)}, {config.output_vocab_size:,})", does

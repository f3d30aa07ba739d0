"""The parts of a network in words: what each is called, its shape, and what it does."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.messages import numeral, say, say_n
from transformer.model.activations import ACTIVATIONS
from transformer.model.config import ModelConfig
from transformer.model.config_checks import SCORE_DIVISORS, SHARED_PROJECTION
from transformer.model.norms import NORMS
from transformer.model.positions import POSITIONS
from transformer.model.rotary import SCALINGS
from transformer.model.summary import Block, length_of


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
        "token_types": _token_types,
        "positions": _positions,
        "norm_embeddings": _norm_of_sum,
        "self": _self,
        "cross": _cross,
        "feed_forward": _feed_forward,
        "norm": _norm,
        "final_norm": _final_norm,
        "transform": _transform,
        "head": _head,
        "softmax": _softmax,
    }[block.kind]
    title, short, does = make(config, block)
    return Words(title=title, short=short, shape=shape, does=does)


def _whole(size: str | int) -> str:
    return size if isinstance(size, str) else f"{size:,}"


def _tokens(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    size = config.d_model
    vocab = config.vocab_size_of(block.stack)
    title = say("Token embedding") + (f" × √{size}" if config.scale_embeddings else "")
    does = say(
        "Looks up {size} numbers for each token, in a table of {vocab} rows",
        size=numeral(size),
        vocab=numeral(vocab),
    )
    does += say(", and multiplies them by √{size}.", size=size) if config.scale_embeddings else "."
    if block.shared_with:
        return (
            title,
            say("shared with the encoder"),
            say("{does} It is the encoder's own table: shared.", does=does),
        )
    if config.tie_embeddings and (block.stack != "encoder" or _one_table(config)):
        does += say(" The head uses the same table: tied.")
    return title, f"{vocab:,} × {size:,}", does


def _token_types(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    does = say(
        "Adds a trained vector of {d_model} numbers that tells a first text from a second; the "
        "page reads one text, all of type 0.",
        d_model=numeral(config.d_model),
    )
    return say("+ Token types"), f"{config.n_token_types} × {config.d_model:,}", does


def _one_table(config: ModelConfig) -> bool:
    return config.share_embeddings or config.family == "encoder"


def _positions(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    encoding = POSITIONS[config.positions]
    sizes = {"max_len": f"{config.max_len_of(block.stack):,}", "d_model": f"{config.d_model:,}"}
    short, does = say(encoding.short, **sizes), say(encoding.does, **sizes)
    return f"+ {say(encoding.title)}", short, does


def _norm_of_sum(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    return (
        say("Norm of the sum"),
        "",
        _normalises(config, block, say("the sum of token and position")),
    )


def _self(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    masked = block.stack == "decoder"
    title = say("Masked self-attention") if masked else say("Self-attention")
    reads = (
        say("itself and what stands before it") if masked else say("every token of the same text")
    )
    does = say("Each token gathers from {reads}, in {heads}.", reads=reads, heads=_heads(config))
    return title, _heads_short(config, block), does + _places(config) + _history(config)


def _places(config: ModelConfig) -> str:
    """What of a self-attention has to do with where tokens stand."""
    said = [say("Queries and keys of each head are normed.")] if config.norm_heads else []
    if POSITIONS[config.positions].turns:
        turned = config.rotary.size
        what = (
            say("Queries and keys")
            if turned == config.d_head
            else say("{turned} features of them", turned=turned)
        )
        said.append(
            say(
                "{what} are turned by an angle that grows with their place: rotary positions.",
                what=what,
            )
        )
        said.append(say(SCALINGS[config.rotary_scaling].does, factor=config.rotary_factor))
    if config.window:
        said.append(
            say("A token reads at most {window}, itself the last.", window=numeral(config.window))
        )
    return "".join(f" {sentence}" for sentence in said if sentence)


def _cross(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    does = say(
        "Each token of the decoder gathers from the encoder's output, the memory (S, "
        "{d_model}), in {heads}.",
        d_model=numeral(config.d_model),
        heads=_heads(config),
    )
    return say("Cross-attention"), _heads_short(config, block), does + _history(config)


def _history(config: ModelConfig) -> str:
    """Where an attention departs from the paper as a tutorial did."""
    said = [SHARED_PROJECTION] if config.shared_projection else []
    said += [SCORE_DIVISORS[config.score_divisor]] if config.score_divisor != "d_head" else []
    return "".join(f" {say(sentence)}" for sentence in said)


def _heads(config: ModelConfig) -> str:
    said = say_n(
        "{n} head of {d_head} features each",
        "{n} heads of {d_head} features each",
        config.n_heads,
        d_head=config.d_head,
    )
    if config.key_heads == config.n_heads:
        return said
    shared = say_n("{n} head of keys and values", "{n} heads of keys and values", config.key_heads)
    return say(
        "{said}, of which {heads_per_key} at a time share one of {shared}",
        said=said,
        heads_per_key=config.heads_per_key,
        shared=shared,
    )


def _heads_short(config: ModelConfig, block: Block) -> str:
    if config.key_heads < config.n_heads:
        return say(
            "{n_heads} heads, {key_heads} of keys",
            n_heads=config.n_heads,
            key_heads=config.key_heads,
        )
    return say_n(
        "{n} head of ({length}, {d_head})",
        "{n} heads of ({length}, {d_head})",
        config.n_heads,
        length=length_of(config, block.stack),
        d_head=config.d_head,
    )


def _feed_forward(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    activation, size, wide = ACTIVATIONS[config.activation], config.d_model, config.d_ff
    acts = say(
        "{title} acts on each of them ({does})", title=activation.title, does=say(activation.does)
    )
    if config.gated:
        acts += say(
            ", they are multiplied one by one with {wide} others made of the same input",
            wide=numeral(wide),
        )
    does = say(
        "Each token on its own: {size} features become {wide}, {acts}, and {size} come out. No "
        "token sees another here.",
        size=numeral(size),
        wide=numeral(wide),
        acts=acts,
    )
    gated = say("Gated feed-forward") if config.gated else say("Feed-forward")
    return f"{gated}, {activation.title}", f"{size:,} → {wide:,} → {size:,}", does


def _norm(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    if config.norm == "pre":
        what = say("what the next block reads; the stream itself goes by unchanged")
        return say("Norm"), "", _normalises(config, block, what)
    what = say("the sum of what came in and what the block before made of it")
    return say("Add & norm"), "", _normalises(config, block, what)


def _final_norm(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    return (
        say("Final norm"),
        "",
        _normalises(config, block, say("the stream that leaves the last layer")),
    )


def _normalises(config: ModelConfig, block: Block, what: str) -> str:
    shape = f"({length_of(config, block.stack)}, {config.d_model:,})"
    norm = NORMS[config.norm_kind]
    does = say(norm.does, size=numeral(config.d_model))
    return say(
        "{title} of {what}. {does}; {shape} stays {shape}.",
        title=say(norm.title),
        what=what,
        does=does,
        shape=shape,
    )


def _transform(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    activation = ACTIVATIONS[config.activation].title
    does = say(
        "A linear map, {activation} and a norm, before the head looks at the features.",
        activation=activation,
    )
    return (
        say("Linear, {activation}, norm", activation=activation),
        f"{config.d_model:,} → {config.d_model:,}",
        does,
    )


def _head(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    vocab, size = config.output_vocab_size, config.d_model
    does = say(
        "A score for each of {vocab} tokens from {size} features.",
        vocab=numeral(vocab),
        size=numeral(size),
    )
    if block.shared_with is None:
        return say("Linear head"), f"{size:,} → {vocab:,}", does
    does += say(" Its matrix is the token embedding's, transposed: tied, and counted once.")
    return say("Linear head"), say("tied to embedding"), does


def _softmax(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    what = (
        say("which token stands there")
        if config.family == "encoder"
        else say("which token comes next")
    )
    does = say(
        "Turns the scores into probabilities of {what}; they sum to 1 at each place.", what=what
    )
    return say("Softmax"), f"({length_of(config, block.stack)}, {config.output_vocab_size:,})", does

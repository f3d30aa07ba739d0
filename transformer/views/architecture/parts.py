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
    return size if isinstance(size, str) else numeral(size)


def _tokens(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    size = config.d_model
    vocab = config.vocab_size_of(block.stack)
    title = say("Token embedding") + (f" × √{size}" if config.scale_embeddings else "")
    does = say(
        "Looks up {size} numbers for each token in a table of {vocab} rows.",
        size=numeral(size),
        vocab=numeral(vocab),
    )
    more = [say("They are multiplied by √{size}.", size=size)] if config.scale_embeddings else []
    short = f"{numeral(vocab)} × {numeral(size)}"
    if block.shared_with:
        short = say("shared with the encoder")
        more.append(say("The encoder uses the same table."))
    elif config.tie_embeddings and (block.stack != "encoder" or _one_table(config)):
        more.append(say("The output layer (LM head) uses the same table (tied weights)."))
    return title, short, " ".join((does, *more))


def _token_types(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    does = say(
        "Adds a trained vector of {d_model} numbers that tells a first text from a "
        "second one. The page reads a single text, all of type 0.",
        d_model=numeral(config.d_model),
    )
    return say("+ Token types"), f"{config.n_token_types} × {numeral(config.d_model)}", does


def _one_table(config: ModelConfig) -> bool:
    return config.share_embeddings or config.family == "encoder"


def _positions(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    encoding = POSITIONS[config.positions]
    sizes = {"max_len": numeral(config.max_len_of(block.stack)), "d_model": numeral(config.d_model)}
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
    heads = _heads(config)
    does = (
        say("Each token gathers from itself and the tokens before it, in {heads}.", heads=heads)
        if masked
        else say("Each token gathers from every token of the same text, in {heads}.", heads=heads)
    )
    return title, _heads_short(config, block), does + _places(config) + _history(config)


def _places(config: ModelConfig) -> str:
    """What of a self-attention has to do with where tokens stand."""
    said = [say("The queries and keys of each head are normalised.")] if config.norm_heads else []
    if POSITIONS[config.positions].turns:
        turned = config.rotary.size
        said.append(
            say(
                "Queries and keys are turned by an angle that grows with their position (rotary "
                "positions)."
            )
            if turned == config.d_head
            else say(
                "{count} features of each query and key are turned by an angle that grows with "
                "their position (rotary positions).",
                count=turned,
            )
        )
        said.append(say(SCALINGS[config.rotary_scaling].does, factor=config.rotary_factor))
    if config.window:
        said.append(
            say(
                "A token reads at most {window} tokens, itself included.",
                window=numeral(config.window),
            )
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
    effect = say(activation.does)
    does = (
        say(
            "Each token on its own: {size} features become {wide}, {activation} acts on each of "
            "them ({effect}), they are multiplied by {wide} others made from the same input, and "
            "{size} come out. No token sees another here.",
            size=numeral(size),
            wide=numeral(wide),
            activation=activation.title,
            effect=effect,
        )
        if config.gated
        else say(
            "Each token on its own: {size} features become {wide}, {activation} acts on each of "
            "them ({effect}), and {size} come out. No token sees another here.",
            size=numeral(size),
            wide=numeral(wide),
            activation=activation.title,
            effect=effect,
        )
    )
    gated = say("Gated feed-forward") if config.gated else say("Feed-forward")
    return (
        f"{gated}, {activation.title}",
        f"{numeral(size)} → {numeral(wide)} → {numeral(size)}",
        does,
    )


def _norm(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    if config.norm == "pre":
        what = say("what the next block reads, while the stream itself stays unchanged")
        return say("Norm"), "", _normalises(config, block, what)
    what = say("the sum of what came in and what the previous block made of it")
    return say("Add & norm"), "", _normalises(config, block, what)


def _final_norm(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    return (
        say("Final norm"),
        "",
        _normalises(config, block, say("the stream that leaves the last layer")),
    )


def _normalises(config: ModelConfig, block: Block, what: str) -> str:
    shape = f"({length_of(config, block.stack)}, {numeral(config.d_model)})"
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
        f"{numeral(config.d_model)} → {numeral(config.d_model)}",
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
        return say("Linear head"), f"{numeral(size)} → {numeral(vocab)}", does
    tied = say("Its matrix is the token embedding's, transposed (tied weights) and counted once.")
    return say("Linear head"), say("tied to embedding"), f"{does} {tied}"


def _softmax(config: ModelConfig, block: Block) -> tuple[str, str, str]:
    does = (
        say("Turns the scores into probabilities for the token that stands at each place.")
        if config.family == "encoder"
        else say("Turns the scores into probabilities for the token that comes next.")
    )
    return (
        say("Softmax"),
        f"({length_of(config, block.stack)}, {numeral(config.output_vocab_size)})",
        does,
    )

"""Titles, shapes and explanations of the blocks of a network."""

from __future__ import annotations

from typing import Any, NamedTuple

from transformer.messages import capital, numeral, say, say_list, say_n
from transformer.model.config import ModelConfig
from transformer.model.positions import POSITIONS
from transformer.model.primitives import ACTIVATIONS, NORMS, PLACEMENTS
from transformer.model.rotary import SCALINGS
from transformer.model.summary import Block, length_of
from transformer.views.drawing import style

MOST_LABELS = 12  # that are named
Numbers = dict[str, Any]  # values of the sentences' placeholders


class BlockText(NamedTuple):
    """title: the block's name. short: its sizes, for a box. does: one or two sentences."""

    title: str
    short: str
    does: str


def text_of(config: ModelConfig, block: Block) -> BlockText:
    """Describe a block of this configuration."""
    numbers = {
        "size": numeral(config.d_model),
        "d_model": numeral(config.d_model),
        "narrow": numeral(config.d_embedding),
        "wide": numeral(config.d_ff),
        "vocab": numeral(config.vocab_size_of(block.stack)),
        "length": length_of(config, block.stack),
        "max_len": numeral(config.max_len_of(block.stack)),
        "d_head": config.d_head,
        "activation": ACTIVATIONS[config.activation].title,
    }
    if block.kind == "norm_embeddings":
        numbers["size"] = numbers["narrow"]
    return _TEXTS[block.kind](config, block, numbers)


def shape_of(block: Block) -> str:
    """The shapes of the data on its way through a block: "(T, 256) → (T, 1024)"."""

    def text(size: str | int) -> str:
        return size if isinstance(size, str) else numeral(size)

    return " → ".join(f"({', '.join(map(text, step))})" for step in block.inside)


# --- input ----------------------------------------------------------------------------------------


def _tokens(config: ModelConfig, block: Block, numbers: Numbers) -> BlockText:
    title = say("Token embedding")
    numbers |= {"size": numbers["narrow"]}
    short = "{vocab} × {size}".format(**numbers)
    does = [say("Looks up {size} numbers for each token in a table of {vocab} rows.", **numbers)]
    factors = [numeral(config.embedding_scale, "g")] * (config.embedding_scale != 1)
    factors += [f"√{config.d_model}"] * config.scale_embeddings
    if factors:
        title = " × ".join([title, *factors])
        does.append(say("They are multiplied by {factor}.", factor=" × ".join(factors)))
    one_table = config.share_embeddings or config.family == "encoder"
    if block.shared_with:
        short = say("shared with the encoder")
        does.append(say("The encoder uses the same table."))
    elif config.tie_embeddings and (block.stack != "encoder" or one_table):
        does.append(say("The output layer (LM head) uses the same table (tied weights)."))
    return BlockText(title, short, " ".join(does))


def _token_types(config: ModelConfig, block: Block, numbers: Numbers) -> BlockText:
    does = say(
        "Adds a trained vector of {d_model} numbers that tells a first text from a "
        "second one. The page reads a single text, all of type 0.",
        d_model=numbers["narrow"],
    )
    return BlockText(say("+ Token types"), f"{config.n_token_types} × {numbers['narrow']}", does)


def _positions(config: ModelConfig, block: Block, numbers: Numbers) -> BlockText:
    encoding = POSITIONS[config.positions]
    numbers |= {"size": numbers["narrow"], "d_model": numbers["narrow"]}
    short, does = say(encoding.short, **numbers), say(encoding.does, **numbers)
    if config.relative_buckets and not encoding.is_bias:
        more = say(
            "Each head also adds a trained number to its scores, one for each distance between "
            "two tokens (relative positions)."
        )
        does = f"{does} {more}"
    return BlockText(f"+ {say(encoding.title)}", short, does)


def _project(config: ModelConfig, block: Block, numbers: Numbers) -> BlockText:
    does = say("A linear map from {narrow} features to the {d_model} of the stream.", **numbers)
    return BlockText(say("Linear map"), "{narrow} → {d_model}".format(**numbers), does)


# --- attention ------------------------------------------------------------------------------------


def _self(config: ModelConfig, block: Block, numbers: Numbers) -> BlockText:
    heads = _heads(config, numbers)
    if block.stack == "decoder":
        title = say("Masked self-attention")
        does = say(
            "Each token gathers from itself and the tokens before it, in {heads}.", heads=heads
        )
    else:
        title = capital(say("self-attention"))
        does = say("Each token gathers from every token of the same text, in {heads}.", heads=heads)
    more = [does, *_on_positions(config, block.stack), *_history(config)]
    return BlockText(title, _heads_short(config, numbers), " ".join(more))


def _cross(config: ModelConfig, block: Block, numbers: Numbers) -> BlockText:
    does = say(
        "Each token of the decoder gathers from the encoder's output, the memory (S, "
        "{d_model}), in {heads}.",
        heads=_heads(config, numbers),
        **numbers,
    )
    more = " ".join([does, *_history(config)])
    return BlockText(capital(say("cross-attention")), _heads_short(config, numbers), more)


def _on_positions(config: ModelConfig, stack: str) -> list[str]:
    """How a self-attention uses positions."""
    kinds = [config.layer_type(layer) for layer in range(config.n_layers_of(stack))]
    sentences = (
        [say("The queries and keys of each head are normalised.")] if config.norm_heads else []
    )
    if config.norm_all_heads:
        sentences.append(say("Queries are normalised over all heads together, and so are keys."))
    if POSITIONS[config.positions].is_rotary:
        rotated = config.rotary.size
        sentences.append(
            say(
                "Queries and keys are rotated by an angle that grows with their position (rotary "
                "positions)."
            )
            if rotated == config.d_head
            else say(
                "{count} features of each query and key are rotated by an angle that grows with "
                "their position (rotary positions).",
                count=rotated,
            )
        )
        factor = numeral(config.rotary_factor, "g")
        sentences.append(say(SCALINGS[config.rotary_scaling].does, factor=factor))
        if config.sliding_rotary_base is not None and any(kind.slides for kind in kinds):
            sentences.append(say("Some layers rotate at a speed of their own."))
        if not all(kind.rotates for kind in kinds):
            sentences.append(say("Some layers rotate nothing."))
    if config.window:
        n_read = config.window if stack == "decoder" else 2 * config.window - 1
        sentences.append(
            say_n(
                "A token reads at most {n} token, itself included.",
                "A token reads at most {n} tokens, itself included.",
                n_read,
            )
        )
        if not all(kind.slides for kind in kinds):
            sentences.append(say("In some layers it reads all."))
    return list(filter(None, sentences))


def _history(config: ModelConfig) -> list[str]:
    """How an attention departs from the paper, as one tutorial does."""
    sentences = []
    if config.shared_projection:
        sentences.append(
            "Historical: one small projection (d_head × d_head) for queries, one for keys and one "
            "for values serve all heads, as one tutorial has it; a head reads only its own share "
            "of the features."
        )
    if config.score_divisor == "d_model":
        sentences.append(
            "Historical: scores are divided by √d_model, as one tutorial has it; they come out too "
            "small, and the heads read nearly evenly."
        )
    return sentences


def _heads(config: ModelConfig, numbers: Numbers) -> str:
    heads = say_n(
        "{n} head of {d_head} features each",
        "{n} heads of {d_head} features each",
        config.n_heads,
        **numbers,
    )
    if config.key_heads == config.n_heads:
        return heads
    return say(
        "{said}, of which {heads_per_key} at a time share one of {shared}",
        said=heads,
        heads_per_key=config.heads_per_key,
        shared=say_n(
            "{n} head of keys and values", "{n} heads of keys and values", config.key_heads
        ),
    )


def _heads_short(config: ModelConfig, numbers: Numbers) -> str:
    counts = {"n_heads": config.n_heads, "key_heads": config.key_heads}
    if config.key_heads < config.n_heads:
        return say("{n_heads} heads, {key_heads} of keys", **counts)
    return say_n(
        "{n} head of ({length}, {d_head})",
        "{n} heads of ({length}, {d_head})",
        config.n_heads,
        **numbers,
    )


# --- feed-forward and norms -----------------------------------------------------------------------


def _feed_forward(config: ModelConfig, block: Block, numbers: Numbers) -> BlockText:
    numbers |= {"effect": say(ACTIVATIONS[config.activation].does)}
    if config.gated:
        title = say("Gated feed-forward")
        does = say(
            "Each token on its own: {size} features become {wide}, {activation} acts on each of "
            "them ({effect}), they are multiplied by {wide} others made from the same input, and "
            "{size} come out. No token sees another here.",
            **numbers,
        )
    else:
        title = capital(say("feed-forward"))
        does = say(
            "Each token on its own: {size} features become {wide}, {activation} acts on each of "
            "them ({effect}), and {size} come out. No token sees another here.",
            **numbers,
        )
    short = "{size} → {wide} → {size}".format(**numbers)
    return BlockText(say_list([title, numbers["activation"]]), short, does)


def _norm(config: ModelConfig, block: Block, numbers: Numbers) -> BlockText:
    if block.kind == "norm_embeddings":
        title, of = say("Norm of the sum"), say("the sum of token and position")
    elif block.kind == "final_norm":
        title, of = capital(say("final norm")), say("the stream that leaves the last layer")
    elif block.name.endswith("output_norm"):
        title, of = (
            say("Norm"),
            say("what the previous block made, before it is added to the stream"),
        )
    elif PLACEMENTS[config.norm].of_sum:
        title = say("Norm")
        of = say("the sum of what came in and what the previous block made of it")
    else:
        title = say("Norm")
        of = say("what the next block reads, while the stream itself stays unchanged")
    norm = NORMS[config.norm_kind]
    does = say(
        "{title} of {what}. {does}; {shape} stays {shape}.",
        title=say(norm.title),
        what=of,
        does=say(norm.does, **numbers),
        shape="({length}, {size})".format(**numbers),
    )
    return BlockText(title, "", does)


# --- output ---------------------------------------------------------------------------------------


def _transform(config: ModelConfig, block: Block, numbers: Numbers) -> BlockText:
    does = say("A linear map, {activation} and a norm, before the output layer.", **numbers)
    title = say("Linear, {activation}, norm", **numbers)
    return BlockText(title, "{size} → {narrow}".format(**numbers), does)


def _labels(config: ModelConfig, block: Block, numbers: Numbers) -> BlockText:
    names = ", ".join(style.shorten(name, 20) for name in config.labels[:MOST_LABELS])
    does = say("A score for each of the labels: {names}.", names=names)
    short = f"{numbers['size']} → {numeral(len(config.labels))}"
    return BlockText(say("Output layer"), short, does)


def _head(config: ModelConfig, block: Block, numbers: Numbers) -> BlockText:
    size = numbers["narrow"] if config.head_transform else numbers["size"]
    numbers |= {"vocab": numeral(config.output_vocab_size), "size": size}
    does = say("A score for each of {vocab} tokens from {size} features.", **numbers)
    if block.shared_with is None:
        return BlockText(say("Output layer"), "{size} → {vocab}".format(**numbers), does)
    tied = say("Its matrix is the token embedding's, transposed (tied weights) and counted once.")
    return BlockText(say("Output layer"), say("tied to embedding"), f"{does} {tied}")


def _softmax(config: ModelConfig, block: Block, numbers: Numbers) -> BlockText:
    does = (
        say("Turns the scores into probabilities for the token that stands at each place.")
        if config.family == "encoder"
        else say("Turns the scores into probabilities for the token that comes next.")
    )
    short = f"({numbers['length']}, {numeral(config.output_vocab_size)})"
    return BlockText(say("Softmax"), short, does)


_TEXTS = {
    "tokens": _tokens,
    "token_types": _token_types,
    "positions": _positions,
    "norm_embeddings": _norm,
    "project": _project,
    "self": _self,
    "cross": _cross,
    "feed_forward": _feed_forward,
    "norm": _norm,
    "final_norm": _norm,
    "transform": _transform,
    "labels": _labels,
    "head": _head,
    "softmax": _softmax,
}

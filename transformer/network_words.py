"""Names of stacks, attentions and heads, as whole phrases that can be translated."""

from __future__ import annotations

from transformer.messages import mark, numeral, say, say_n

_ATTENTIONS = {
    ("encoder", "self"): mark("encoder self-attention"),
    ("decoder", "self"): mark("decoder self-attention"),
    ("decoder", "cross"): mark("decoder cross-attention"),
}
_STACKS = {
    "encoder": mark("encoder"),
    "decoder": mark("decoder"),
    "encoder-decoder": mark("encoder and decoder"),
}
_WITHOUT = {"causal": mark("without the causal mask"), "padding": mark("without the padding mask")}


def attention_name(stack: str, kind: str) -> str:
    """ "decoder self-attention"; an unknown kind keeps its code name."""
    return say(_ATTENTIONS.get((stack, kind), f"{stack} {kind}-attention"))


def head_name(head: int | str, is_off: bool = False) -> str:
    """ "head 0", of one that is ablated "head 0, switched off"; "the mean of all heads"."""
    if head == "mean":
        return say("the mean of all heads")
    name = say("head {head}", head=head)
    return say("{name}, switched off", name=name) if is_off else name


def stack_name(stack: str) -> str:
    """ "decoder"; of a family with both "encoder and decoder"."""
    return say(_STACKS[stack])


def depth_in_words(first: int, last: int) -> str:
    """ "6 layers"; if the first and the last stack have different numbers, "12 + 6 layers"."""
    if first == last:
        return say_n("{n} layer", "{n} layers", first)
    return say_n("{first} + {n} layer", "{first} + {n} layers", last, first=numeral(first))


def without_mask(mask: str) -> str:
    """ "without the causal mask"; mask: "causal" or "padding"."""
    return say(_WITHOUT[mask])

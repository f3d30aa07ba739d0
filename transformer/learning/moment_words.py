"""What a moment of a training shows, in sentences: how it stands, and which heads have formed."""

from __future__ import annotations

from transformer.analysis.head_measures import ALL
from transformer.learning.moments import HeadNumber, Moments, Standing
from transformer.messages import mark, numeral, say


def told(moments: Moments, place: int) -> list[str]:
    """How it stands at a moment, and what has formed since the one before."""
    now = moments.standings[place]
    n_layers, n_heads = moments.shape
    even = say(
        "{n} of {total} heads read evenly.",
        n=numeral(now.n_even),
        total=numeral(n_layers * n_heads),
    )
    before = moments.standings[place - 1] if place else None
    return [_loss(moments, now), even, *_formed(now, before)]


def about(moments: Moments) -> str:
    """Which training it is, in a sentence."""
    n_layers, n_heads = moments.shape
    return say(
        "A second training of the same recipe, kept at {n} moments: {n_layers} layers of {n_heads} "
        "heads as in the model of this page, whose weights are another, longer training's. After "
        "its {total} steps this one costs {loss} nats a token, {bits} bits per byte, on held-out "
        "text.",
        n=numeral(len(moments.steps)), n_layers=n_layers, n_heads=n_heads,
        total=numeral(moments.total), loss=numeral(moments.standings[-1].loss, ".2f"),
        bits=numeral(moments.standings[-1].bits_per_byte, ".3f"),
    )  # fmt: skip


def _loss(moments: Moments, now: Standing) -> str:
    loss, bits = numeral(now.loss, ".2f"), numeral(now.bits_per_byte, ".3f")
    if now.step == 0:
        return say(
            "Before the first step: {loss} nats a token, {bits} bits per byte on held-out text.",
            loss=loss, bits=bits,
        )  # fmt: skip
    return say(
        "After step {step} of {total}: {loss} nats a token, {bits} bits per byte on held-out text.",
        step=numeral(now.step), total=numeral(moments.total), loss=loss, bits=bits,
    )  # fmt: skip


def _formed(now: Standing, before: Standing | None) -> list[str]:
    """What stands out by now; new ones first."""
    clear = [one for one in now.best if one.clear]
    if before is None:
        return [_reads(one) for one in clear]
    stood = {one.metric for one in before.best if one.clear}
    new = [_reads(one, before.step) for one in clear if one.metric not in stood]
    none = say(
        "Since step {step} no new kind of head has formed.", step=numeral(before.step)
    )  # fmt: skip
    return [*(new or [none]), *(_reads(one) for one in clear if one.metric in stood)]


def _reads(one: HeadNumber, since: int | None = None) -> str:
    """What a head does; since: the step before which no head did."""
    label = ALL[one.metric].label
    assert label is not None
    sentence = mark("Layer {layer}, head {head} {does} ({value}; an even head: {even}).")
    if since is not None:
        sentence = mark(
            "New since step {step}: layer {layer}, head {head} {does} ({value}; an even head: "
            "{even})."
        )
    return say(
        sentence, step=numeral(since or 0), layer=one.layer, head=one.head, does=say(label),
        value=numeral(one.value, ".2f"), even=numeral(one.even, ".2f"),
    )  # fmt: skip

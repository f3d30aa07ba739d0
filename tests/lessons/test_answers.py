"""Answers to the steps of the course that ask for a run, judged as a teacher would judge them."""

from typing import Any

import pytest

import transformer
from transformer.checks import InvalidRequest
from transformer.lessons import all_lessons
from transformer.server.fields import REQUEST
from transformer.server.lessons import shown_by
from transformer.server.service import Service

Change = str | dict[str, Any]  # a text, or fields of the step's state


def off(layer: int, *heads: int, kind: str = "self") -> dict[str, Any]:
    return {"type": "ablate", "stack": "decoder", "layer": layer, "heads": [*heads], "kind": kind}


def without(what: str, *more: dict[str, Any], text: str = "", **fields: Any) -> dict[str, Any]:
    """A state with a switch of *What if?* on."""
    texts = {"text": text} if text else {}
    return {"alter": [{"type": "break", "what": what}, *more], **texts, **fields}


def altered(*changes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"alter": [*changes], **fields}


def loki(name: str, start: str | None = None, who: str = "cat") -> str:
    first = name[:1] if start is None else start
    return (
        f"Once upon a time there was a little {who} named {name}. One day, a bird said to {name}, "
        f'"Hello, {first}'
    )


def forbid(*cells: list[int | None], layer: int | None = 5) -> dict[str, Any]:
    where = {} if layer is None else {"layer": layer}
    return {"type": "mask", "stack": "decoder", **where, "forbid": [*cells]}


def patch(layer: int, *positions: int, text: str = "The black dog is sleeping on the bed.") -> Any:
    return {
        "type": "patch", "stack": "encoder", "layer": layer, "positions": [*positions],
        "text": text,
    }  # fmt: skip


EVERY = range(8)
ALL_OFF = [off(layer, *EVERY) for layer in range(6)]
CROSS_OFF = [off(layer, *EVERY, kind="cross") for layer in range(3)]
TWO_LAYERS = CROSS_OFF[1:]
ELEVEN = [off(1, 0, 1, 4, 6, 7, kind="cross"), off(2, 1, 2, 3, 4, 5, 6, kind="cross")]
BRAM = "Tiko the bird met a cat named Bram. Tiko and"
# Of each step: what is right, and what is wrong with a part of the refusal.
TABLE: dict[str, tuple[list[Change], list[tuple[Change, str]]]] = {
    "prediction.1": (
        [loki("Plim"), loki("Nub"), loki("Hob"), loki("Jat"), loki("Fep", who="dog"),
         loki("Bram"), {"text": loki("Plim"), "length": 40}],
        [(loki("Loki"), "still holds"), (loki("Dorn"), "50"), ("Once upon a", "0"),
         (loki("Plim", "Plim"), ""), (loki("Plim", ""), ""),
         ("Once upon a time a bird said to a dog and the bi", ""),
         (altered(off(3, 4), text=loki("Nub")), "whole one"),
         ({"model": "fill-in", "text": loki("Nub")}, "model")],
    ),
    "prediction.2": (
        ["Tom was not happy. Tom was very", "Lemons taste"],
        [("Once upon a", "or less would count"), ("He was sad because he lost his", "still holds"),
         ("Water is", "or less"),
         (without("no-residual", text="Tom was not happy. Tom was very"), "whole one")],
    ),
    "tokens.1": (
        ["A happy Transformer came", "My grandmother loves the hippopotamus"],
        [("A happy dog came", "5 or more"), ("Transformer", "1 or less"), ("The sun", "5 or more")],
    ),
    "tokens.4": (
        [without("no-positions", text="The dog bit the man."),
         without("no-positions", text="The dog bit the man")],
        [(without("no-positions", text="The man  bit the dog."), "another order"),
         (without("no-positions", text="The man bit the dog"), "another order"),
         (without("no-positions", text="The man bit the dog!"), "another order"),
         (without("no-positions", text="The dog bit the big man."), "another order"),
         (altered(text="The dog bit the man."), "not switched on"),
         (without("no-scale", text="The dog bit the man."), "No positions"),
         (without("no-positions", text="The dog bit the man.", length=3), "ends by itself")],
    ),
    "attention.1": (
        [without("no-attention", text="There was a big dog named"),
         without("no-attention", text="We all saw a dog named"),
         without("no-attention", text="One day, a big bear met a girl named"),
         without("no-attention", text="A playground had a dinosaur named"),
         without("no-attention", text="Yesterday Grandma found a kitten named", length=20),
         altered(*ALL_OFF, text="We all saw a dog named")],
        [(without("no-positions", text="There was a little boy named"), "No attention"),
         (without("no-scale", text="There was a little boy named"), "No attention"),
         (without("no-attention"), "still holds"),
         (without("no-attention", text="There was a little boy named"), "Another one would count"),
         (without("no-attention", text="We saw a big boy"), "end with"),
         (without("no-attention", text="We all saw a dog named Max"), "end with"),
         (altered(*ALL_OFF[1:], text="We all saw a dog named"), "No attention"),
         ({"text": "We all saw a dog named"}, "not switched on"),
         (without("no-attention", off(5, 0), text="We all saw a dog named"), "as well")],
    ),
    "attention.5": (
        [altered(forbid([31, 12], [31, 24])), altered(forbid([31, 12], [31, 24], layer=None))],
        [(altered(forbid([31, None])), "At most|single cells"),
         (altered(forbid(*([31, key] for key in range(31)))), "At most 2"),
         (altered(forbid([31, 12])), "still there"),
         (altered(forbid([31, 28])), "still there"),
         (altered(), "No cell"),
         (altered(off(5, 0)), "No cell"),
         (altered(forbid([31, 12], [31, 24]), off(5, 0)), "as well"),
         (altered(forbid([31, 12], [31, 24]), length=1), "write"),
         (altered(forbid([2, 1], [2, 0]), text="The sun was"), "hold")],
    ),
    "values.2": (
        [altered(off(4, 2), text=BRAM), altered(off(4, 2), text=BRAM, length=30)],
        [(altered(off(4, 0)), "still holds"), (altered(text=BRAM), "No head"),
         (altered(off(4, 2, 3), text=BRAM), "At most 1"),
         (altered(*ALL_OFF[:5], text=BRAM), "At most 1"),
         (altered(off(0, 1), text=BRAM), "or more"),
         (altered(off(4, 2), text="The"), "or more")],
    ),
    "values.4": (
        [altered(off(3, 4)), altered(off(3, 4), length=30)],
        [(altered(off(3, 4), length=1), "write"), (altered(off(5, 0)), "stay on"),
         (altered(off(3, 4), off(5, 0)), "stay on|At most"),
         (altered(*ALL_OFF[:5], off(5, *range(1, 8))), "At most 1"),
         (altered(off(3, 4), text="The sun was"), "hold"),
         (altered(off(0, 3), text="The sun was"), "hold"),
         (altered(off(4, 2)), "still there"), (altered(), "No head"),
         (without("no-attention"), "No head"),
         (altered({**off(3), "heads": None, "part": "mlp_out"}), "No head")],
    ),
    "stream.2": (
        [without("no-attention"), altered(*ALL_OFF)],
        [(altered(), "not switched on"), (without("no-feed-forward"), "No attention"),
         (without("no-attention", text="Once upon a time there was a"), "end with"),
         (without("no-attention", text="The sun"), "begin with"), (altered(off(5, 0)), "")],
    ),
    "stream.3": (
        [without("no-attention", text="Once upon"), altered(*ALL_OFF, text="Once upon"),
         without("no-attention", text="Once upon", length=20)],
        [(without("no-positions", text="Once upon"), "No attention"),
         (without("no-scale", text="Once upon"), "No attention"),
         (without("no-attention", text="She wanted to thank"), "still holds"),
         (without("no-attention", text="Once upon a"), "The same would count"),
         ({"text": "Once upon", "alter": []}, "not switched on")],
    ),
    "sampling.2": (
        ["She was happy", "The trees"],
        [("The sun", "still holds"), ("Once upon a time", "1 or more"),
         ({"text": "She was happy", "method": "sample"}, "greedy"),
         ({"text": "She was happy", "length": 10}, "1 or more")],
    ),
    "sampling.5": (
        [{"forced_tokens": [444]}, {"forced_tokens": [465, 269]}],
        [({"forced_tokens": [465, 416, 745]}, "or less"), ({}, "replaced"),
         ({"forced_tokens": [465]}, "or less"),
         ({"forced_tokens": [444], "length": 5}, "10 or more"),
         ({"forced_tokens": [444], "text": "The sun"}, "begin with")],
    ),
    "filling.2": (
        ["The little [MASK] [MASK] up to [MASK] [MASK] in the [MASK].",
         "The little [MASK] [MASK] up to [MASK] [MASK] in the [MASK]"],
        [("The little [MASK] swam in the pond.", "with [MASK]"),
         ("The little [MASK] flew up to its nest in the tree.", "with [MASK]"),
         ("The little [MASK] flew up to its [MASK] in the tree.", "or less"),
         ("The little [MASK].", "with [MASK]"),
         ("The little [MASK] ran up to its [MASK] in the tree.", "with [MASK]")],
    ),
    "filling.3": (
        ["The little [MASK] and his mom went to the park.", "The little [MASK] put on his hat.",
         "the little [MASK] put on his hat"],
        [("The little [MASK] swam in the pond.", "would count"),
         ("The little [MASK] is a boy.", "still holds"),
         ("The big [MASK] put on his hat.", "begin"),
         ("A boy saw the little [MASK] put on his hat.", "begin")],
    ),
    "filling.5": (
        ["The little [MASK] barked at the man.", "The little [MASK] barked at the car."],
        [("The little [MASK] barked at the dog.", "still holds"), ("The [MASK].", "one other word"),
         ("The little [MASK] barked at the cat.", "one other word"),
         ("The little [MASK] barked at the bird.", "would count"),
         ("The little [MASK] barked at the [MASK].", "one other word"),
         ("The [MASK] went to the park.", "one other word")],
    ),
    "translation.2": (
        ["I have a small black cat.", "I have a small black car.", "She sees a small black dog.",
         "They have small black dogs.", "We saw a small black bird."],
        [("The little girl has a black cat.", "would count"), ("The black cat is small.", "count"),
         ("I have a small black dog.", "still holds"),
         ("I have a small cat and a black dog.", "would count"),
         ({"text": "I have a small black cat.", "length": 4}, "write"),
         (altered(off(2, 2, kind="cross"), text="I have a small black cat."), "whole one")],
    ),
    "translation.3": (
        [altered(*TWO_LAYERS), altered(*ELEVEN)],
        [(altered(*TWO_LAYERS, length=1), "write"), (altered(*CROSS_OFF), "At most 16"),
         (altered(off(0, 0, kind="cross"), text="I like this category."), "begin"),
         (altered(off(2, 2, kind="cross")), "still there"), (altered(CROSS_OFF[2]), "still there"),
         (altered(), "No head of cross"), (altered(off(0, *EVERY)), "No head of cross"),
         (altered(*TWO_LAYERS, text="The dog is sleeping."), "begin")],
    ),
    "translation.4": (
        [altered(*CROSS_OFF, text="I like apples."), altered(*CROSS_OFF, text="She reads a book.")],
        [(altered(*CROSS_OFF), "still holds"), (altered(text="I like apples."), "No head of cross"),
         (altered(off(2, 2, kind="cross"), text="I like apples."), "would count"),
         (altered(*CROSS_OFF, text="I like apples.", length=2), "write")],
    ),
    "translation.5": (
        [altered(patch(layer, 2)) for layer in range(3)],
        [(altered(patch(1, 0)), "would count"), (altered(patch(1, 6)), "would count"),
         (altered(patch(1, 0), text="The black cat and the dog are sleeping."), "begin"),
         (altered(patch(1, *range(9))), "At most 1"), (altered(), "No row"),
         (altered(patch(0, 2), patch(1, 2)), "At most 1"),
         (altered(text="The black dog is sleeping on the bed."), "begin")],
    ),
    "translation.6": (
        ["He ate a small green apple.", "HE ATE a small Green apple."],
        [("He works in a greenhouse.", "hold"), ("The evergreen tree is big.", "hold"),
         ({"text": "He ate a small green apple.", "length": 2}, "write"),
         ("She has a green car.", "still there"), ("The green apple is small.", "still there"),
         ("He works in a green house.", "still there"),
         ("She gave him a beautiful green apple.", "still holds"),
         (altered(*CROSS_OFF, text="He ate a small green apple."), "whole one")],
    ),
    "evidence.4": (
        [altered(off(3, 4), text=loki(name)) for name in ("Nub", "Jat", "Hob", "Fep", "Nim")],
        [(altered(off(3, 4), text='She said "Hello, '), "or more"),
         (altered(off(3, 4), text='She said "Hello, L'), "or more"),
         (altered(off(3, 4), text=loki("Plim")), "or more"),
         (altered(off(3, 4)), "still holds"), (altered(off(5, 0), text=loki("Nub")), "3·4"),
         (altered(off(3, 4), off(4, 2), text=loki("Nub")), "At most 1"),
         (altered(text=loki("Nub")), "No head")],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def service() -> Service:
    names = ("stories", "fill-in", "translate-en-fr")
    return Service([transformer.load(name) for name in names], trainings=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_runs_are_judged_as_a_teacher_would(service, name):
    lesson, _, number = name.partition(".")
    step = all_lessons()[lesson]["en"].steps[int(number) - 1]
    right, wrong = TABLE[name]
    expected = [(change, True, "") for change in right]
    expected += [(change, False, part) for change, part in wrong]
    misjudged = []
    for change, is_right, part in expected:
        state = {**step.state, **({"text": change} if isinstance(change, str) else change)}
        state = {field: value for field, value in state.items() if field in REQUEST}
        try:
            verdict = step.check.grade(shown_by(service, state), {})
        except InvalidRequest as error:
            verdict = (False, str(error))
        fits = not part or any(one in verdict[1] for one in part.split("|"))
        if verdict[0] is not is_right or not fits:
            misjudged.append((change, is_right, verdict))
    assert not misjudged, misjudged

"""Answers to the steps of the course that ask for a run, judged as a teacher would judge them."""

from typing import Any

import pytest

import transformer
from transformer.checks import InvalidRequest
from transformer.learning.training import Plan, bundled_recording, train
from transformer.lessons import all_lessons
from transformer.lessons.measures import GradingContext
from transformer.server.fields import REQUEST
from transformer.server.kept.service import Service
from transformer.server.learn.lessons import shown_by

Change = str | dict[str, Any]  # a text, or fields of the step's state


def off(layer: int, *heads: int, kind: str = "self") -> dict[str, Any]:
    return {"type": "ablate", "stack": "decoder", "layer": layer, "heads": [*heads], "kind": kind}


def without(what: str, *more: dict[str, Any], text: str = "", **fields: Any) -> dict[str, Any]:
    """A state with a switch of *What if?* on."""
    texts = {"text": text} if text else {}
    return {"interventions": [{"type": "break", "what": what}, *more], **texts, **fields}


def altered(*changes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"interventions": [*changes], **fields}


def forward(layer: int) -> dict[str, Any]:
    return {"type": "ablate", "stack": "decoder", "layer": layer, "part": "mlp_out"}


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
         loki("Bram"), {"text": loki("Plim"), "max_new_tokens": 40},
         "Jim met a bird named Gribo. Then G", loki("Al"), loki("Bo")],
        [(loki("Loki"), "still holds"), (loki("Dorn"), "50"), ("Once upon a", "0"),
         (loki("Plim", "Plim"), ""), (loki("Plim", ""), ""),
         (loki("Plim", "P "), "ends with a space"),
         ("Once upon a time a bird said to a dog and the bi", ""),
         (altered(off(3, 4), text=loki("Nub")), "whole one"),
         ({"model": "fill-in", "text": loki("Nub")}, "model"),
         ("The sun. The sun. T", "or more"), ("One day, One day, O", "or more"),
         (loki("Lily"), "or more"), ("The dog and The dog. T", "or more"),
         ("Sue saw Sue and S", "or more"), ("On Sunday Tim plays. On S", "or more"),
         ("It was Monday. Tim likes M", "or more"), ("They went to the Park. The P", "or more"),
         ("The Big Red Ball was big. B", "or more")],
    ),
    "prediction.2": (
        ["Once upon a time Tom was not happy. Tom was very", "Tom was not happy. Tom was very"],
        [("Lemons taste", "0.95 or more would count"), ("Once upon a", "or less would count"),
         ("Once upon a time there was a boy. Tom was very", "or less would count"),
         ("He was sad because he lost his", "still holds"),
         ("Water is", "or more"),
         ("Once upon a time Tom said, “I am not happy.” Tom was very", "is 0.1013"),
         (without("no-residual", text="Tom was not happy. Tom was very"), "whole one")],
    ),
    "tokens.1": (
        ["A happy Transformer came", "My grandmother loves the hippopotamus",
         "A dog saw a\nhippopotamus", "I like my merry-go-round"],
        [("A happy dog came", "5 or more"), ("Transformer", "1 or less"), ("The sun", "5 or more"),
         ("The 123456789", "5 or more"), ("I saw 1234567890 dogs", "5 or more"),
         ("The ............", "5 or more"), ("Grandmother", "1 or less")],
    ),
    "tokens.3": (
        ["It was hot and cold", "The mom and dad", "I saw a dog and a cat", "He went up and down",
         "The night was cold and hot", {"text": "It was hot and cold", "max_new_tokens": 9}],
        [("The big red dog was hot.", "still holds"), ("A big and a small dog", "still holds"),
         ("The red dog was hot.", "1 or more"), ("hot cold", "1 or more"), ("Hot and cold", ""),
         ("hot hot hot", "1 or more"), ("It was hot, it was hot", "1 or more"),
         (altered(off(0, 0), text="It was hot and cold"), "whole one"),
         ({"model": "fill-in", "text": "It was hot and cold"}, "model")],
    ),
    "tokens.4": (
        [without("no-positions", text="The dog bit the man."),
         without("no-positions", text="The dog bit the man"),
         without("no-positions", text="the dog bit the man")],
        [(without("no-positions", text="The man  bit the dog."), "another order"),
         (without("no-positions", text="The man bit the dog"), "another order"),
         (without("no-positions", text="The man bit the dog!"), "another order"),
         (without("no-positions", text="The dog bit the big man."), "another order"),
         (altered(text="The dog bit the man."), "not switched on"),
         (without("no-scale", text="The dog bit the man."), "No positions"),
         (without("no-positions", text="The dog bit the man.", max_new_tokens=3), "ends by itself"),
         (without("no-positions", text="Bit the man the dog."), "would count"),
         (without("no-positions", text="The dog bit the man.", method="sample", seed=1), "sample"),
         (without("no-positions", off(0, 1), text="The dog bit the man."), "as well"),
         (without("no-positions", text="The dog bit the man.", forced_tokens=[5]), "by hand"),
         (without("no-positions", text="The man was bitten by the dog."), "another order")],
    ),
    "attention.1": (
        [without("no-attention", text="There was a big dog named"),
         without("no-attention", text="We all saw a dog named"),
         without("no-attention", text="One day, a big bear met a girl named"),
         without("no-attention", text="A playground had a dinosaur named"),
         without("no-attention", text="Yesterday Grandma found a kitten named", max_new_tokens=20),
         altered(*ALL_OFF, text="We all saw a dog named"),
         without("no-attention", text="A dog named")],
        [(without("no-positions", text="There was a little boy named"), "No attention"),
         (without("no-scale", text="There was a little boy named"), "No attention"),
         (without("no-attention"), "still holds"),
         (without("no-attention", text="There was a little boy named"), "two different names"),
         (without("no-attention", text="We saw a big boy"), "end with"),
         (without("no-attention", text="We all saw a dog named."), "end with"),
         (without("no-attention", text="We all saw a dog named Max"), "end with"),
         (altered(*ALL_OFF[1:], text="We all saw a dog named"), "No attention"),
         ({"text": "We all saw a dog named"}, "not switched on"),
         (without("no-attention", off(5, 0), text="We all saw a dog named"), "as well"),
         (without("no-attention", text="named"), "two different names"),
         (without("no-attention", text="NAMED"), "two different names"),
         (without("no-attention", text="It was named"), "two different names")],
    ),
    "attention.5": (
        [altered(forbid([31, 12], [31, 24])), altered(forbid([31, 12], [31, 24], layer=None))],
        [(altered(forbid([31, None])), "at most|single cells"),
         (altered(forbid(*([31, key] for key in range(31)))), "at most 2"),
         (altered(forbid([31, 12])), "still there"),
         (altered(forbid([31, 28])), "still there"),
         (altered(), "No cell"),
         (altered(off(5, 0)), "No cell"),
         (altered(forbid([31, 12], [31, 24]), off(5, 0)), "as well"),
         (altered(forbid([31, 12], [31, 24]), max_new_tokens=1), "write"),
         (altered(forbid([2, 1], [2, 0]), text="The sun was"), "hold"),
         (altered(forbid([31, 12], [31, 24]), method="sample", seed=1), "sample"),
         (altered(forbid([31, 28]), forced_tokens=[269]), "by hand"),
         (altered(forbid([31, 0])), "still there")],
    ),
    "values.2": (
        [altered(off(4, 2), text=BRAM), altered(off(4, 2), text=BRAM, max_new_tokens=30)],
        [(altered(off(4, 0)), "still holds"), (altered(text=BRAM), "No head"),
         (altered(off(4, 2, 3), text=BRAM), "at most 1"),
         (altered(*ALL_OFF[:5], text=BRAM), "at most 1"),
         (altered(off(0, 1), text=BRAM), "or more"),
         (altered(off(4, 2), text="The"), "or more")],
    ),
    "values.4": (
        [altered(off(3, 4)), altered(off(3, 4), max_new_tokens=30)],
        [(altered(off(3, 4), max_new_tokens=1), "write"), (altered(off(5, 0)), "stay on"),
         (altered(off(3, 4), off(5, 0)), "stay on|at most"),
         (altered(*ALL_OFF[:5], off(5, *range(1, 8))), "at most 1"),
         (altered(off(3, 4), text="The sun was"), "hold"),
         (altered(off(0, 3), text="The sun was"), "hold"),
         (altered(off(4, 2)), "still there"), (altered(), "No head"),
         (without("no-attention"), "No head"),
         (altered({**off(3), "heads": None, "part": "mlp_out"}), "No head"),
         (altered(off(0, 3), forced_tokens=[269]), "by hand"),
         (altered(off(3, 4), method="sample", temperature=2), "sample"),
         (altered(off(5, 1)), "still there"), (altered(off(3, 4), off(0, 0)), "at most 1")],
    ),
    "stream.2": (
        [without("no-attention"), altered(*ALL_OFF)],
        [(altered(), "not switched on"), (without("no-feed-forward"), "No attention"),
         (without("no-attention", text="Once upon a time there was a"), "end with"),
         (without("no-attention", text="The sun"), "begin with"), (altered(off(5, 0)), ""),
         (without("no-attention", text="Once upon a time there was once upon a"), "0.90 or more"),
         (without("no-attention", text="once upon a time, and once upon a"), "0.90 or more")],
    ),
    "stream.3": (
        [without("no-attention", text="Once upon"), altered(*ALL_OFF, text="Once upon"),
         without("no-attention", text="Once upon", max_new_tokens=20)],
        [(without("no-positions", text="Once upon"), "No attention"),
         (without("no-scale", text="Once upon"), "No attention"),
         (without("no-attention", text="She wanted to thank"), "still holds"),
         (without("no-attention", text="Once upon a"), "The two have to be the same"),
         ({"text": "Once upon", "interventions": []}, "not switched on"),
         (without("no-attention", text="Once"), "4 or more"),
         (without("no-attention", text="She"), "4 or more"),
         (without("no-attention", text="Thank"), ""),
         (without("no-attention", off(1, 1), text="Once upon"), "as well")],
    ),
    "stream.6": (
        [altered(forward(0)), altered(forward(0), max_new_tokens=20)],
        [(altered(forward(2)), "The two have to differ"), (altered(forward(1)), "have to differ"),
         (altered(forward(5)), "The two have to differ"), (altered(), "No feed-forward"),
         (altered(forward(0), forward(1)), "at most 1"), (altered(off(5, 0)), "No feed-forward"),
         (altered(forward(0), off(5, 0)), "as well"), (without("no-feed-forward"), "No feed-for"),
         (without("no-attention"), "No feed-forward"), (altered(forward(0), text="A"), "begin"),
         (altered(forward(0), text="Once upon a time"), "end with"),
         (altered(forward(0), forced_tokens=[269]), "by hand")],
    ),
    "sampling.2": (
        ["She was happy", "The trees"],
        [("The sun", "still holds"), ("Once upon a time", "1 or more"),
         ({"text": "She was happy", "method": "sample"}, "greedy"),
         ({"text": "She was happy", "max_new_tokens": 10}, "1 or more"),
         ({"text": "The sky was blue.", "max_new_tokens": 1}, "1 or more"),
         ("Once upon a time there was a little girl named Lily.", "")],
    ),
    "sampling.5": (
        [{"forced_tokens": [444]}, {"forced_tokens": [465, 269]}],
        [({"forced_tokens": [465, 416, 745]}, "or less"), ({}, "replaced"),
         ({"forced_tokens": [465]}, "or less"),
         ({"forced_tokens": [444], "max_new_tokens": 5}, "10 or more"),
         ({"forced_tokens": [444], "text": "The sun"}, "begin with"),
         (altered(*ALL_OFF, forced_tokens=[465, 416, 745]), "whole one"),
         (altered(off(5, 0), forced_tokens=[444]), "whole one")],
    ),
    "filling.2": (
        ["The little [MASK] [MASK] up to [MASK] [MASK] in the [MASK].",
         "The little [MASK] [MASK] up to [MASK] [MASK] in the [MASK]",
         "The little [mask] [Mask] up to [MASK] [ MASK ] in the [mask].", f"The{' [MASK]' * 10}."],
        [("The little [MASK] swam in the pond.", "with [MASK]"),
         ("The little [MASK] flew up to its nest in the tree.", "with [MASK]"),
         ("The little [MASK] flew up to its [MASK] in the tree.", "or less"),
         ("The little [MASK].", "with [MASK]"),
         ("THE LITTLE [MASK] FLEW UP TO ITS [MASK] IN THE TREE.", "in capitals"),
         ("The little [MASK] ran up to its [MASK] in the tree.", "with [MASK]")],
    ),
    "filling.3": (
        ["The little [MASK] and his mom went to the park.", "The little [MASK] put on his hat.",
         "the little [MASK] put on his hat", "The little [mask] put on his hat."],
        [("The little [MASK] swam in the pond.", "would count"),
         ("The little [MASK] is a boy.", "still holds"),
         ("The big [MASK] put on his hat.", "begin"),
         ("A boy saw the little [MASK] put on his hat.", "begin"),
         ("The little [MASK] played with the boys.", "holds “boys”"),
         ("The little [MASK] and his boyfriend went home.", "still holds"),
         ("The little [MASK] saw her mom with a [MASK].", "")],
    ),
    "filling.5": (
        ["The little [MASK] barked at the man.", "The little [MASK] barked at the car."],
        [("The little [MASK] barked at the dog.", "still holds"), ("The [MASK].", "one other word"),
         ("The little [MASK] barked at the cat.", "one other word"),
         ("The little [MASK] barked at the bird.", "would count"),
         ("The little [MASK] barked at the [MASK].", "one other word"),
         ("The [MASK] went to the park.", "one other word"),
         ("The little [MASK] barked at the dogs.", "still holds"),
         ("The little puppy barked at the cat.", "still holds"),
         ("The little [MASK] barked at the doggy.", "still holds"),
         ("The little [MASK] barked at the hound.", "still holds"),
         ("The little [MASK] barked at the hotdog.", "still holds")],
    ),
    "translation.2": (
        ["I have a small black cat.", "I have a small black car.", "She sees a small black dog.",
         "They have small black dogs.", "We saw a small black bird.",
         "My small black cat sleeps."],
        [("The little girl has a black cat.", "would count"), ("The black cat is small.", "count"),
         ("I have a small black dog.", "still holds"),
         ("I have a small cat and a black dog.", "would count"),
         ("A small Black family has a dog.", "would count"),
         ({"text": "I have a small black cat.", "max_new_tokens": 4}, "write"),
         (altered(off(2, 2, kind="cross"), text="I have a small black cat."), "whole one"),
         ("The small cat sees the black dog.", "would count"),
         ("She has a little black car.", "would count"),
         ({"text": "I have a small black cat.", "forced_tokens": [5]}, "by hand")],
    ),
    "translation.3": (
        [altered(*TWO_LAYERS), altered(*ELEVEN)],
        [(altered(*TWO_LAYERS, max_new_tokens=1), "write"), (altered(*CROSS_OFF), "at most 16"),
         (altered(off(0, 0, kind="cross"), text="I like this category."), "begin"),
         (altered(off(2, 2, kind="cross")), "still there"), (altered(CROSS_OFF[2]), "still there"),
         (altered(), "No head of cross"), (altered(off(0, *EVERY)), "No head of cross"),
         (altered(*TWO_LAYERS, text="The dog is sleeping."), "begin")],
    ),
    "translation.4": (
        [altered(*CROSS_OFF, text="I like apples."), altered(*CROSS_OFF, text="She reads a book.")],
        [(altered(*CROSS_OFF), "still holds"), (altered(text="I like apples."), "No head of cross"),
         (altered(off(2, 2, kind="cross"), text="I like apples."), "would count"),
         (altered(*CROSS_OFF, text="I like apples.", max_new_tokens=2), "write")],
    ),
    "translation.5": (
        [altered(patch(layer, 2)) for layer in range(3)],
        [(altered(patch(1, 0)), "would count"), (altered(patch(1, 6)), "would count"),
         (altered(patch(1, 0), text="The black cat and the dog are sleeping."), "begin"),
         (altered(patch(1, *range(9))), "at most 1"), (altered(), "No row"),
         (altered(patch(0, 2), patch(1, 2)), "at most 1"),
         (altered(text="The black dog is sleeping on the bed."), "begin")],
    ),
    "translation.6": (
        ["He ate a small green apple.", "HE ATE a small Green apple.",
         "He ate a delicious green apple.", "They have a long green snake.",
         "My old green car is broken.", "Three small green apples fell."],
        [("Mr Green ate an apple.", "hold"), ("A Mr Green called me.", "means something else"),
         ("My uncle Green is here.", "means something"), ("Anna Green eats bread.", "hold"),
         ("The village green was empty.", "means something else"),
         ("The old village green was empty.", "hold"),
         ("That village green was empty.", "means something else"),
         ("We played on a golf green today.", "means something else"),
         ("The green is nice today.", "hold"), ("The small green was empty.", "means something"),
         ("A new Green Party was born.", "means something"), ("We live in Green Street.", "hold"),
         ("The whole Green family has a dog.", "means something else"),
         ("He saw the small green. Apples fell.", "hold"),
         ("He works in a greenhouse.", "hold"), ("The evergreen tree is big.", "hold"),
         ({"text": "He ate a small green apple.", "max_new_tokens": 2}, "write"),
         ("She has a new green car.", "still there"), ("I saw a small green bird.", "still"),
         ("He works in a small green house.", "still there"),
         ("She gave him a beautiful green apple.", "still holds"),
         (altered(*CROSS_OFF, text="He ate a small green apple."), "whole one"),
         ("HE ATE A SMALL GREEN APPLE.", "in capitals"),
         ("Green", "green …"), ("The grass is green", "green …"), ("He ate green peas.", "green …"),
         ({"text": "The big green apple is small.", "method": "sample", "seed": 1}, "sample")],
    ),
    "evidence.2": (
        [altered(off(3, 4)), altered(off(3, 4), max_new_tokens=20)],
        [(altered(off(5, 0)), "stay on"), (altered(off(4, 5)), "2 or less"),
         (altered(off(0, 0)), "2 or less"), (altered(), "No head"),
         (altered(off(3, 4), off(5, 0)), "stay on|at most 1"),
         (altered(off(3, 4, 5)), "at most 1"), (altered(off(3, 4), max_new_tokens=1), "write"),
         (altered(off(3, 4), text="Tiko and B"), "begin"),
         (altered(off(3, 4), text=f"{BRAM} Br"), "end|begin"), (altered(forward(3)), "No head"),
         (altered(off(3, 4), forced_tokens=[269]), "by hand"), (without("no-scale"), "No head")],
    ),
    "evidence.4": (
        [altered(off(3, 4), text=loki(name)) for name in ("Nub", "Jat", "Hob", "Fep", "Nim")],
        [(altered(off(3, 4), text='She said "Hello, '), "or more"),
         (altered(off(3, 4), text='She said "Hello, L'), "or more"),
         (altered(off(3, 4), text="On Sunday they said Hello. Hello, on S"), "or more"),
         (altered(off(3, 4), text=loki("Plim")), "or more"),
         (altered(off(3, 4)), "still holds"), (altered(off(5, 0), text=loki("Nub")), "3·4"),
         (altered(off(3, 4), off(4, 2), text=loki("Nub")), "at most 1"),
         (altered(text=loki("Nub")), "No head")],
    ),
}  # fmt: skip


# Of each other step: which answers to the run as it opens are right, and which are wrong.
# A bare number is that number in a step that asks for one, else the number of the sentence.
ANSWERS: dict[str, tuple[list[Any], list[Any]]] = {
    "prediction.3": ([17], [1, 3, 16, 18, 27]),
    "prediction.4": ([{"token": 11}], [{"token": 3}, {"token": 5}, {"token": 0}, {"token": 1}]),
    "prediction.5": ([4], [1, 3, 5, 0.07, -4]),
    "tokens.2": ([524288], [524.29, 2048, 256, 524289, 52428, 524.288]),
    "tokens.5": ([1], [0, 2]),
    "attention.2": ([1.96, 2, 1.9, 1.95, 2.0], [0.51, 0.67, 1, 67, 1.8, 1.5]),
    "attention.3": ([0.85, 0.849, 85, 0.84], [0.32, 0.62, 0.5, 0.8, 0.9, 1, 0]),
    "attention.4": ([8], [6, 7, 5, 13, 0]),
    "values.1": ([-1.75, -1.76, -1.74], [1.75, -17.5, 0, 20, -1.6]),
    "values.3": ([32], [256, 8, 31, 0.32]),
    "values.5": ([{"token": 0}], [{"token": 3}, {"token": 1}, {"token": 9}]),
    "stream.1": ([524288], [262144, 1024, 786432, 0.5]),
    "stream.4": ([-0.29, -0.285, -0.3], [0.29, -2.85, 15.46, 0, -0.2]),
    "stream.5": ([2], [0, 1]),
    "sampling.1": ([0.095, 0.1, 0.09, 9.5, 9], [0.65, 0.908, 65, 0.2, 0, 0.95]),
    "sampling.3": ([10], [1, 322, 40, 0.9, 9, 11]),
    "sampling.4": ([2], [0, 1, 3]),
    "learning.1": ([3.13, 3.1, 3.14], [3.2, 0.31, 23, 31.3, 1]),
    "learning.3": ([2], [0, 1]),
    "learning.4": ([15, 14, 17, 0.15], [26, 1.5, 86, 0, 20]),
    "opener.1": ([7, 8, 0.07], [10, 74, 99, 0, 0.7]),
    "filling.1": ([9], [1, 8, 10, 0.2]),
    "filling.4": ([0], [1, 2]),
    "translation.1": (
        [{"query": 1, "key": 2}],
        [{"query": 2, "key": 2}, {"query": 3, "key": 2}, {"query": 0, "key": 2},
         {"query": 1, "key": 1}, {"query": 1, "key": 3}, {"query": 1, "key": 0}],
    ),
    "evidence.1": ([0.46, 0.5, 0.4, 0.55], [1.3, 2.37, -0.46, 0, 0.8]),
    "evidence.3": ([0.09, 0.1, 0.08, 9], [0.33, 0.29, 0.2, 33, 0]),
    "evidence.5": ([1], [0, 2]),
    "evidence.6": ([1], [0, 2, 3]),
}  # fmt: skip
KEYS = {"number": "number", "choose": "option"}


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_judged_as_a_teacher_would(service, name):
    lesson, _, number = name.partition(".")
    step = all_lessons()[lesson]["en"].steps[int(number) - 1]
    context = shown_by(service, step.state)
    right, wrong = ANSWERS[name]
    misjudged = []
    for answer in (*right, *wrong):
        given = answer if isinstance(answer, dict) else {KEYS[step.check.kind]: answer}
        verdict = step.check.grade(context, given)
        if verdict.right is not (answer in right) or not verdict.says:
            misjudged.append((answer, verdict))
    assert not misjudged, misjudged


@pytest.mark.slow
def test_a_cell_is_judged_in_a_sentence_of_the_visitors_own(service):
    step = all_lessons()["translation"]["en"].steps[0]
    shown = shown_by(service, step.state | {"text": "I saw a cat."})  # J'ai vu un chat
    chosen = [label.strip("␣") for label in shown.run.labels].index("chat") - 1
    cells = [(chosen, 3), (chosen + 1, 3), (chosen, 2), (1, 2)]
    right = [step.check.grade(shown, {"query": row, "key": key}).right for row, key in cells]
    assert right == [True, False, False, False]
    other = shown_by(service, step.state | {"text": "I like bread."})
    with pytest.raises(InvalidRequest, match="as the step opened it"):
        step.check.grade(other, {"query": 1, "key": 2})


def test_a_question_that_the_shown_text_cannot_answer_says_what_would(service):
    """No raw error is a verdict: neither a name of Python's nor a range of places."""
    for name, text in (("evidence.1", "The sun"), ("attention.2", "The sun"), ("attention.4", "A")):
        lesson, _, number = name.partition(".")
        step = all_lessons()[lesson]["en"].steps[int(number) - 1]
        other = {"model": "translate-en-fr"} if name == "attention.2" else {}
        fields = {name: step.state[name] for name in ("model", "method", "max_new_tokens")}
        shown = shown_by(service, {**fields, "text": text, **other})
        with pytest.raises(InvalidRequest, match=r"as the step opened it|only tokens") as refusal:
            step.check.grade(shown, {"number": 1})
        assert "must be" not in str(refusal.value)


@pytest.mark.slow
def test_networks_of_the_visitor_are_judged_as_a_teacher_would(service):
    steep = {"task": "induction", "learning_rate": 0.2, "n_steps": 60, "feed_forward": False}
    made = {
        "recorded": bundled_recording("induction"),
        "steep": [*train(Plan(**steep))][-1], "shallow": [*train(Plan(**steep, n_layers=1))][-1],
    }  # fmt: skip
    names = {name: service.own.add("", record.plan.task, record.model()).name
             for name, record in made.items()}  # fmt: skip
    misjudged = []
    for number, network, changes, is_right, part in (
        (2, "steep", [], True, ""), (2, "recorded", [], False, "0.10 or more"),
        (2, "shallow", [], False, "2 or more"), (2, "steep", [off(0, 0)], False, "whole one"),
        (2, "recorded", ALL_OFF[:2], False, ""),
        (5, "recorded", [], False, "1 or less"), (5, "steep", [], False, "1 or less"),
        (5, "shallow", [], False, "400 or more"),
        (6, "recorded", [off(0, 0, 1)], True, ""),
        (6, "recorded", [off(0, 0)], False, "60 or less"),
        (6, "recorded", [off(0, 1)], False, "60 or less"), (6, "recorded", [], False, "No head"),
        (6, "recorded", [off(1, 3)], False, "stay on"), (6, "recorded", [off(1, 0, 1)], False, ""),
        (6, "recorded", [off(0, 0, 1, 2)], False, "at most 2"),
        (6, "steep", [off(0, 0, 1)], False, "90 or more"),
        (6, "shallow", [off(0, 0, 1)], False, "90 or more"),
    ):  # fmt: skip
        step = all_lessons()["learning"]["en"].steps[number - 1]
        run = service.store.run(service.example(names[network])[0])
        run = service.generate(
            names[network], run.request.text, max_new_tokens=run.request.max_new_tokens,
            interventions=[{**one, "heads": [h for h in one["heads"] if h < 4]} for one in changes],
        )  # fmt: skip
        verdict = step.check.grade(GradingContext(run=run, models=service.queries), {})
        if verdict.right is not is_right or part not in verdict.says:
            misjudged.append((number, network, changes, verdict))
    assert not misjudged, misjudged

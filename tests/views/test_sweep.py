"""Every picture keeps hostile tokens as text and is readable, for a short and a long text.

A new view is swept as soon as it is declared.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import plotly.graph_objects as go
import pytest
from kit import serving
from kit.client import queries
from kit.models import tiny, tokenizer_of
from kit.runs import HOSTILE, batch_of, relabelled, sampled_run, strings

from transformer import Batch, Model, Run, Tokenizer, with_lens
from transformer.messages import say, speaking
from transformer.tokenizer import MASK
from transformer.views.declaration import Picture
from transformer.views.drawing import style
from transformer.views.export.html import DEFAULT_VIEWS
from transformer.views.export.recorded import stored_answers
from transformer.views.registry import PICTURES, VIEWS

Asked = tuple[Model, Run | Batch]
BAD = ("<s>", "<b>x", "</script", "w" * 61)
SWEPT = [
    one for one in PICTURES.values()
    if one.subject != "model" and (one.figure is not None or not one.network)
]  # fmt: skip
DRAWN = [one for one in SWEPT if not one.network]
# Pictures without a figure: numbers and choices for a page's script.
NO_FIGURE = {
    "architecture", "atlas", "choices", "columns", "compare", "metrics", "readers", "used_mask",
}  # fmt: skip


@pytest.fixture(scope="module")
def items(tiny_model: Model) -> list[Asked]:
    """A story, a translation by beams, a text that an encoder read, a padded batch of each, and
    the shortest text and one that is longer than the window."""
    metrics = {name: {"mean": 0.5, "strongest": [[0.9, 0]]} for name in ("previous", "induction")}
    head = {"kind": "decoder.self", "layer": 0, "head": 0, "metrics": metrics, "cost": 0.1}
    measured = {"n_texts": 1, "heads": [head], "texts": {"0": "<b>x</b>"}}
    writer = dataclasses.replace(tiny_model, heads=measured)
    translator = serving.tiny_translator()
    turning = tiny("turning", "decoder", writer.tokenizer, positions="rotary")
    biased = tiny("biased", "decoder", writer.tokenizer, positions="alibi")
    distances = {"positions": "disentangled", "relative_buckets": 8}
    apart = tiny("apart", "encoder", writer.tokenizer, **distances)
    guesser = tiny("guesser", "encoder", tokenizer_of([MASK]), positions="learned")
    scorers = [
        tiny(head, "encoder", guesser.tokenizer, positions="learned", head=head,
             labels=tuple(HOSTILE[:2]), tie_embeddings=False)
        for head in ("text-labels", "token-labels")
    ]  # fmt: skip
    ranking = {"head": "text-labels-last", "labels": ("fits",), "label_probabilities": "none"}
    scorers += [
        tiny("ranker", "decoder", writer.tokenizer, positions="learned", **ranking),
        tiny("reader", "decoder", writer.tokenizer, positions="rotary", head="none"),
        tiny("judge", "encoder-decoder", writer.tokenizer, positions="learned", **ranking),
    ]
    texts = ("The fox said hello.", "Go")
    beams = translator.generate("The fox said", beams=2, max_new_tokens=4)
    return [
        (turning, turning.trace("The fox said")),
        (writer, sampled_run(writer)),
        (translator, with_lens(translator, beams)),
        (guesser, with_lens(guesser, guesser.trace("The fox"))),
        (biased, biased.trace("The fox said")),
        (apart, apart.trace("The fox said")),
        *((scorer, scorer.trace("The fox")) for scorer in scorers),
        (writer, batch_of(writer, *texts)),
        (translator, translator.translate_batch(list(texts))),
        (scorers[-1], batch_of(scorers[-1], *texts)),
        (writer, with_lens(writer, writer.trace("a"))),
        (writer, with_lens(writer, writer.generate("The fox", max_new_tokens=40))),
    ]


def hostile(item: Run | Batch) -> Run | Batch:
    """The item with HOSTILE tokens."""
    if isinstance(item, Run):
        source = (HOSTILE * len(item.source_labels))[: len(item.source_labels)]
        return dataclasses.replace(relabelled(item, HOSTILE), source_labels=source)

    def rows(labels: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        return tuple((HOSTILE * len(row))[: len(row)] for row in labels)

    return dataclasses.replace(
        item, labels=rows(item.labels), target_labels=rows(item.target_labels)
    )


def given_to(picture: Picture, item: Run | Batch) -> dict[str, Any]:
    """What the page would choose first for its parameters."""
    stack, kind = item.trace.kinds()[-1]
    first = {"site": f"{stack}.0.{kind}", "stack": stack, "kind": kind, "position": 1}
    first["other"] = "The dog said"
    return {one.name: first[one.name] for one in picture.parameters if one.name in first}


def asked_of(picture: Picture, items: list[Asked]) -> Iterator[tuple[Run | Batch, list[Any]]]:
    """Each item that fits a picture's subject, and the arguments of its answer."""
    kinds = {"batch": Batch, "run or batch": Run | Batch}
    for model, item in items:
        if isinstance(item, kinds.get(picture.subject, Run)):
            of = [queries(model)] if picture.network else []
            yield item, [*of, item, item] if picture.subject == "runs" else [*of, item]


def drawn(picture: Picture, items: list[Asked]) -> list[go.Figure]:
    """Those of every item that the picture is about and can be drawn for."""
    found: list[go.Figure] = []
    for item, subjects in asked_of(picture, items):
        try:
            answer = picture.ask(*subjects, given=given_to(picture, item))
        except ValueError:  # not for this kind of network
            continue
        for value in answer.values():
            is_plain = isinstance(value, dict) and {*value} == {"data", "layout"}
            if is_plain and picture.name not in NO_FIGURE:
                value = go.Figure(value)  # which Plotly checks here alone
            inside = value.values() if isinstance(value, dict) else [value]
            found += [one for one in inside if isinstance(one, go.Figure)]
    return found


@pytest.fixture(scope="module")
def shown(items: list[Asked]) -> Callable[[str], list[go.Figure]]:
    """Every figure of a picture in English, drawn once."""
    return cache(lambda name: drawn(PICTURES[name], items))


every_picture = pytest.mark.parametrize("picture", SWEPT, ids=lambda one: one.name)


@every_picture
def test_hostile_tokens_stay_text_wherever_plotly_reads(picture, items, monkeypatch):
    monkeypatch.setattr(Tokenizer, "label", lambda _, index: HOSTILE[index % len(HOSTILE)])
    found = drawn(picture, [(model, hostile(item)) for model, item in items])
    assert bool(found) == (picture.name not in NO_FIGURE)
    for figure in found:
        plain = json.loads(figure.to_json())
        plain["layout"].pop("meta", None)  # data for a page's own script
        for text in strings(plain):
            assert not [bad for bad in BAD if bad in text.removeprefix("<b>")], text[:200]
        for text in strings([plain["layout"]["title"]["text"], plain["layout"].get("annotations")]):
            assert "%{" not in text  # Plotly fills such a place with the layout's meta
        for trace in plain["data"]:  # nor may a token's own %{…} be filled
            assert "\u2068" not in f"{trace.get('hovertemplate')}{trace.get('texttemplate')}"


def font_sizes(value: Any, key: str = "") -> Iterator[float]:
    """Every size of a font in a figure's plain JSON."""
    if isinstance(value, dict):
        if "font" in key and isinstance(value.get("size"), int | float):
            yield value["size"]
        for name, part in value.items():
            yield from font_sizes(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from font_sizes(part, key)


@every_picture
def test_a_picture_is_readable_on_its_own_paper(picture, shown):
    for figure in shown(picture.name):
        layout = figure.layout
        assert layout.title.text
        assert (layout.paper_bgcolor, layout.plot_bgcolor) == (style.PAPER, style.TRANSPARENT)
        assert layout.font.color == style.LIGHT.text
        assert all(trace.name for trace in figure.data if trace.showlegend)
        text = figure.to_json()
        assert min(font_sizes(json.loads(text)), default=14) >= 14
        assert len(text) < 300_000


WRONG = (True, -1, 10**6, 1.5, float("nan"), "nonsense", "decoder.9.self", ["x"], [-1], {}, None)
LIMITS = re.compile(r"whole number from (\d+) to ([\d,]+)")


@pytest.mark.parametrize("picture", DRAWN, ids=lambda one: one.name)
def test_an_unknown_value_is_refused_with_a_message(picture, items):
    """By a ValueError and nothing else, and a number just beyond the limits that it tells."""
    for item, subjects in asked_of(picture, items):
        given = given_to(picture, item)

        def refusal(subjects=subjects, item=item, given=given, **values):
            """The sentence that these values are refused with, "" where they are taken."""
            try:
                picture.ask(*subjects, given=given | values)
            except ValueError as error:
                return str(error)
            return ""

        if refusal():  # not for this kind of network
            continue
        for parameter in picture.parameters:
            said = [refusal(**{parameter.name: value}) for value in WRONG]
            usual = [one for one in said if "got" in one or "record" in one]
            assert len(usual) >= len(WRONG) // 2, (parameter.name, said)
            for least, most in {limits for one in said for limits in LIMITS.findall(one)}:
                beyond, within = int(most.replace(",", "")) + 1, int(least)
                assert refusal(**{parameter.name: beyond}), (parameter.name, beyond)
                assert "number from" not in refusal(**{parameter.name: beyond - 1}), parameter.name
                assert "number from" not in refusal(**{parameter.name: within}), parameter.name


def test_titles_of_a_saved_page_are_said_in_its_language(items):
    runs = [
        with_lens(model, item) if model.config.head == "tokens" else item
        for model, item in items
        if isinstance(item, Run)
    ]
    names = {name for run in runs for name, _, _ in stored_answers(run)}
    titles = {PICTURES[name].title for name in names} | {
        VIEWS[name].title for name in DEFAULT_VIEWS
    }
    assert len(titles) > 10
    with speaking("zh"):
        assert [title for title in titles if say(title) == title] == []

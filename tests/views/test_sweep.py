"""Every picture that a view declares: hostile tokens stay text, both themes are readable.

A new view is swept as soon as it is declared.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
import serving
from builders import tiny
from pictured import HOSTILE, batch_of, relabelled, sampled_run, strings

from transformer import Batch, Model, Run, views, with_lens
from transformer.views import saving
from transformer.views.declaration import Picture
from transformer.views.drawing import style

BAD = ("<s>", "<b>x", "</script", "w" * 61)
DRAWN = [one for one in views.PICTURES.values() if not one.network and one.takes != "model"]
# What of these has no figure: numbers and choices for a page's script.
NO_FIGURE = {"atlas", "choices", "compare", "metrics", "readers", "used_mask"}
DRAWN_ONLY = {"architecture", "atlas"}  # pictures without a table


@pytest.fixture(scope="module")
def items(tiny_model: Model, tiny_encoder: Model) -> list[Run | Batch]:
    """A story, a translation by beams, a text that an encoder read, and a padded batch of each."""
    translator = serving.tiny_translator()
    texts = ("The fox said hello.", "Go")
    found = translator.generate("The fox said", beams=2, max_new_tokens=4)
    translated = translator.translate_batch(list(texts))
    read = tiny_encoder.trace("The fox said")
    assert isinstance(read, Run)
    changes = {"positions": "rotary", "n_heads": 2}
    turning = tiny("turning", "decoder", tiny_model.tokenizer, **changes)
    return [
        turning.trace("The fox said"), sampled_run(tiny_model),
        with_lens(translator, found), with_lens(tiny_encoder, read),
        batch_of(tiny_model, *texts), translated,
    ]  # fmt: skip


def hostile(item: Run | Batch) -> Run | Batch:
    """The same with HOSTILE tokens."""
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
    first = {"site": f"{stack}.0.{kind}", "stack": stack, "kind": kind, "place": 1}
    return {one.name: first[one.name] for one in picture.parameters if one.name in first}


def figures(picture: Picture, items: list[Run | Batch], dark: bool) -> list[go.Figure]:
    """Those of every item that the picture is about and can be drawn for."""
    found: list[go.Figure] = []
    for item in items:
        takes = (
            Batch if picture.takes == "batch" else Run if picture.takes != "run or batch" else None
        )
        if takes is not None and not isinstance(item, takes):
            continue
        subjects = [item, item] if picture.takes == "runs" else [item]
        try:
            given = given_to(picture, item) | {"dark": dark}
            answer = picture.ask(*subjects, given=given, item=item)
        except ValueError:  # not for this kind of network
            continue
        values = [
            *answer.values(),
            *(v for one in answer.values() if isinstance(one, dict) for v in one.values()),
        ]
        found += [value for value in values if isinstance(value, go.Figure)]
    return found


@pytest.mark.parametrize("picture", DRAWN, ids=lambda picture: picture.name)
def test_hostile_tokens_stay_text_wherever_plotly_reads(
    picture: Picture, items: list[Run | Batch]
) -> None:
    drawn = figures(picture, [hostile(item) for item in items], dark=False)
    assert bool(drawn) == (picture.name not in NO_FIGURE)
    for figure in drawn:
        plain = json.loads(figure.to_json())
        plain["layout"].pop("meta", None)  # data for a page's own script
        for text in strings(plain):
            assert not [bad for bad in BAD if bad in text], text[:200]
        for text in strings([plain["layout"].get("title"), plain["layout"].get("annotations")]):
            assert "%{" not in text  # Plotly fills such a place with the layout's meta


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("picture", DRAWN, ids=lambda picture: picture.name)
def test_a_picture_is_see_through_and_readable_in_both_themes(
    picture: Picture, items: list[Run | Batch], dark: bool
) -> None:
    for figure in figures(picture, items, dark):
        layout = figure.layout
        assert layout.title.text
        assert layout.paper_bgcolor == layout.plot_bgcolor == style.CLEAR
        assert layout.font.color == style.theme(dark).text
        assert layout.font.size >= 14
        plain = json.loads(figure.to_json())
        assert min(font_sizes(plain), default=14) >= 14
        assert len(figure.to_json()) < 300_000


@pytest.mark.parametrize("name", saving.drawable())
def test_whatever_the_command_line_offers_is_written_as_numbers(
    name: str, items: list[Run | Batch], tmp_path: Path
) -> None:
    written = 0
    for item in (one for one in items if isinstance(one, Run)):
        picture, path = views.PICTURES[name], tmp_path / "picture.csv"
        values = picture.checked(given_to(picture, item), item)
        try:
            saving.save(item, name, values, path)
        except ValueError:  # not for this kind of network
            continue
        written += len(path.read_text(encoding="utf-8").splitlines()) > 1 or name in DRAWN_ONLY
    assert written


def font_sizes(value: Any, key: str = "") -> list[float]:
    """Every size of a font in a figure's plain JSON."""
    if isinstance(value, dict):
        own = (
            [value["size"]] if "font" in key and isinstance(value.get("size"), int | float) else []
        )
        return own + [size for name, part in value.items() for size in font_sizes(part, name)]
    if isinstance(value, list):
        return [size for part in value for size in font_sizes(part, key)]
    return []

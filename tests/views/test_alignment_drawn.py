"""The alignment figure as it is drawn: lines, columns, margins, hover texts, hostile tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from aligned import WORKED, columns, with_cross, worked
from pictured import HOSTILE, strings

from transformer import Run
from transformer.views import alignment, alignment_links
from transformer.views.drawing import style


def uneven(n_target: int, n_source: int) -> torch.Tensor:
    """(1, 1, n_target, n_source) weights of all sizes."""
    generator = torch.Generator().manual_seed(4)
    scores = torch.randn(1, 1, n_target, n_source, generator=generator)
    sharpness = torch.linspace(0, 12, n_target)[:, None]
    return (scores * sharpness).softmax(dim=-1)


def segments(figure: go.Figure, thin: bool = False) -> dict[tuple[int, int], Any]:
    """(target, source) of each drawn line, and the trace that draws it."""
    found = {}
    for trace in figure.data:
        if trace.mode == "lines" and (trace.line.width == 1) == thin:
            ends = np.array(trace.y, dtype=float).reshape(-1, 3)
            assert np.isnan(ends[:, 2]).all()
            assert list(trace.x[:3]) == [0, 1, None]
            found |= {(int(target), int(source)): trace for source, target, _ in ends}
    return found


# --- what is drawn --------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [None, 0.1])
def test_the_lines_that_are_drawn_are_those_of_the_data(
    translation: Run, threshold: float | None
) -> None:
    figure = alignment(translation, 1, "mean", threshold=threshold)
    found = alignment_links(translation, 1, "mean", threshold=threshold)
    assert set(segments(figure)) == {link[:2] for link in found.links}
    assert set(segments(figure, thin=True)) == {link[:2] for link in found.others}
    assert figure.layout.meta["others"] == [list(link) for link in found.others]
    assert ("at least 0.1" in figure.layout.xaxis.title.text) == (threshold is not None)


def test_lines_widen_and_darken_with_the_weight_on_a_scale_from_0_to_1(translation: Run) -> None:
    weights = uneven(40, 9)
    figure = alignment(
        with_cross(translation, weights, list("abcdefghi"), ["t"] * 40), 0, 0, by="read"
    )
    drawn = segments(figure)
    links = sorted(figure.layout.meta["links"], key=lambda link: link[2])
    traces = [drawn[target, source] for target, source, _ in links]
    widths, opacities = [t.line.width for t in traces], [t.opacity for t in traces]
    for values, low, high in ((widths, 1, 6), (opacities, 0.2, 1)):
        assert values == sorted(values)
        for (*_, weight), value in zip(links, values, strict=True):
            assert abs((value - low) / (high - low) - weight) <= 0.0626  # half a bucket


def test_128_tokens_are_few_traces(translation: Run) -> None:
    weights = uneven(128, 128)
    long = with_cross(translation, weights, ["source"] * 128, ["target"] * 128)
    figure = alignment(long, 0, 0, threshold=0.05)
    assert len(segments(figure)) == 127
    assert len(segments(figure, thin=True)) > 127
    assert len(figure.data) <= 19
    assert figure.layout.height == pytest.approx(128 * 24, rel=0.1)
    assert len(figure.to_json()) < 200_000


def test_columns_stand_left_and_right_with_token_0_on_top(translation: Run) -> None:
    made = worked(translation)
    figure = alignment(made, 0, 0)
    source, target = columns(figure)
    assert (set(source.x), set(target.x)) == ({0}, {1})
    assert list(source.y) == [0, 1, 2, 3]
    assert list(target.y) == [0, 1, 2]
    bottom, top = figure.layout.yaxis.range
    assert bottom > 3
    assert top < 0
    assert figure.layout.height >= 200
    muted = style.theme(False).muted
    assert [colour == muted for colour in target.textfont.color] == [True, False, False]
    assert [colour == muted for colour in source.textfont.color] == [False, True, False, True]


def test_the_margins_hold_the_longest_tokens_and_leave_a_phone_room_for_the_lines(
    translation: Run,
) -> None:
    for text in ("w" * 300, "象" * 300, "🦊" * 300, "Z" * 300):
        figure = alignment(with_cross(translation, WORKED, [text] * 4, [text] * 3), 0, 0)
        margin = figure.layout.margin
        assert margin.l + margin.r <= 390 - 100
        assert margin.l == margin.r > 110
        assert all(text[0] * 2 in shown and "…" in shown for shown in columns(figure)[0].text)
    short = alignment(with_cross(translation, WORKED, ["a"] * 4, ["b"] * 3), 0, 0)
    assert short.layout.margin.l < 90


def test_the_hover_tells_both_tokens_the_weight_and_the_second(translation: Run) -> None:
    made = worked(translation)
    _, target = columns(alignment(made, 0, 1))
    assert target.hovertemplate == "%{customdata}<extra></extra>"
    isolated = {text: style.label(text) for text in ("<s>", "le", "the", "cat", "sleeps")}
    assert target.customdata[1].split("<br>") == [
        f"target 1: {isolated['le']}",
        f"query 0: {isolated['<s>']}",
        f"reads source 1: {isolated['cat']}, weight 0.7500",
        f"second: source 2: {isolated['sleeps']}, weight 0.2500",
    ]
    _, target = columns(alignment(made, 0, 1, by="read"))
    assert f"query 1: {isolated['le']}" in target.customdata[1]
    one = with_cross(made, torch.ones(1, 1, 2, 1), ["the"], ["<s>", "le"])
    assert "second" not in columns(alignment(one, 0, 0))[1].customdata[1]


def test_the_title_and_subtitle_say_what_is_shown(translation: Run) -> None:
    made = worked(translation)
    titles = [alignment(made, *choice).layout.title for choice in ((1, 0), ("mean", "mean"))]
    assert "layer 1, head 0" in titles[0].text
    assert "mean of all layers, mean of heads" in titles[1].text
    assert "query that predicted" in titles[0].subtitle.text
    assert "own query" in alignment(made, 0, 0, by="read").layout.title.subtitle.text


# --- token text, themes, errors -------------------------------------------------------------------


def font_sizes(value: Any, key: str = "") -> Iterator[float]:
    """Every size of a font in it."""
    if isinstance(value, dict):
        if "font" in key and "size" in value:
            yield value["size"]
        for name, part in value.items():
            yield from font_sizes(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from font_sizes(part, key)


@pytest.mark.parametrize("dark", [False, True])
def test_token_text_is_escaped_and_isolated_wherever_plotly_shows_it(
    translation: Run, dark: bool
) -> None:
    tokens = [*HOSTILE, "مرحبا", "שלום"]
    hostile = with_cross(translation, uneven(9, 9), tokens, tokens)
    figure = alignment(hostile, 0, 0, threshold=0.1, dark=dark)
    plain = json.loads(figure.to_json())
    assert (
        plain["layout"]["meta"].items()
        >= {"source_labels": tokens, "target_labels": tokens}.items()
    )
    del plain["layout"]["meta"]
    for text in strings(plain):
        assert not any(bad in text for bad in ("<s>", "<b>", "</script", "w" * 61))
    for column in columns(figure):
        assert "\u2068&lt;b&gt;x&lt;/b&gt;\u2069" in column.text
        assert "\u2068{{value}}\u2069" in column.text
        assert "\u2068مرحبا\u2069" in column.text
        assert any("\u2068&lt;b&gt;x&lt;/b&gt;\u2069" in hover for hover in column.customdata)
    # Plotly fills %{meta...} into titles and notes: none of those holds a token.
    assert not figure.layout.annotations
    assert not any("%{" in text for text in strings(plain["layout"]))

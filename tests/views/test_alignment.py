"""The alignment figure: its lines are the largest weights of the cross-attention."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import torch

from transformer import Batch, Model, Run, Site, Trace
from transformer.views import alignment, alignment_links
from transformer.views.drawing import style

# --- which tokens are joined ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "head", "expected"),
    [
        (0, 0, [(1, 0, 0.5), (2, 2, 1.0)]),
        (0, 1, [(1, 1, 0.75), (2, 0, 0.5)]),  # 0.5 twice: the first
        (0, "mean", [(1, 1, 0.5), (2, 2, 0.75)]),
        ("mean", 0, [(1, 0, 0.75), (2, 1, 0.5)]),
        ("mean", "mean", [(1, 0, 0.5), (2, 1, 0.375)]),
    ],
)
def test_hand_worked_averages_over_layers_and_heads(translation, layer, head, expected):
    assert list(alignment_links(worked(translation), layer, head).links) == expected


def test_the_start_is_not_predicted_and_an_unread_last_token_reads_nothing(translation):
    made = worked(translation)
    longer = dataclasses.replace(made, labels=("<s>", "le", "chat", "<end>"))
    written = alignment_links(longer, 0, 0)
    read = alignment_links(longer, 0, 0, by="read")
    assert [link.target for link in written.links] == [1, 2, 3]
    assert [link.target for link in read.links] == [0, 1, 2]
    assert np.isnan(written.weights[0]).all()
    assert np.isnan(read.weights[3]).all()
    np.testing.assert_array_equal(written.weights[1:], WORKED[0, 0])
    np.testing.assert_array_equal(read.weights[:3], WORKED[0, 0])
    hover = columns(alignment(longer, 0, 0, by="read"))[1].customdata
    assert "not read again" in hover[3]
    assert "nothing predicted it" in columns(alignment(longer, 0, 0))[1].customdata[0]


def test_a_source_alone_has_only_its_start_token(tiny_encoder_decoder):
    run = tiny_encoder_decoder.trace("the fox")
    assert alignment(run, 0, 0).layout.meta["links"] == []
    (link,) = alignment(run, 0, 0, by="read").layout.meta["links"]
    assert link[1] == run.trace["decoder.0.cross"].pattern[0, 0, 0].argmax()


def test_a_threshold_adds_every_other_weight_of_at_least_this(translation):
    weights = translation.trace["decoder.0.cross"].pattern[0].mean(dim=0).numpy()
    found = alignment_links(translation, 0, "mean", threshold=0.125)
    shown = {(place, key) for place, key, _ in (*found.links, *found.others)}
    large = {(t + 1, s) for t, s in np.argwhere(weights[:-1] >= 0.125).tolist()}
    best = {(t + 1, int(s)) for t, s in enumerate(weights[:-1].argmax(axis=1))}
    assert shown == large | best
    assert large - best == {(place, key) for place, key, _ in found.others} != set()
    assert all(w == pytest.approx(weights[t - 1, s]) for t, s, w in found.others)
    exact = alignment_links(worked(translation), 0, 0, threshold=0.25).others
    assert [link[:2] for link in exact] == [(1, 1)]  # 0.25 itself


# --- padded batches -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def batch(tiny_encoder_decoder: Model) -> Batch:
    """Three sources and targets of different length, read together."""
    model = tiny_encoder_decoder
    texts = ("the fox said hello", "no", "to the bird")
    outputs = ("le", "le renard dans la", "voilà")
    end, start, padding = (
        model.tokenizer.end_id, model.tokenizer.start_id, model.tokenizer.padding_id,
    )  # fmt: skip
    sides = (
        [[*model.tokenizer.encode(t), end] for t in texts],
        [[start, *model.tokenizer.encode(t), end] for t in outputs],
    )
    source, target = (
        torch.tensor([row + [padding] * (max(map(len, rows)) - len(row)) for row in rows])
        for rows in sides
    )
    trace = Trace()
    with torch.inference_mode():
        model.network(source, target, trace=trace)
    return Batch(
        model="tiny", config=model.config, texts=texts, trace=trace,
        ids=source, padding=source != padding,
        labels=tuple(tuple(model.tokenizer.labels(row)) for row in source.tolist()),
        target_ids=target, target_padding=target != padding,
        target_labels=tuple(tuple(model.tokenizer.labels(row)) for row in target.tolist()),
    )  # fmt: skip


@pytest.mark.parametrize("by", ["written", "read"])
@pytest.mark.parametrize("row", [0, 1, 2])
def test_a_padded_text_has_the_lines_that_it_has_alone(batch, tiny_encoder_decoder, row, by):
    source = batch.ids[row][batch.padding[row]]
    target = batch.target_ids[row][batch.target_padding[row]]
    trace = Trace()
    with torch.inference_mode():
        tiny_encoder_decoder.network(source[None], target[None], trace=trace)
    weights = trace["decoder.1.cross"].pattern[0, 0].numpy()
    shift = by == "written"
    meta = alignment(batch, 1, 0, row=row, by=by).layout.meta
    assert [link[:2] for link in meta["links"]] == [
        [t + shift, int(s)] for t, s in enumerate(weights.argmax(axis=1)) if t + shift < len(target)
    ]
    assert meta["source_labels"] == tiny_encoder_decoder.tokenizer.labels(source.tolist())
    assert meta["target_labels"] == tiny_encoder_decoder.tokenizer.labels(target.tolist())
    assert not batch.padding.all()
    assert not batch.target_padding.all()


# --- errors ---------------------------------------------------------------------------------------


def test_a_network_without_cross_attention_is_refused(tiny_model, tiny_encoder):
    for model, there in ((tiny_model, "decoder self"), (tiny_encoder, "encoder self")):
        sentence = f"no decoder cross-attention was recorded; recorded: {there}"
        for item in (model.trace("the fox"), model.trace(["the fox", "no"])):
            with pytest.raises(ValueError, match=sentence):
                alignment(item, 0, 0)


# Two layers x two heads, three queries, four source tokens; every number is exact in float32.
WORKED = torch.tensor(
    [
        [
            [[0.5, 0.25, 0.125, 0.125], [0.0, 0.0, 1.0, 0.0], [0.25, 0.25, 0.25, 0.25]],
            [[0.0, 0.75, 0.25, 0.0], [0.5, 0.0, 0.5, 0.0], [0.125, 0.125, 0.25, 0.5]],
        ],
        [
            [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]],
            [[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.0, 0.5], [0.5, 0.0, 0.0, 0.5]],
        ],
    ]
)


def with_cross(run: Run, weights: torch.Tensor, source: list[str], target: list[str]) -> Run:
    """A run whose cross-attention is `weights` (L, H, Tq, Tk)."""
    trace = Trace()
    for layer, heads in enumerate(weights):
        trace.record_attention(Site("decoder", layer, "cross"), heads[None], heads[None], None)
    return dataclasses.replace(
        run, trace=trace, source_labels=tuple(source), labels=tuple(target), trace_start=0
    )


def worked(run: Run) -> Run:
    """The hand-worked weights, with the tokens that they are of."""
    return with_cross(run, WORKED, ["the", "cat", "sleeps", "."], ["<s>", "le", "chat"])


def columns(figure: go.Figure) -> tuple[Any, Any]:
    """The traces that hold the source and the target tokens."""
    source, target = (trace for trace in figure.data if trace.mode == "markers+text")
    return source, target


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
def test_the_lines_that_are_drawn_are_those_of_the_data(translation, threshold):
    figure = alignment(translation, 1, "mean", threshold=threshold)
    found = alignment_links(translation, 1, "mean", threshold=threshold)
    assert set(segments(figure)) == {link[:2] for link in found.links}
    assert set(segments(figure, thin=True)) == {link[:2] for link in found.others}
    assert figure.layout.meta["others"] == [list(link) for link in found.others]
    assert ("at least 0.1" in figure.layout.xaxis.title.text) == (threshold is not None)


def test_lines_widen_and_darken_with_the_weight_on_a_scale_from_0_to_1(translation):
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


def test_columns_stand_left_and_right_with_token_0_on_top(translation):
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
    muted = style.LIGHT.muted
    assert [colour == muted for colour in target.textfont.color] == [True, False, False]
    assert [colour == muted for colour in source.textfont.color] == [False, True, False, True]


def test_the_margins_hold_the_longest_tokens_and_leave_a_phone_room_for_the_lines(translation):
    for text in ("w" * 300, "象" * 300, "🦊" * 300, "Z" * 300):
        figure = alignment(with_cross(translation, WORKED, [text] * 4, [text] * 3), 0, 0)
        margin = figure.layout.margin
        assert margin.l + margin.r <= 390 - 100
        assert margin.l == margin.r > 110
        assert all(text[0] * 2 in shown and "…" in shown for shown in columns(figure)[0].text)
    short = alignment(with_cross(translation, WORKED, ["a"] * 4, ["b"] * 3), 0, 0)
    assert short.layout.margin.l < 90


def test_the_hover_tells_both_tokens_the_weight_and_the_second(translation):
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


# --- token text, themes, errors -------------------------------------------------------------------

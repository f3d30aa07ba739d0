"""Lines between tokens: the largest weights of a cross-attention, and those of one head."""

import dataclasses
import re
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from kit.runs import relabelled, with_weights

from transformer import Run, Site, Trace
from transformer.views.attention.lines import (
    MOST_LINES,
    alignment,
    alignment_weights,
    query_lines,
)
from transformer.views.drawing import style

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


@pytest.fixture(scope="module")
def worked(translation: Run) -> Run:
    """A run with the hand-worked weights, and the tokens that they are of."""
    trace = Trace()
    for layer, heads in enumerate(WORKED):
        trace.record_attention(Site("decoder", layer, "cross"), heads[None], heads[None], None)
    source, target = ("the", "cat", "sleeps", "."), ("<s>", "le", "chat")
    return dataclasses.replace(
        translation, trace=trace, source_labels=source, labels=target, trace_start=0
    )


def segments(figure: go.Figure) -> dict[tuple[int, int], Any]:
    """(left, right) of each drawn line, and the trace that draws it."""
    found = {}
    for trace in figure.data:
        if trace.mode == "lines":
            assert list(trace.x[:3]) == [0, 1, None]
            ends = np.array(trace.y, dtype=float).reshape(-1, 3)
            found |= {(int(left), int(right)): trace for left, right, _ in ends}
    return found


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
def test_hand_worked_averages_over_layers_and_heads(worked, layer, head, expected):
    links = alignment(worked, layer, head).layout.meta["links"]
    assert [tuple(link) for link in links] == expected


@pytest.mark.parametrize(
    ("by", "targets", "without"), [("written", [1, 2, 3], 0), ("read", [0, 1, 2], 3)]
)
def test_the_start_is_not_predicted_and_an_unread_token_reads_nothing(worked, by, targets, without):
    longer = dataclasses.replace(worked, labels=("<s>", "le", "chat", "<end>"))
    links = alignment(longer, 0, 0, by=by).layout.meta["links"]
    assert [target for target, _, _ in links] == targets
    weights = alignment_weights(longer, 0, 0, by=by)
    assert np.isnan(weights[without]).all()
    np.testing.assert_array_equal(weights[targets], WORKED[0, 0])


def test_the_hover_label_of_a_target_names_its_two_most_read_sources(worked):
    hover = next(one.customdata for one in alignment(worked, 0, 1).data[::-1] if one.customdata)
    numbers = re.findall(r"source (\d)|, ([\d.]+)(?:<br>|$)", hover[1])
    assert list(map("".join, numbers)) == ["1", "0.7500", "2", "0.2500"]


def test_padding_has_no_lines_and_is_read_by_none(tiny_encoder_decoder):
    batch = tiny_encoder_decoder.translate_batch(["the fox said hello", "no", "to the bird"])
    assert not batch.padding.all()
    for row, by in ((0, "written"), (1, "read"), (2, "written")):
        meta = alignment(batch, 1, 0, row=row, by=by).layout.meta
        n_source, n_target = int(batch.padding[row].sum()), int(batch.target_padding[row].sum())
        assert meta["source_labels"] == list(batch.queries("encoder", row)[:n_source])
        assert meta["target_labels"] == list(batch.queries("decoder", row)[:n_target])
        weights, shift = batch.trace["decoder.1.cross"].pattern[row, 0], by == "written"
        best = weights[: n_target - shift, :n_source].argmax(dim=-1).tolist()
        links = [[query + shift, source] for query, source in enumerate(best)]
        assert [link[:2] for link in meta["links"]] == links


@pytest.mark.parametrize(("query", "threshold"), [(None, 0.01), (None, 0.2), (0, 0.01), (6, 0.2)])
def test_a_line_is_drawn_for_each_weight_of_at_least_the_threshold(run, query, threshold):
    weights = run.trace["decoder.1.self"].pattern[0, 1]
    expected = [
        (q, k)
        for q in (range(len(weights)) if query is None else [query])
        for k in range(q + 1)
        if weights[q, k] >= threshold
    ]
    figure = query_lines(run, "decoder.1.self", 1, query, threshold)
    assert sorted(segments(figure)) == expected
    links = figure.layout.meta["links"]
    assert sorted((q, k) for q, k, _ in links) == expected
    strengths = [weight for _, _, weight in links]
    assert strengths == sorted(strengths, reverse=True)


@pytest.mark.parametrize("label", ["a", "mmmmm", "WWWW iiii"])
def test_a_label_beside_its_token_has_the_room_that_it_takes(run, label):
    margin = query_lines(relabelled(run, (label,)), "decoder.1.self", 1).layout.margin
    width = style.fitted(label, 106)[1]
    assert 10 <= margin.l - width <= max(60 - width, 16)  # a dot's width beside the label
    assert margin.r - margin.l == 44  # for the number in front of a key


def test_only_the_strongest_of_very_many_lines_are_drawn(run):
    even = torch.ones(80, 80).tril()
    weights = (even / even.sum(dim=1, keepdim=True))[None, None]
    figure = query_lines(with_weights(run, weights), "decoder.0.self", 0, None, 0.01)
    assert len(segments(figure)) == MOST_LINES
    assert f"strongest {MOST_LINES:,} of {80 * 81 // 2:,}" in figure.layout.title.subtitle.text
    assert len(figure.data) <= 11

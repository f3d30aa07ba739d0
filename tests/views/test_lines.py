"""Lines between tokens: the largest weights of a cross-attention, and those of one head."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from pictured import with_weights

from transformer import Run, Site, Trace
from transformer.views import alignment, alignment_links, query_lines, query_links
from transformer.views.attention.lines import MOST_LINES
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


def with_cross(run: Run, weights: torch.Tensor, source: list[str], target: list[str]) -> Run:
    """A run whose cross-attention is `weights` (L, H, Tq, Tk)."""
    trace = Trace()
    for layer, heads in enumerate(weights):
        trace.record_attention(Site("decoder", layer, "cross"), heads[None], heads[None], None)
    return dataclasses.replace(
        run, trace=trace, source_labels=tuple(source), labels=tuple(target), trace_start=0
    )


@pytest.fixture(scope="module")
def worked(translation: Run) -> Run:
    """The hand-worked weights, with the tokens that they are of."""
    return with_cross(translation, WORKED, ["the", "cat", "sleeps", "."], ["<s>", "le", "chat"])


def columns(figure: go.Figure) -> tuple[Any, Any]:
    """The traces that hold the tokens at the left and at the right."""
    left, right = (trace for trace in figure.data if trace.mode == "markers+text")
    return left, right


def segments(figure: go.Figure) -> dict[tuple[int, int], Any]:
    """(left, right) of each drawn line, and the trace that draws it."""
    found = {}
    for trace in figure.data:
        if trace.mode == "lines":
            assert list(trace.x[:3]) == [0, 1, None]
            ends = np.array(trace.y, dtype=float).reshape(-1, 3)
            found |= {(int(left), int(right)): trace for left, right, _ in ends}
    return found


# --- cross-attention: which tokens are joined -----------------------------------------------------


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
    assert list(alignment_links(worked, layer, head).links) == expected


def test_the_start_is_not_predicted_and_an_unread_last_token_reads_nothing(worked):
    longer = dataclasses.replace(worked, labels=("<s>", "le", "chat", "<end>"))
    for by, targets, without, why in (
        ("written", [1, 2, 3], 0, "nothing predicted it"),
        ("read", [0, 1, 2], 3, "not read again"),
    ):
        found = alignment_links(longer, 0, 0, by=by)
        assert [link.target for link in found.links] == targets
        assert np.isnan(found.weights[without]).all()
        np.testing.assert_array_equal(found.weights[targets], WORKED[0, 0])
        assert why in columns(alignment(longer, 0, 0, by=by))[1].customdata[without]


def test_a_threshold_adds_every_other_weight_of_at_least_this(worked):
    found = alignment_links(worked, 0, 0, threshold=0.125)
    assert [link[:2] for link in found.others] == [(1, 1), (1, 2), (1, 3)]  # 0.125 itself
    figure = alignment(worked, 0, 0, threshold=0.125)
    thin = {ends for ends, trace in segments(figure).items() if trace.line.width == 1}
    assert thin == {(source, target) for target, source, _ in found.others}
    assert set(segments(figure)) - thin == {(source, target) for target, source, _ in found.links}
    assert "at least 0.125" in figure.layout.xaxis.title.text


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


def test_a_network_without_cross_attention_is_refused(tiny_encoder):
    for item in (tiny_encoder.trace("the fox"), tiny_encoder.trace(["the fox", "no"])):
        with pytest.raises(ValueError, match=r"no decoder cross-.*recorded: encoder se"):
            alignment(item, 0, 0)


# --- how they are drawn ---------------------------------------------------------------------------


def test_the_hover_tells_both_tokens_the_weight_and_the_second(worked):
    target = columns(alignment(worked, 0, 1))[1]
    named = {text: style.label(text) for text in ("<s>", "le", "cat", "sleeps")}
    assert target.customdata[1].split("<br>") == [
        f"target 1: {named['le']}",
        f"query 0: {named['<s>']}",
        f"reads source 1: {named['cat']}, weight 0.7500",
        f"second: source 2: {named['sleeps']}, weight 0.2500",
    ]
    assert f"query 1: {named['le']}" in columns(alignment(worked, 0, 1, by="read"))[1].customdata[1]


# --- one head -------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.01, 0.2])
@pytest.mark.parametrize("query", [None, 0, 6])
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
    links = query_links(run, "decoder.1.self", 1, query, threshold)
    assert sorted((link.query, link.key) for link in links) == expected
    assert [link.weight for link in links] == sorted((link.weight for link in links), reverse=True)
    assert figure.layout.meta["links"] == [list(link) for link in links]


def test_of_very_many_lines_the_strongest_are_drawn_and_it_says_so(run):
    even = torch.ones(80, 80).tril()
    weights = (even / even.sum(dim=1, keepdim=True))[None, None]
    figure = query_lines(with_weights(run, weights), "decoder.0.self", 0, None, 0.01)
    assert len(segments(figure)) == MOST_LINES
    assert f"strongest {MOST_LINES:,} of {80 * 81 // 2:,}" in figure.layout.title.subtitle.text
    assert len(figure.data) <= 11

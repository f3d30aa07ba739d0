"""Lines of one head: a line for each weight, from queries to keys."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from pictured import with_weights

from transformer.views import query_lines, query_links
from transformer.views.attention.lines import MOST_LINES
from transformer.views.drawing import style


def drawn(figure: go.Figure) -> list[tuple[int, int]]:
    """(query, key) of each drawn line."""
    found = []
    for trace in figure.data:
        if trace.mode == "lines":
            assert list(trace.x[:3]) == [0, 1, None]
            ends = np.array(trace.y, dtype=float).reshape(-1, 3)
            found += [(int(query), int(key)) for query, key, _ in ends]
    return sorted(found)


@pytest.mark.parametrize("threshold", [0.01, 0.05, 0.2])
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
    assert drawn(figure) == expected
    links = query_links(run, "decoder.1.self", 1, query, threshold)
    assert sorted((link.query, link.key) for link in links) == expected
    assert [link.weight for link in links] == sorted((link.weight for link in links), reverse=True)
    assert figure.layout.meta["links"] == [list(link) for link in links]


def test_the_weight_is_written_at_the_key_and_widens_the_line(translation):
    weights = translation.trace["decoder.0.cross"].pattern[0, 1, 2]
    figure = query_lines(translation, "decoder.0.cross", 1, 2, 0.0)
    queries, keys = (trace for trace in figure.data if trace.mode == "markers+text")
    assert len(queries.text) == len(translation.labels)
    for place, text in enumerate(keys.text):
        assert text.startswith(f"{float(weights[place]):.2f} ")
        assert style.label(translation.source_labels[place]) in text
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    widths = [trace.line.width for trace in lines]
    assert widths == sorted(widths)
    assert "all queries" in query_lines(translation, "decoder.0.cross", 1).layout.title.text


def test_of_very_many_lines_the_strongest_are_drawn_and_it_says_so(run):
    even = torch.ones(80, 80).tril()
    weights = (even / even.sum(dim=1, keepdim=True))[None, None]
    figure = query_lines(with_weights(run, weights), "decoder.0.self", 0, None, 0.01)
    assert len(drawn(figure)) == MOST_LINES
    count = 80 * 81 // 2
    assert f"the strongest {MOST_LINES:,} of {count:,}" in figure.layout.title.subtitle.text
    assert len(figure.data) <= 11

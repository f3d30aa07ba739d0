"""The tree of a beam search, by its data: hand-made trees, and searches of real networks."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from builders import spread
from pictured import HOSTILE

from transformer import Model, Run, build_transformer
from transformer.inference.beam import BeamNode, Hypothesis, beam_search
from transformer.runs.steps import Search
from transformer.views import beam_nodes, beam_tree
from transformer.views.drawing import style

START, END = 1, 2
WORDS = {"alive": "went on", "ended": "ended here", "cut": "cut"}
LETTERS = {token: f"t{token}" for token in range(12)}


@pytest.fixture(scope="module")
def plain(tiny_encoder_decoder: Model) -> Run:
    """A run without a search, to put searches into."""
    return tiny_encoder_decoder.trace("the fox")


@pytest.fixture(scope="module")
def searched(plain: Run) -> Run:
    """Three beams of a small network with random weights."""
    network = build_transformer(
        "pre-norm", vocab_size=11, d_model=16, n_heads=2, n_layers=2, d_ff=32, max_len=12
    )
    (found,) = beam_search(
        spread(network).eval().requires_grad_(False),  # type: ignore[arg-type]
        [[7, 3, 4, 8, 9, END]], start_id=START, end_id=END, beams=3, max_new_tokens=8,
    )  # fmt: skip
    steps, states = len(found.steps), {node.state for nodes in found.steps for node in nodes}
    assert steps > 2
    assert states >= {"alive", "cut"}
    return with_search(plain, found.steps, found.hypotheses)


@pytest.fixture(scope="module")
def drawn_up(plain: Run) -> Run:
    """Three steps by hand, the second's nodes not in the order of their scores."""
    steps = [
        [node(3, -1, -0.5, "alive"), node(4, -1, -1.0, "alive"), node(END, -1, -3.0, "cut")],
        [node(5, 1, -1.75, "alive"), node(END, 0, -1.5, "ended"), node(3, 0, -2.0, "alive")],
        [node(END, 0, -2.5, "ended"), node(4, 2, -4.0, "cut")],
    ]
    hypotheses = [
        Hypothesis(ids=(4, 5, END), score=-2.5, normalised=-0.8, ended=True),
        Hypothesis(ids=(3, END), score=-1.5, normalised=-0.9, ended=True),
    ]
    return with_search(plain, steps, hypotheses)


def node(token: int, parent: int, score: float, state: str) -> BeamNode:
    return BeamNode(token=token, parent=parent, score=score, state=state)


def with_search(
    run: Run,
    steps: list[list[BeamNode]],
    hypotheses: list[Hypothesis],
    labels: dict[int, str] | None = None,
) -> Run:
    """The run as if this search had made it."""
    search = Search(
        hypotheses=tuple(hypotheses),
        texts=("",) * len(hypotheses),
        tree=tuple(tuple(nodes) for nodes in steps),
    )
    return dataclasses.replace(run, search=search, candidate_labels=labels or LETTERS)


def marks(figure: go.Figure) -> dict[str, go.Scatter]:
    """The traces of nodes by their words in the legend."""
    return {trace.name: trace for trace in figure.data if trace.name in WORDS.values()}


def lines(figure: go.Figure) -> dict[str, set[tuple[int, int, int]]]:
    """By trace, (step, rank of the parent, rank of the child) of each line."""
    found = {}
    for trace in figure.data:
        if trace.mode == "lines":
            x, y = (
                np.array(values, dtype=float).reshape(-1, 3)[:, :2].astype(int)
                for values in (trace.x, trace.y)
            )
            assert (x[:, 1] - x[:, 0] == 1).all()
            found[trace.name] = set(zip(x[:, 1].tolist(), *y.T.tolist(), strict=True))
    return found


# --- nodes ----------------------------------------------------------------------------------------


def test_nodes_are_ranked_by_score_and_keep_their_parents(drawn_up: Run) -> None:
    assert [dataclasses.astuple(one) for one in beam_nodes(drawn_up)] == [
        # step, rank, label, parent, score, state, best
        (0, 0, "t3", -1, -0.5, "alive", False),
        (0, 1, "t4", -1, -1.0, "alive", True),
        (0, 2, "t2", -1, -3.0, "cut", False),
        (1, 0, "t2", 0, -1.5, "ended", False),
        (1, 1, "t5", 1, -1.75, "alive", True),
        (1, 2, "t3", 0, -2.0, "alive", False),
        (2, 0, "t2", 1, -2.5, "ended", True),
        (2, 1, "t4", 2, -4.0, "cut", False),
    ]


def test_the_nodes_are_those_of_the_search(searched: Run) -> None:
    assert searched.search is not None
    nodes = beam_nodes(searched)
    for step, expected in enumerate(searched.search.tree):
        found = [one for one in nodes if one.step == step]
        assert [(one.label, one.parent, one.score, one.state) for one in found] == [
            (f"t{one.token}", one.parent, one.score, one.state) for one in expected
        ]
        assert [one.rank for one in found] == list(range(len(expected)))


def test_the_best_path_spells_the_best_hypothesis(searched: Run) -> None:
    assert searched.search is not None
    best = searched.search.hypotheses[0]
    path = [one for one in beam_nodes(searched) if one.best]
    assert [one.label for one in path] == [f"t{token}" for token in best.ids]
    assert [one.step for one in path] == list(range(len(best.ids)))
    assert path[0].parent == -1
    assert all(child.parent == parent.rank for parent, child in itertools.pairwise(path))
    assert path[-1].score == best.score


def test_an_unfinished_hypothesis_can_be_the_best(drawn_up: Run) -> None:
    assert drawn_up.search is not None
    steps = [list(nodes) for nodes in drawn_up.search.tree[:2]]
    open_end = Hypothesis(ids=(3, 3), score=-2.0, normalised=-0.1, ended=False)
    run = with_search(drawn_up, steps, [open_end])
    assert [(one.step, one.rank) for one in beam_nodes(run) if one.best] == [(0, 0), (1, 2)]
    hover = list(marks(beam_tree(run))["went on"].customdata)
    assert [("not ended when the search stopped" in text) for text in hover] == [
        False, False, True, True,
    ]  # fmt: skip


# --- what is drawn --------------------------------------------------------------------------------


def test_columns_are_steps_and_the_likeliest_is_on_top(drawn_up: Run) -> None:
    figure = beam_tree(drawn_up)
    places = {
        words: list(zip(trace.x, trace.y, strict=True)) for words, trace in marks(figure).items()
    }
    assert places == {
        "went on": [(0, 0), (0, 1), (1, 1), (1, 2)],
        "ended here": [(1, 0), (2, 0)],
        "cut": [(0, 2), (2, 1)],
    }
    low, high = figure.layout.xaxis.range
    assert low < -1
    assert high > 2
    bottom, top = figure.layout.yaxis.range
    assert bottom > 2
    assert top < 0
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == (
        "step",
        "rank by score",
    )
    assert list(figure.layout.xaxis.tickvals) == [0, 1, 2]


def test_lines_lead_from_parents_to_children_and_the_best_path_is_thickest(drawn_up: Run) -> None:
    figure = beam_tree(drawn_up)
    assert lines(figure) == {
        "to cut ones": {(0, 0, 2), (2, 2, 1)},
        "to kept ones": {(0, 0, 0), (1, 0, 0), (1, 0, 2)},
        "best hypothesis": {(0, 0, 1), (1, 1, 1), (2, 1, 0)},
    }
    widths = {trace.name: trace.line.width for trace in figure.data if trace.mode == "lines"}
    assert widths["best hypothesis"] > 2 * max(widths["to cut ones"], widths["to kept ones"])


def test_every_node_of_a_real_search_has_its_line(searched: Run) -> None:
    drawn = [line for found in lines(beam_tree(searched)).values() for line in found]
    expected = [(one.step, max(one.parent, 0), one.rank) for one in beam_nodes(searched)]
    assert sorted(drawn) == sorted(expected)


def test_states_differ_in_shape_colour_and_words(drawn_up: Run) -> None:
    figure = beam_tree(drawn_up)
    traces = marks(figure)
    assert set(traces) == set(WORDS.values())
    assert len({trace.marker.symbol for trace in traces.values()}) == 3
    assert len({trace.marker.color for trace in traces.values()}) == 3
    in_legend = {trace.name for trace in figure.data if trace.showlegend is not False}
    assert in_legend == {*WORDS.values(), "best hypothesis"}


def test_the_best_path_has_larger_marks_and_bold_labels(drawn_up: Run) -> None:
    trace = marks(beam_tree(drawn_up))["went on"]
    sizes = list(trace.marker.size)
    assert sizes[1] == sizes[2] > sizes[0] == sizes[3]
    assert [text.startswith("<b>") for text in trace.text] == [False, True, True, False]


def test_the_hover_tells_token_step_score_probability_and_state(drawn_up: Run) -> None:
    traces = marks(beam_tree(drawn_up))
    assert traces["ended here"].hovertemplate == "%{customdata}<extra></extra>"
    assert traces["ended here"].customdata[1].split("<br>") == [
        style.label("t2"),
        "step 2, rank 0: ended here",
        "sum of log-probabilities -2.5000",
        f"probability of the hypothesis so far {math.exp(-2.5):.3g}",
        "the best hypothesis: -0.8000 per length",
    ]
    assert "step 1, rank 2: went on" in traces["went on"].customdata[3]
    assert "rank 2: cut" in traces["cut"].customdata[0]
    everything = [text for trace in traces.values() for text in trace.customdata]
    assert sum("the best hypothesis" in text for text in everything) == 1


def test_meta_holds_the_nodes_as_plain_data(drawn_up: Run) -> None:
    meta = json.loads(beam_tree(drawn_up).to_json())["layout"]["meta"]
    assert meta["nodes"] == [dataclasses.asdict(one) for one in beam_nodes(drawn_up)]
    assert meta["nodes"][6] == {
        "step": 2, "rank": 0, "label": "t2", "parent": 1, "score": -2.5, "state": "ended",
        "best": True,
    }  # fmt: skip


def test_a_long_search_is_wide_and_many_beams_are_tall(plain: Run) -> None:
    def chain(length: int, n_ranks: int) -> Any:
        steps = [
            [
                node(3 + rank, -1 if step == 0 else 0, -step - rank, "alive")
                for rank in range(n_ranks)
            ]
            for step in range(length)
        ]
        best = Hypothesis(ids=(3,) * length, score=1.0 - length, normalised=-1.0, ended=False)
        return beam_tree(with_search(plain, steps, [best])).layout

    assert chain(1, 2).width == 480
    assert chain(40, 2).width - chain(39, 2).width == 84
    assert chain(40, 2).width >= 40 * 84
    assert chain(3, 8).height - chain(3, 2).height >= 6 * 24


# --- token text, themes, errors -------------------------------------------------------------------


def walk(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every (key, string or number) in it, the key that of the nearest dict, dotted."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from walk(part, f"{key}.{name}")
    elif isinstance(value, list):
        for part in value:
            yield from walk(part, key)
    else:
        yield key, value


@pytest.mark.parametrize("dark", [False, True])
def test_token_text_is_escaped_and_isolated_wherever_plotly_shows_it(
    searched: Run, dark: bool
) -> None:
    tokens = [*HOSTILE, "مرحبا", "שלום", "象" * 9, "d", "e"]
    assert searched.search is not None
    used = sorted({one.token for nodes in searched.search.tree for one in nodes})
    turns = [tokens[turn:] + tokens[:turn] for turn in (0, 6)]
    shown: set[str] = set()
    for turn in turns:
        labels = dict(zip(used, turn, strict=False))
        figure = beam_tree(dataclasses.replace(searched, candidate_labels=labels), dark=dark)
        content = json.loads(figure.to_json())
        meta = content["layout"].pop("meta")
        assert {one["label"] for one in meta["nodes"]} == set(labels.values())
        strings = [text for _, text in walk(content) if isinstance(text, str)]
        for text in strings:
            bare = text.removeprefix("<b>").removesuffix("</b>")
            assert not any(bad in bare for bad in ("<s>", "<b>", "</script", "w" * 61))
        assert not figure.layout.annotations
        assert not any(
            "%{" in text for key, text in walk(content["layout"]) if isinstance(text, str)
        )
        for trace in marks(figure).values():
            shown |= {text.removeprefix("<b>").removesuffix("</b>") for text in trace.text}
            shown |= {text.split("<br>")[0] for text in trace.customdata}
    assert shown >= {
        "\u2068&lt;b&gt;x&lt;/b&gt;\u2069",
        "\u2068{{value}}\u2069",
        "\u2068مرحبا\u2069",
        "\u2068שלום\u2069",
        "\u2068象象象…\u2069",
    }


@pytest.mark.parametrize("dark", [False, True])
def test_both_themes_are_see_through_and_readable(drawn_up: Run, dark: bool) -> None:
    figure = beam_tree(drawn_up, dark=dark)
    colours = style.theme(dark)
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == style.CLEAR
    assert figure.layout.font.color == colours.text
    assert {trace.marker.color for trace in marks(figure).values()} == {
        colours.accent, colours.key, colours.muted,
    }  # fmt: skip
    sizes = [size for key, size in walk(json.loads(figure.to_json())) if key.endswith("font.size")]
    assert len(sizes) > 5
    assert min(sizes) >= 14


def test_a_run_without_a_search_is_refused(plain: Run) -> None:
    with pytest.raises(ValueError, match=r"this run was not a beam search.* got beams=1; allowed:"):
        beam_tree(plain)

"""The tree of a beam search, by its data: hand-made trees, and searches of real networks."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import plotly.graph_objects as go
import pytest
from builders import spread

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
        spread(network).eval().requires_grad_(False),
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


def test_nodes_are_ranked_by_score_and_keep_their_parents(drawn_up):
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


def test_the_best_path_spells_the_best_hypothesis(searched):
    best = searched.search.hypotheses[0]
    path = [one for one in beam_nodes(searched) if one.best]
    assert [one.label for one in path] == [f"t{token}" for token in best.ids]
    assert [one.step for one in path] == list(range(len(best.ids)))
    assert path[0].parent == -1
    assert all(child.parent == parent.rank for parent, child in itertools.pairwise(path))
    assert path[-1].score == best.score


def test_an_unfinished_hypothesis_can_be_the_best(drawn_up):
    steps = [list(nodes) for nodes in drawn_up.search.tree[:2]]
    open_end = Hypothesis(ids=(3, 3), score=-2.0, normalised=-0.1, ended=False)
    run = with_search(drawn_up, steps, [open_end])
    assert [(one.step, one.rank) for one in beam_nodes(run) if one.best] == [(0, 0), (1, 2)]
    hover = list(marks(beam_tree(run))["went on"].customdata)
    assert [("not ended when the search stopped" in text) for text in hover] == [
        False, False, True, True,
    ]  # fmt: skip


# --- what is drawn --------------------------------------------------------------------------------


def test_lines_lead_from_parents_to_children_and_the_best_path_is_thickest(drawn_up):
    figure = beam_tree(drawn_up)
    assert lines(figure) == {
        "to cut ones": {(0, 0, 2), (2, 2, 1)},
        "to kept ones": {(0, 0, 0), (1, 0, 0), (1, 0, 2)},
        "best hypothesis": {(0, 0, 1), (1, 1, 1), (2, 1, 0)},
    }
    widths = {trace.name: trace.line.width for trace in figure.data if trace.mode == "lines"}
    assert widths["best hypothesis"] > 2 * max(widths["to cut ones"], widths["to kept ones"])


def test_the_hover_tells_token_step_score_probability_and_state(drawn_up):
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


# --- token text, themes, errors -------------------------------------------------------------------


def test_a_run_without_a_search_is_refused(plain):
    with pytest.raises(ValueError, match=r"this run was not a beam search.* got beams=1; allowed:"):
        beam_tree(plain)

"""A beam search as a tree: which hypotheses went on, ended and were cut at each step.

`layout.meta["nodes"]` carries every node, step by step and best first, as plain data: step, rank,
label (unescaped text), parent (its rank in the step before, -1 at the first), score, state, best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import plotly.graph_objects as go

from transformer.messages import mark, numeral, say
from transformer.runs.run import Run
from transformer.runs.steps import Search
from transformer.views.drawing import style

STEP_PX, RANK_PX = 84, 40
MIN_WIDTH = 480
MARGIN = {"l": 56, "r": 16, "t": 72, "b": 100}
STATES = {"alive": mark("went on"), "ended": mark("ended here"), "cut": mark("cut")}

_SYMBOLS = {"alive": "circle", "ended": "square", "cut": "x"}


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeNode:
    """An extension that a step weighed.

    rank: its place in the step by score, 0 = best. parent: the rank of the one that it extends,
    in the step before (-1 at the first). score: sum of log-probabilities. state: one of STATES.
    best: on the way to the best hypothesis.
    """

    step: int
    rank: int
    label: str
    parent: int
    score: float
    state: str
    best: bool


def beam_nodes(run: Run) -> tuple[TreeNode, ...]:
    """Every node of a run's search, step by step, in the order of their ranks.

    Raises ValueError if the run was not a beam search.
    """
    search = _search_of(run)
    best: list[int] = []  # the best hypothesis' place in each step; found by its tokens
    for token, extensions in zip(search.hypotheses[0].ids, search.tree, strict=False):
        before = best[-1] if best else -1
        best.append(
            [(extension.parent, extension.token) for extension in extensions].index((before, token))
        )
    nodes: list[TreeNode] = []
    ranks_before = {-1: -1}
    for step, extensions in enumerate(search.tree):
        order = sorted(range(len(extensions)), key=lambda place: -extensions[place].score)
        nodes += [
            TreeNode(
                step=step,
                rank=rank,
                label=run.candidate_labels[extensions[place].token],
                parent=ranks_before[extensions[place].parent],
                score=extensions[place].score,
                state=extensions[place].state,
                best=best[step : step + 1] == [place],
            )
            for rank, place in enumerate(order)
        ]
        ranks_before = {place: rank for rank, place in enumerate(order)}
    return tuple(nodes)


def _search_of(run: Run) -> Search:
    if run.search is None:
        raise ValueError(
            "this run was not a beam search, so it has no tree; got "
            f"beams={run.request.beams}; allowed: a run of 2 beams or more"
        )
    return run.search


def beam_tree(run: Run) -> go.Figure:
    """What a beam search weighed: one column per step, the likeliest on top, and a line from each
    hypothesis to its extensions. The way to the best hypothesis is drawn thick.

    x is the step, y the rank by score (the sum of log-probabilities); x = -1 is the start. The best
    hypothesis is best by score over length, so that it need not be the topmost. `layout.width` is
    STEP_PX a step: a page scrolls a long search sideways.
    Raises ValueError if the run was not a beam search.
    """
    nodes, search = beam_nodes(run), _search_of(run)
    n_steps, n_ranks = len(search.tree), 1 + max((node.rank for node in nodes), default=0)
    root = go.Scatter(  # where the first step's extensions come from
        x=[-1], y=[0], text=["start"], mode="markers+text", textposition="top center",
        textfont={"size": style.FONT_SIZE, "color": style.LIGHT.muted}, hoverinfo="skip",
        marker={"symbol": "diamond", "size": 10, "color": style.LIGHT.muted}, showlegend=False,
    )  # fmt: skip
    return style.figure(
        [*_edges(nodes), root, *_marks(search, nodes)],
        f"Beam search: {n_steps} steps, {len(search.hypotheses)} hypotheses found",
        "likeliest on top; thick: the way to the best hypothesis",
        margin=MARGIN,
        width=max(MIN_WIDTH, MARGIN["l"] + STEP_PX * (n_steps + 1) + MARGIN["r"]),
        height=MARGIN["t"] + RANK_PX * (n_ranks + 1) + MARGIN["b"],
        xaxis=style.axis(
            say("step"), range=[-1.5, n_steps - 0.5], tickvals=list(range(n_steps)),
            fixedrange=True,
        ),
        yaxis=style.axis(
            say("rank by score"), range=[n_ranks - 0.2, -0.8],
            tickvals=list(range(n_ranks)), fixedrange=True,
        ),
        hovermode="closest",
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        meta={"nodes": [asdict(node) for node in nodes]},
    )  # fmt: skip


def _edges(nodes: Sequence[TreeNode]) -> list[go.Scatter]:
    """Lines from parents to children: to those cut, to the others, and the best hypothesis'."""
    colours = style.LIGHT
    best = [node for node in nodes if node.best]
    cut = [node for node in nodes if node.state == "cut" and not node.best]
    kept = [node for node in nodes if node.state != "cut" and not node.best]
    return [
        _edge(cut, say("to cut ones"), {"width": 1, "color": colours.line}),
        _edge(kept, say("to kept ones"), {"width": 1.5, "color": colours.accent}),
        _edge(best, say("best hypothesis"), {"width": 5, "color": colours.text}, showlegend=True),
    ]


def _edge(
    nodes: Sequence[TreeNode], name: str, line: dict[str, Any], showlegend: bool = False
) -> go.Scatter:
    """One trace for all these lines."""
    return go.Scatter(
        x=[x for node in nodes for x in (node.step - 1, node.step, None)],
        y=[y for node in nodes for y in (max(node.parent, 0), node.rank, None)],
        mode="lines", name=name, line=line, showlegend=showlegend, legendrank=1001,
        hoverinfo="skip",
    )  # fmt: skip


def _marks(search: Search, nodes: Sequence[TreeNode]) -> list[go.Scatter]:
    """The nodes, a trace for each state that occurs."""
    theme = style.LIGHT
    colours = {"alive": theme.accent, "ended": theme.key, "cut": theme.muted}
    traces = []
    for state, words in STATES.items():
        members = [node for node in nodes if node.state == state]
        if not members:
            continue
        labels = [(style.fitted(node.label, STEP_PX - 6)[0], node.best) for node in members]
        texts = [f"<b>{label}</b>" if best else label for label, best in labels]
        traces.append(
            go.Scatter(
                x=[node.step for node in members], y=[node.rank for node in members],
                text=texts, mode="markers+text",
                textposition="top center", name=say(words), cliponaxis=False, showlegend=True,
                textfont={
                    "size": style.FONT_SIZE,
                    "color": theme.muted if state == "cut" else theme.text,
                },
                marker={
                    "symbol": _SYMBOLS[state], "color": colours[state],
                    "size": [14 if node.best else 10 for node in members],
                },
                customdata=[_hover(search, node) for node in members],
                hovertemplate="%{customdata}<extra></extra>",
            )
        )  # fmt: skip
    return traces


def _hover(search: Search, node: TreeNode) -> str:
    words = say(STATES[node.state])
    if node.state == "alive" and node.step == len(search.tree) - 1:
        words = say("not ended when the search stopped")
    lines = [
        style.hover(node.label),
        say("step {step}, rank {rank}: {words}", step=node.step, rank=node.rank, words=words),
        say("sum of log-probabilities {score}", score=numeral(node.score, ".4f")),
    ]
    best = search.hypotheses[0]
    if node.best and node.step == len(best.ids) - 1:
        lines.append(
            say(
                "the best hypothesis: {normalised} per length",
                normalised=numeral(best.normalised, ".4f"),
            )
        )
    return "<br>".join(lines)

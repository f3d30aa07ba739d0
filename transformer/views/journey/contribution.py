"""The contribution of each part of the network to one logit, layers down and parts across."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.analysis.journey import journey
from transformer.analysis.logit_contribution import LogitContribution
from transformer.analysis.model_queries import ModelQueries
from transformer.messages import mark, numeral, say, say_list
from transformer.network_words import attention_name
from transformer.runs.run import Run
from transformer.views.declaration import Answer, view
from transformer.views.drawing import style
from transformer.views.parameters import LAST_READ, TARGET

NUMBERS_UP_TO = 20  # columns; more would not leave room for a number in each cell

_COLUMNS = {"self": mark("self {head}"), "cross": mark("cross {head}")}
_COLUMN = mark("head {head}")


def contribution(parts: LogitContribution, label: str) -> go.Figure:
    """A logit as the sum of the map's cells: heads and feed-forwards by layer, then the rest.

    label: the token. Rows: the token's vector, its position's, the layers, and what comes after
    them; columns: heads, feed-forward, and the rest: biases, shifts of norms and what belongs to no
    layer. Orange adds, purple takes away. `layout.meta` has row_labels, column_labels, limit.
    """
    rows, columns, cells = table(parts)
    limit = style.bound_of(cells, 1e-6)
    trace = style.signed_cells(
        cells,
        say("{title}: {part}", title="%{customdata}", part="%{z:+.4f}") + "<extra></extra>",
        colorscale=style.EFFECTS,
        bound=limit,
        bar=say("adds to the logit"),
        customdata=[[say_list([row, column]) for column in columns] for row in rows],
        texttemplate="%{z:+.2f}" if len(columns) <= NUMBERS_UP_TO else None,
        textfont={"size": style.FONT_SIZE},
        hoverongaps=False,
    )
    subtitle = (
        f"token {parts.position}, {style.label(label)}: logit {parts.logit:.4f}, the "
        "sum of all cells; scales of norms held"
    )
    title = "What each part adds to one logit"
    meta = {"row_labels": rows, "column_labels": columns, "limit": limit}
    down = [len(rows) - 0.5, -0.5]
    return style.figure(
        trace,
        title,
        subtitle,
        meta=meta,
        width=180 + style.COLUMN_PX * len(columns),
        height=172 + 30 * len(rows),
        margin={"t": 72, "r": 8, "l": 110, "b": 100},
        xaxis=style.named_axis(
            f"{say('part')} (Σ = {numeral(parts.logit, '.2f')})",
            columns,
            constrain="domain",
            tickangle=-90,
        ),
        yaxis=style.named_axis(say("layer"), rows, constrain="domain", range=down),
    )


def table(parts: LogitContribution) -> tuple[list[str], list[str], NDArray[np.float32]]:
    """(names of rows, names of columns, numbers), NaN where there is no such part."""
    names = {
        "token": say("token"), "position": say("position"), "embedding norm": say("embedding norm"),
        "embedding projection": say("embedding projection"),
        "final norm": say("final norm"), "output bias": say("the output bias"),
    }  # fmt: skip
    ends = ("final norm", "output bias")
    first = [name for name in names if name in parts.others and name not in ends]
    then = [name for name in ends if name in parts.others]
    layers = [say("layer {layer}", layer=layer) for layer in range(len(parts.feed_forward))]
    rows = [*(names[name] for name in first), *layers, *(names[name] for name in then)]
    both = len(parts.heads) > 1
    columns = [
        say(_COLUMNS[kind] if both else _COLUMN, head=head)
        for kind, heads in parts.heads.items()
        for head in range(heads.shape[1])
    ]
    columns += [say("feed-forward"), say("rest")]
    cells = np.full((len(rows), len(columns)), np.nan, dtype=np.float32)
    middle = slice(len(first), len(first) + len(layers))
    by_layer = (*parts.heads.values(), parts.feed_forward[:, None], parts.biases[:, None])
    cells[middle] = np.concatenate([part.numpy() for part in by_layer], axis=1)
    for row, name in (*enumerate(first), *enumerate(then, middle.stop)):
        cells[row, -1] = parts.others[name]
    return rows, columns, cells


def sentence(parts: LogitContribution) -> str:
    """The largest and second contribution, and the most negative."""
    order = sorted(_named(parts), key=lambda part: -part[1])
    (most, adds), (second, then), (least, takes) = order[0], order[1], order[-1]
    said = say(
        "Of the logit {logit}, {most} adds most: {adds}. Next comes {second} with {then}.",
        logit=numeral(parts.logit, ".2f"),
        most=most,
        adds=numeral(adds, "+.2f"),
        second=second,
        then=numeral(then, "+.2f"),
    )
    if takes < 0:
        said += " " + say(
            "The largest reduction comes from {least}: {takes}.",
            least=least,
            takes=numeral(takes, "+.2f"),
        )
    return said


def _named(parts: LogitContribution) -> Iterator[tuple[str, float]]:
    """Every part by its name in a sentence."""
    for kind, heads in parts.heads.items():
        for layer, row in enumerate(heads.tolist()):
            for head, value in enumerate(row):
                yield head_name(layer, head, kind if len(parts.heads) > 1 else ""), value
    for layer, value in enumerate(parts.feed_forward.tolist()):
        yield say("the feed-forward of layer {layer}", layer=layer), value
    for layer, value in enumerate(parts.biases.tolist()):
        yield say("the biases of layer {layer}", layer=layer), value
    names = {
        "token": say("the token's own vector"),
        "position": say("the vector of its position"),
        "embedding norm": say("the shift of the embeddings' norm"),
        "embedding projection": say("the bias of the embeddings' projection"),
        "final norm": say("the shift of the final norm"),
        "output bias": say("the output bias"),
    }
    yield from ((names[name], value) for name, value in parts.others.items())


def head_name(layer: int, head: int, kind: str) -> str:
    """A head in a sentence; kind: "self" or "cross", empty where there is only one."""
    if not kind:
        return say("layer {layer}, head {head}", layer=layer, head=head)
    attention = attention_name("decoder", kind)
    return say(
        "layer {layer}, head {head} ({attention})", layer=layer, head=head, attention=attention
    )


@view(
    tab=mark("What if?"),
    order=530,
    folded=True,
    title=mark("What did each part add to a token?"),
    help=mark(
        "How much each head and feed-forward adds to the logit of one token; all cells sum to it."
    ),
    figure=contribution,
)
def answer_contribution(
    models: ModelQueries,
    item: Run,
    *,
    position: Annotated[int | None, LAST_READ] = None,
    target: Annotated[int | None, TARGET] = None,
) -> Answer:
    """The map of contributions to the token after the last one read, as in the journey."""
    path = models.ask(journey, item, position=position, target=target)
    if path.parts is None:
        return {
            "figure": None,
            "sentence": say("What each part adds cannot be told apart in this network."),
        }
    label = models.model(item.model).tokenizer.label(path.target)
    return {
        "figure": contribution(path.parts, label),
        "logit": path.parts.logit,
        "sentence": sentence(path.parts),
    }

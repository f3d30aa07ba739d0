"""A classifier's labels, with the probability of each for the text or for each of its tokens."""

from __future__ import annotations

import plotly.graph_objects as go

from transformer.analysis.label_scores import LabelScores, label_scores
from transformer.analysis.model_queries import ModelQueries
from transformer.messages import mark, numeral, say
from transformer.model.heads import HEADS
from transformer.runs.run import Run
from transformer.views.declaration import Answer, view
from transformer.views.drawing import style

_ROOM = 1.3  # times the longest bar, for the number behind it


def labels(run: Run, result: LabelScores) -> go.Figure:
    """Bars, one per label, for a text; a heatmap of labels by tokens for a classifier of tokens."""
    title = say("probability") if result.are_probabilities else say("score")
    names = [style.label(name) for name in result.labels]
    if result.scores.dim() == 1:
        values = result.probabilities.tolist()
        reach = max(abs(value) for value in values) * _ROOM
        bar = go.Bar(
            x=values, y=list(range(len(names))), orientation="h",
            text=[numeral(value, ".3f") for value in values], textposition="outside",
            cliponaxis=False, hoverinfo="skip", marker={"color": style.LIGHT.accent},
        )  # fmt: skip
        return style.figure(
            bar,
            "Labels of the text",
            xaxis=style.axis(title, range=[min(0.0, *values) * _ROOM, reach]),
            yaxis=style.named_axis("", names, range=[len(names) - 0.4, -0.6]),
            height=140 + 32 * len(names),
        )
    cells = go.Heatmap(
        z=result.probabilities.T.tolist(), colorscale="Viridis",
        **({"zmin": 0, "zmax": 1} if result.are_probabilities else {}),  # a score may be negative
        customdata=[[[style.hover(name), style.hover(token)] for token in run.labels]
                    for name in result.labels],
        hovertemplate="%{customdata[1]}: %{customdata[0]} %{z:.3f}<extra></extra>",
        colorbar=style.colorbar(title),
    )  # fmt: skip
    return style.figure(
        cells,
        "Labels of each token",
        xaxis=style.token_axis(say("token"), run.labels),
        yaxis=style.named_axis("", names, range=[len(names) - 0.5, -0.5]),
        height=180 + 28 * len(names),
    )


@view(
    tab="Prediction",
    order=430,
    title=mark("Labels"),
    help="A classifier's score for each of its labels, for the text or for each token.",
    figure=labels,
)
def answer_labels(models: ModelQueries, item: Run) -> Answer:
    """A classifier's labels with their scores; figure is None without a classifier."""
    if not HEADS[item.config.head].labelled:
        return {"figure": None}
    result = models.ask(label_scores, item)
    return {
        "figure": labels(item, result),
        "labels": list(result.labels),
        "scores": result.scores.tolist(),
        "probabilities": result.probabilities.tolist() if result.are_probabilities else None,
    }

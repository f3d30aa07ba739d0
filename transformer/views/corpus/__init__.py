"""Heads over many texts: every head as a point, by any two of its metrics."""

from __future__ import annotations

from transformer.analysis.head_measures import ALL
from transformer.analysis.model_queries import ModelQueries
from transformer.messages import mark
from transformer.runs.run import Run
from transformer.views.corpus.corpus import heads_over_texts
from transformer.views.declaration import Answer, Picture, View
from transformer.views.drawing.common import HEAD, KIND, OF_STACK
from transformer.views.parameters import Choice, Whole

OPTIONS = {name: metric.title for name, metric in ALL.items()} | {"cost": mark("Cost of ablation")}


def answer_corpus(
    models: ModelQueries, item: Run, *, stack: str, kind: str, layer: int, head: int | str,
    across: str, up: str, dark: bool = False,
) -> Answer:  # fmt: skip
    """The heads of one kind of attention of the run's network, over the texts that it was measured
    on; the chosen head is marked."""
    found = models.model(item.model).heads
    chosen = (layer, head)
    figure = heads_over_texts(found, f"{stack}.{kind}", across, up, chosen, dark=dark)
    return {"figure": figure}


VIEW = View(
    name="corpus",
    tab=mark("Attention"),
    order=140,
    folded=True,
    title=mark("Each head over many texts"),
    help=mark(
        "One text may be chance. Each point is a head, placed by two of its numbers, each the mean "
        "over many texts; point at one to read a passage where its number is largest. Heads of one "
        "colour and shape do alike, by all their numbers together."
    ),
    pictures=(
        Picture(
            name="corpus",
            title=mark("Each head over many texts"),
            help=mark("Every head by two of its metrics, each the mean over many texts."),
            figure=heads_over_texts,
            answer=answer_corpus,
            network=True,
            parameters=(
                OF_STACK,
                KIND,
                Whole(name="layer", title=mark("Layer"), use="selection", default=0),
                HEAD,
                Choice(
                    name="across",
                    title=mark("Across"),
                    options=OPTIONS,
                    default="previous",
                    link="across",
                ),
                Choice(
                    name="up", title=mark("Up"), options=OPTIONS, default="induction", link="up"
                ),
            ),
        ),
    ),
)

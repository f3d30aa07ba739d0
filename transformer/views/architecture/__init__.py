"""The network's architecture."""

from __future__ import annotations

from transformer.messages import mark, say
from transformer.runs.run import Run
from transformer.views.architecture import architecture as drawing
from transformer.views.declaration import Answer, Picture, View, tab_name

# Where a kind of block is looked into: a tab.
LEADS = {
    "tokens": mark("Positions"),
    "positions": mark("Positions"),
    "self": mark("Attention"),
    "cross": mark("Attention"),
    "head": mark("Prediction"),
    "softmax": mark("Prediction"),
}


# And where it is its formula below the drawing: a topic of `equations`.
FORMULAS = {"norm": "norm", "feed_forward": "feed-forward"}


def answer_architecture(item: Run) -> Answer:
    """The blocks of the network of a run, and which tab or formula each kind of block leads to."""
    figure = drawing.architecture(item)
    leads = {kind: {"tab": tab_name(tab), "title": say(tab)} for kind, tab in LEADS.items()}
    formulas = {
        kind: {"equation": topic, "title": say("Formula")} for kind, topic in FORMULAS.items()
    }
    return {"figure": figure, "leads": leads | formulas}


VIEW = View(
    name="architecture",
    tab=mark("Model"),
    order=710,
    part="network",
    title=mark("Architecture"),
    help=mark(
        "The blocks of the network with their shapes and parameters, as data goes through them."
    ),
    pictures=(
        Picture(
            name="architecture",
            title=mark("Architecture"),
            help=mark("The blocks of the network with their shapes and parameters."),
            figure=drawing.architecture,
            answer=answer_architecture,
        ),
    ),
)

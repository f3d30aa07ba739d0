"""Each formula of the network with the lines of our source that compute it and a run's tensors."""

from __future__ import annotations

from typing import Any

from transformer.analysis.model_queries import ModelQueries
from transformer.checks import InvalidRequest
from transformer.messages import mark
from transformer.runs.head_data import check_head
from transformer.runs.run import Run
from transformer.views.declaration import Answer, Picture, View
from transformer.views.model.layer_topics import attention, feed_forward, mask, norm
from transformer.views.model.position_topic import positions
from transformer.views.model.sampling_topic import sampling
from transformer.views.model.topic import Topic
from transformer.views.parameters import HEAD, QUERY, SITE, Choice, Int

TOPICS = {
    "attention": (mark("Attention"), attention),
    "mask": (mark("mask"), mask),
    "positions": (mark("Positions"), positions),
    "norm": (mark("Norm and residual"), norm),
    "feed-forward": (mark("feed-forward"), feed_forward),
    "sampling": (mark("Sampling"), sampling),
}


def answer_equation(
    models: ModelQueries,
    item: Run,
    *,
    topic: str,
    site: str,
    head: Any,
    query: int | None = None,
    position: int | None = None,
) -> Answer:
    """A topic's formula, its code and the run's numbers, for one head and one token.

    query: a row of the site's trace; None or a row beyond the trace = the last. position: for
    sampling, the token's index in the run's ids; None = the last. Raises ValueError for an unknown
    site or head.
    """
    found = item.trace.find(site)
    check_head(head, item.config.n_heads)
    if head == "mean":
        raise InvalidRequest("mean_head", "choose one head, not the mean of all")
    labels = item.queries(found.stack)
    row = len(labels) - 1 if query is None else min(query, len(labels) - 1)
    made = Topic(models=models, run=item, site=found, head=head, position=row, token=position)
    _, fill = TOPICS[topic]
    fill(made)
    of = {"topic": topic, "site": str(found), "head": head, "query": row}
    answer = {
        "says": made.says,
        "formula": made.formula,
        "code": made.code,
        "tensors": made.tensors,
    }
    return of | {"query_label": labels[row], **answer}


VIEW = View(
    name="equations",
    tab=mark("Model"),
    order=705,
    folded=True,
    title=mark("Equation, code and numbers"),
    help=(
        "Each formula of the network beside our own lines that compute it and this run's numbers."
    ),
    pictures=(
        Picture(
            name="equation",
            title=mark("Equation, code and numbers"),
            help="A formula, the lines of source that compute it, and this run's tensors.",
            answer=answer_equation,
            network=True,
            parameters=(
                Choice(
                    name="topic",
                    title=mark("Formula"),
                    options={name: title for name, (title, _) in TOPICS.items()},
                    default="attention",
                    link="equation",
                ),
                SITE,
                HEAD,
                QUERY,
                Int(name="position", use="selection", optional=True),
            ),
        ),
    ),
)

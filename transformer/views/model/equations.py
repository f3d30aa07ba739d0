"""Each formula of the network with the lines of our source that compute it and a run's tensors."""

from __future__ import annotations

from typing import Annotated, Any

from transformer.analysis.model_queries import ModelQueries
from transformer.checks import InvalidCall
from transformer.messages import mark
from transformer.runs.head_data import check_head
from transformer.runs.run import Run
from transformer.views.declaration import Answer, view
from transformer.views.model.layer_topics import attention, feed_forward, mask, norm
from transformer.views.model.position_topic import positions
from transformer.views.model.sampling_topic import sampling, sampling_outlines
from transformer.views.model.topic import HeadAtQuery, answer_of, outline_of
from transformer.views.parameters import HEAD, QUERY, SITE, Choice, Int

TOPICS = {
    "attention": (mark("Attention"), attention),
    "mask": (mark("mask"), mask),
    "positions": (mark("Positions"), positions),
    "norm": (mark("Norm and residual"), norm),
    "feed-forward": (mark("feed-forward"), feed_forward),
    "sampling": (mark("Sampling"), sampling),
}
TITLES = {name: title for name, (title, _) in TOPICS.items()}
_TOPIC = Choice(title=mark("Formula"), options=TITLES, link="equation")


@view(
    tab=mark("Model"),
    order=705,
    folded=True,
    title=mark("Equation, code and numbers"),
    help="Each formula of the network beside our own lines that compute it and this run's numbers.",
)
def answer_equations(
    models: ModelQueries,
    item: Run,
    *,
    topic: Annotated[str, _TOPIC] = "attention",
    site: Annotated[str, SITE],
    head: Annotated[Any, HEAD],
    query: Annotated[int | None, QUERY] = None,
    position: Annotated[int | None, Int(use="selection")] = None,
) -> Answer:
    """A topic's formula, its code and the run's numbers, for one head and one token.

    query: a row of the site's trace; None or a row beyond the trace = the last. position: for
    sampling, the token's index in the run's ids; None = the last. Raises ValueError for an unknown
    site or head.
    """
    place = item.trace.find(site)
    check_head(head, item.config.n_heads)
    if head == "mean":
        raise InvalidCall("mean_head", "choose one head, not the mean of all")
    last = len(item.queries(place.stack)) - 1
    row = last if query is None else min(query, last)
    chosen = HeadAtQuery(models, item, place, head, row, position)
    of = {"topic": topic, "site": str(place), "head": head, "query": row}
    return of | answer_of(TOPICS[topic][1](chosen), chosen)


def equation_outlines(models: ModelQueries, run: Run) -> dict[str, Any]:
    """Each topic without the numbers of a run. at: by site, the place of its topics in "topics";
    sampling: by how tokens are taken, see `sampling_outlines`."""
    topics: list[dict[str, Any]] = []
    at = {}
    for site in run.trace.sites:
        chosen = HeadAtQuery(models, run, site, 0, 0, None)
        of_site = {
            name: outline_of(topic(chosen))
            for name, (_, topic) in TOPICS.items()
            if name != "sampling"
        }
        if of_site not in topics:
            topics.append(of_site)
        at[str(site)] = topics.index(of_site)
    return {"topics": topics, "at": at, "sampling": sampling_outlines()}

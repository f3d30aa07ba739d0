"""Measures of attention for lessons: weights, rows, masks, and metrics of heads."""

from __future__ import annotations

from transformer.analysis.head_measures import ALL
from transformer.analysis.head_metrics import head_metrics
from transformer.analysis.row_arithmetic import heads_of
from transformer.checks import check_whole
from transformer.interventions.descriptions import Ablate
from transformer.lessons.measures import (
    MEASURES,
    Function,
    GradingContext,
    Measure,
    measured,
    not_measurable,
    record_of,
)
from transformer.messages import mark
from transformer.model.sites import Site
from transformer.model.trace import AttentionRecord
from transformer.runs.memo import memoize_on_run
from transformer.runs.run import Run


@measured(mark("the weight"))
def weight(context: GradingContext, site: str, head: int, query: int, key: int) -> float:
    """The weight after mask and softmax, 0 to 1."""
    record = record_of(context, site, head)
    return float(record.pattern[0, head, _row(context, record, query), _column(record, key)])


@measured(mark("the score"))
def score(context: GradingContext, site: str, head: int, query: int, key: int) -> float:
    """q·k / √d, before the mask."""
    record = record_of(context, site, head)
    return float(record.scores[0, head, _row(context, record, query), _column(record, key)])


@measured(mark("the ratio of the two weights"))
def weight_ratio(
    context: GradingContext, site: str, head: int, query: int, key: int, other: int
) -> float:
    """The weight on one key divided by that on another."""
    first, second = (weight(context, site, head, query, one) for one in (key, other))
    return first / second


@measured(mark("the mean weight"))
def mean_weight(context: GradingContext, site: str, head: int, key: int) -> float:
    """The weight on a key, averaged over the queries that may read it."""
    record = record_of(context, site, head)
    column = _column(record, key)
    may_read = record.allowed[0, :, column]
    return float(record.pattern[0, head, may_read, column].mean())


@measured(mark("this number of the head's output"))
def head_output(context: GradingContext, site: str, head: int, query: int, dimension: int) -> float:
    """One dimension of the weighted sum of values, recomputed from the recording."""
    record = record_of(context, site, head)
    _, _, values = heads_of(record)
    check_whole("dimension", dimension, 0, values.shape[-1] - 1)
    weights = record.pattern[0, head, _row(context, record, query)]
    shared = head * values.shape[1] // record.pattern.shape[1]
    return float(weights @ values[0, shared, :, dimension])


@measured(mark("the largest weight of the head that is switched off"))
def switched_off_weight(context: GradingContext) -> float:
    """The largest weight, in the row of the last token of the given text, of the heads that are
    ablated; they still compute their weights."""
    run, found = context.run, [0.0]
    row = run.n_prompt - 1 - run.trace_start
    for one in run.request.interventions:
        if isinstance(one, Ablate) and one.stack == "decoder":
            pattern = run.trace[one.site].pattern
            found += [float(pattern[0, head, row].max()) for head in one.heads or ()]
    return max(found)


@measured(mark("the mean over the model's texts"))
def over_texts(context: GradingContext, metric: str, unit: str) -> float:
    """A metric of a head, "5.0", averaged over the texts that come with the model."""
    heads = (context.models.model(context.run.model).heads or {}).get("heads", ())
    found = [one for one in heads if f"{one['layer']}.{one['head']}" == unit]
    if not found or metric not in found[0]["metrics"]:
        raise not_measurable(metric)
    return float(found[0]["metrics"][metric]["mean"])


@measured(mark("the entropy of the row, in bits,"))
def row_entropy(context: GradingContext, site: str, head: int, query: int) -> float:
    """The entropy of one query's weights; 0 if one key has all the weight."""
    record = record_of(context, site, head)
    weights = record.pattern[0, head, _row(context, record, query)].double()
    return float(-(weights * weights.clamp(min=1e-30).log2()).sum())


@measured(mark("the number of hidden keys"))
def hidden(context: GradingContext, site: str, query: int) -> float:
    """The number of keys that the mask hides from a query."""
    record = record_of(context, site, 0)
    return float((~record.allowed[0, _row(context, record, query)]).sum())


@measured("", mark("The mask hides this cell."), mark("The mask does not hide this cell."))
def is_hidden(context: GradingContext, site: str, query: int, key: int) -> float:
    """1 if the mask hides a key from a query."""
    record = record_of(context, site, 0)
    return float(~record.allowed[0, _row(context, record, query), _column(record, key)])


def _metric(name: str) -> Function:
    def measure(context: GradingContext, site: str, head: int) -> float:
        record = record_of(context, site, head)
        place = record.site
        run, stack, kind = context.run, place.stack, place.kind
        key = ("metrics", stack, kind)
        own = memoize_on_run(run, key, lambda: head_metrics(run, stack, kind)).heads
        found = next(one for one in own if (one.layer, one.head) == (place.layer, head))
        if name not in found.values:
            raise not_measurable(name)
        return found.values[name]

    return measure


for _name, _one in ALL.items():
    MEASURES[_name] = Measure(words=_one.title, measure=_metric(_name))


def first_row(run: Run, site: str) -> int:
    """The position in the whole text of the first recorded row of a site."""
    own = Site.parse(site).stack == "decoder" or run.config.family == "encoder"
    return run.trace_start if own else 0


def _row(context: GradingContext, record: AttentionRecord, query: int) -> int:
    """The recorded row of a query, whose position counts from the start of the text."""
    start = first_row(context.run, str(record.site))
    return check_whole("query", query, start, start + record.pattern.shape[2] - 1) - start


def _column(record: AttentionRecord, key: int) -> int:
    return check_whole("key", key, 0, record.pattern.shape[3] - 1)

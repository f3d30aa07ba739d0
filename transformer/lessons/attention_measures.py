"""What a lesson can measure of attention: a weight, a row, what a mask hides, what a head does."""

from __future__ import annotations

from transformer.analysis.head_measures import ALL
from transformer.analysis.head_metrics import head_metrics
from transformer.checks import InvalidRequest, check_whole
from transformer.lessons.measures import (
    MEASURES,
    Function,
    GradingContext,
    Measure,
    measured,
    record_of,
)
from transformer.messages import mark
from transformer.model.sites import Site
from transformer.model.trace import AttentionRecord
from transformer.runs.batch import Batch
from transformer.runs.head_data import check_head
from transformer.runs.memo import memoize_on_run
from transformer.runs.run import Run

OF_A_BATCH = ("padding", "padding_weight")


@measured(mark("the weight"))
def weight(context: GradingContext, site: str, head: int, query: int, key: int) -> float:
    """After mask and softmax, 0 to 1."""
    record = record_of(context, site, head)
    return float(record.pattern[0, head, _row(context, record, query), _column(record, key)])


@measured(mark("the score"))
def score(context: GradingContext, site: str, head: int, query: int, key: int) -> float:
    """q·k / √d, before the mask."""
    record = record_of(context, site, head)
    return float(record.scores[0, head, _row(context, record, query), _column(record, key)])


@measured(mark("the sum of the row"))
def row_sum(context: GradingContext, site: str, head: int, query: int) -> float:
    """Of the weights of one query."""
    record = record_of(context, site, head)
    return float(record.pattern[0, head, _row(context, record, query)].sum())


@measured(mark("the entropy of the row, in bits,"))
def row_entropy(context: GradingContext, site: str, head: int, query: int) -> float:
    """0 where one key has all the weight."""
    record = record_of(context, site, head)
    weights = record.pattern[0, head, _row(context, record, query)].double()
    return float(-(weights * weights.clamp(min=1e-30).log2()).sum())


@measured(mark("the number of hidden keys"))
def hidden(context: GradingContext, site: str, query: int) -> float:
    """Keys that the mask forbids this query."""
    record = record_of(context, site, 0)
    return float((~record.allowed[0, _row(context, record, query)]).sum())


@measured("", mark("The mask hides this cell."), mark("The mask does not hide this cell."))
def is_hidden(context: GradingContext, site: str, query: int, key: int) -> float:
    """1 where the mask forbids a cell."""
    record = record_of(context, site, 0)
    return float(~record.allowed[0, _row(context, record, query), _column(record, key)])


@measured(mark("the number of padding tokens"))
def padding(context: GradingContext, sentence: int) -> float:
    """By which a sentence of the batch was filled up."""
    return float((~_batch(context).padding[_sentence(context, sentence)]).sum())


@measured(mark("the share of the weights that goes to padding"))
def padding_weight(context: GradingContext, site: str, head: int, sentence: int) -> float:
    """Mean over the rows of a sentence's own tokens, of one head."""
    batch = _batch(context)
    at, record = _sentence(context, sentence), batch.trace[site]
    check_head(head, record.pattern.shape[1])
    real = batch.padding[at]
    return float(record.pattern[at, head][real][:, ~real].sum() / real.sum())


def _metric(name: str) -> Function:
    def measure(context: GradingContext, site: str, head: int) -> float:
        record = record_of(context, site, head)
        place = record.site
        run, stack, kind = context.run, place.stack, place.kind
        key = ("metrics", stack, kind)
        own = memoize_on_run(run, key, lambda: head_metrics(run, stack, kind)).heads
        found = next(one for one in own if (one.layer, one.head) == (place.layer, head))
        if name not in found.values:
            raise InvalidRequest(
                "not_measurable", "the shown run has no {name} to measure", name=name
            )
        return found.values[name]

    return measure


for _name, _one in ALL.items():
    MEASURES[_name] = Measure(words=_one.title, measure=_metric(_name))


def first_row(run: Run, site: str) -> int:
    """The token, counted in the whole text, that the first row of a place's attention is of."""
    own = Site.parse(site).stack == "decoder" or run.config.family == "encoder"
    return run.trace_start if own else 0


def _row(context: GradingContext, record: AttentionRecord, query: int) -> int:
    """The row of a query; its place counts from the start of the whole text."""
    start = first_row(context.run, str(record.site))
    return check_whole("query", query, start, start + record.pattern.shape[2] - 1) - start


def _column(record: AttentionRecord, key: int) -> int:
    return check_whole("key", key, 0, record.pattern.shape[3] - 1)


def _batch(context: GradingContext) -> Batch:
    if context.batch is None:
        raise InvalidRequest(
            "not_measurable", "the shown run has no {name} to measure", name="batch"
        )
    return context.batch


def _sentence(context: GradingContext, sentence: int) -> int:
    return check_whole("sentence", sentence, 0, len(_batch(context).texts) - 1)

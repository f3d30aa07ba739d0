"""What a lesson can measure of attention: a weight, a row, what a mask hides, what a head does."""

from __future__ import annotations

from transformer.analysis.head_measures import ALL
from transformer.analysis.head_metrics import Metrics, head_metrics
from transformer.checks import check_whole
from transformer.lessons.quantity import (
    QUANTITIES,
    Ground,
    Measure,
    Quantity,
    called,
    record_of,
)
from transformer.messages import invalid, mark
from transformer.model.trace import AttentionRecord
from transformer.runs.head_data import check_head
from transformer.runs.memo import remembered
from transformer.runs.run import Batch, Run

OF_A_BATCH = ("padding", "padding_weight")


@called(mark("the weight"))
def weight(ground: Ground, site: str, head: int, query: int, key: int) -> float:
    """After mask and softmax, 0 to 1."""
    record = record_of(ground, site, head)
    return float(record.weights[0, head, _row(ground, record, query), _column(record, key)])


@called(mark("the score"))
def score(ground: Ground, site: str, head: int, query: int, key: int) -> float:
    """q·k / √d, before the mask."""
    record = record_of(ground, site, head)
    return float(record.scores[0, head, _row(ground, record, query), _column(record, key)])


@called(mark("the sum of the row"))
def row_sum(ground: Ground, site: str, head: int, query: int) -> float:
    """Of the weights of one query."""
    record = record_of(ground, site, head)
    return float(record.weights[0, head, _row(ground, record, query)].sum())


@called(mark("the entropy of the row, in bits,"))
def row_entropy(ground: Ground, site: str, head: int, query: int) -> float:
    """0 where one key has all the weight."""
    record = record_of(ground, site, head)
    weights = record.weights[0, head, _row(ground, record, query)].double()
    return float(-(weights * weights.clamp(min=1e-30).log2()).sum())


@called(mark("the number of hidden keys"))
def hidden(ground: Ground, site: str, query: int) -> float:
    """Keys that the mask forbids this query."""
    record = record_of(ground, site, 0)
    return float((~record.allowed[0, _row(ground, record, query)]).sum())


@called("", mark("The mask hides this cell."), mark("The mask does not hide this cell."))
def is_hidden(ground: Ground, site: str, query: int, key: int) -> float:
    """1 where the mask forbids a cell."""
    record = record_of(ground, site, 0)
    return float(~record.allowed[0, _row(ground, record, query), _column(record, key)])


@called(mark("the number of padding tokens"))
def padding(ground: Ground, sentence: int) -> float:
    """By which a sentence of the batch was filled up."""
    return float((~_batch(ground).padding[_sentence(ground, sentence)]).sum())


@called(mark("the share of the weights that goes to padding"))
def padding_weight(ground: Ground, site: str, head: int, sentence: int) -> float:
    """Mean over the rows of a sentence's own tokens, of one head."""
    batch = _batch(ground)
    at, record = _sentence(ground, sentence), batch.trace[site]
    check_head(head, record.weights.shape[1])
    real = batch.padding[at]
    return float(record.weights[at, head][real][:, ~real].sum() / real.sum())


def _metric(name: str) -> Measure:
    def measure(ground: Ground, site: str, head: int) -> float:
        record = record_of(ground, site, head)
        place = record.site
        own = _metrics(ground.run, place.stack, place.kind).heads
        found = next(one for one in own if (one.layer, one.head) == (place.layer, head))
        if name not in found.values:
            raise invalid("heads of {site} have no {name}", site=site, name=name)
        return found.values[name]

    return measure


for _name, _one in ALL.items():
    QUANTITIES[_name] = Quantity(name=_name, words=_one.title, measure=_metric(_name))


def _metrics(run: Run, stack: str, kind: str) -> Metrics:
    return remembered(run, ("metrics", stack, kind), lambda: head_metrics(run, stack, kind))


def _row(ground: Ground, record: AttentionRecord, query: int) -> int:
    """The row of a query, whose place is told in the whole text."""
    own = record.site.stack == "decoder" or ground.run.config.family == "encoder"
    start = ground.run.trace_start if own else 0
    return check_whole("query", query, start, start + record.weights.shape[2] - 1) - start


def _column(record: AttentionRecord, key: int) -> int:
    return check_whole("key", key, 0, record.weights.shape[3] - 1)


def _batch(ground: Ground) -> Batch:
    if ground.batch is None:
        raise invalid("this is about several texts, read together: there are none")
    return ground.batch


def _sentence(ground: Ground, sentence: int) -> int:
    return check_whole("sentence", sentence, 0, len(_batch(ground).texts) - 1)

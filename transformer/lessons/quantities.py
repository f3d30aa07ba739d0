"""What a lesson can measure: each a function of the visitor's own run or batch, by its name.

`token`, `query` and `key` count a stack's tokens from 0, as the page does; `site` is a place such
as "decoder.5.self". Every one gives a number, and raises ValueError for what the run does not have.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer.analysis.ablation import HeadImportance
from transformer.analysis.head_measures import ALL
from transformer.analysis.head_metrics import Metrics, head_metrics
from transformer.analysis.laboratory import Laboratory
from transformer.analysis.logit_contribution import LogitContribution
from transformer.learning.recorded import PLANS, recorded
from transformer.learning.words import sudden_fall
from transformer.messages import mark, say
from transformer.model.sites import Site
from transformer.model.trace import AttentionRecord
from transformer.runs.candidates import GenerationStep
from transformer.runs.head_data import check_head
from transformer.runs.memo import remembered
from transformer.runs.run import Batch, Run


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """What a check is graded on: a run, and where it is about padding a batch.

    lab: where what needs the network again is asked.
    """

    run: Run
    lab: Laboratory
    batch: Batch | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """words: what it is, in an answer: "{words} is 0.91 here". yes, no: in place of that, where it
    is 1 or 0."""

    name: str
    words: str
    measure: Callable[..., float]
    yes: str = ""
    no: str = ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """What has to be said, besides the run."""
        return tuple(inspect.signature(self.measure).parameters)[1:]


QUANTITIES: dict[str, Quantity] = {}
OF_A_BATCH = ("padding", "padding_weight")
Measure = Callable[..., float]


def _called(words: str, yes: str = "", no: str = "") -> Callable[[Measure], Measure]:
    def keep(measure: Measure) -> Measure:
        QUANTITIES[measure.__name__] = Quantity(
            name=measure.__name__, words=words, measure=measure, yes=yes, no=no
        )
        return measure

    return keep


@_called(mark("the weight"))
def weight(ground: Ground, site: str, head: int, query: int, key: int) -> float:
    """After mask and softmax, 0 to 1."""
    record = _record(ground, site, head)
    return float(record.weights[0, head, _row(ground, record, query), _column(record, key)])


@_called(mark("the score"))
def score(ground: Ground, site: str, head: int, query: int, key: int) -> float:
    """q·k / √d, before the mask."""
    record = _record(ground, site, head)
    return float(record.scores[0, head, _row(ground, record, query), _column(record, key)])


@_called(mark("the sum of the row"))
def row_sum(ground: Ground, site: str, head: int, query: int) -> float:
    """Of the weights of one query."""
    record = _record(ground, site, head)
    return float(record.weights[0, head, _row(ground, record, query)].sum())


@_called(mark("the entropy of the row, in bits,"))
def row_entropy(ground: Ground, site: str, head: int, query: int) -> float:
    """0 where one key has all the weight."""
    record = _record(ground, site, head)
    weights = record.weights[0, head, _row(ground, record, query)].double()
    return float(-(weights * weights.clamp(min=1e-30).log2()).sum())


@_called(mark("the number of hidden keys"))
def hidden(ground: Ground, site: str, query: int) -> float:
    """Keys that the mask forbids this query."""
    record = _record(ground, site, 0)
    return float((~record.allowed[0, _row(ground, record, query)]).sum())


@_called("", mark("The mask hides this cell."), mark("The mask does not hide this cell."))
def is_hidden(ground: Ground, site: str, query: int, key: int) -> float:
    """1 where the mask forbids a cell."""
    record = _record(ground, site, 0)
    return float(~record.allowed[0, _row(ground, record, query), _column(record, key)])


@_called(mark("the number of padding tokens"))
def padding(ground: Ground, sentence: int) -> float:
    """By which a sentence of the batch was filled up."""
    return float((~_batch(ground).padding[_sentence(ground, sentence)]).sum())


@_called(mark("the share of the weights that goes to padding"))
def padding_weight(ground: Ground, site: str, head: int, sentence: int) -> float:
    """Mean over the rows of a sentence's own tokens, of one head."""
    batch = _batch(ground)
    at, record = _sentence(ground, sentence), batch.trace[site]
    check_head(head, record.weights.shape[1])
    real = batch.padding[at]
    return float(record.weights[at, head][real][:, ~real].sum() / real.sum())


@_called(mark("the probability"))
def probability(ground: Ground, token: int) -> float:
    """That the network gave to a token that it wrote, before temperature and filters."""
    return float(_step(ground, token).chosen.probability)


@_called(mark("the probability of this token"))
def candidate(ground: Ground, token: int, text: str) -> float:
    """Of another text at the place of a token that the network wrote; 0 far down the list."""
    found = [one for one in _step(ground, token).candidates if one.text == text]
    return float(found[0].probability) if found else 0.0


@_called(mark("the number of tokens that the filters left"))
def kept(ground: Ground, token: int) -> float:
    """Of the vocabulary, where a token was drawn."""
    return float(_step(ground, token).n_kept)


@_called(mark("the surprise, in bits,"))
def surprise(ground: Ground, token: int) -> float:
    """-log2 of the probability that the network gave the token before it came."""
    found = ground.lab.with_lens(ground.run).surprise or ()
    value = found[_whole("token", token, len(found))]
    return 0.0 if value is None else float(value)


@_called(mark("the change of the token's log probability without this head"))
def importance(ground: Ground, site: str, head: int, token: int) -> float:
    """How much it matters for one token: |change| where the head is silenced, in nats."""
    place = Site.parse(site)
    _record(ground, site, head)
    found = _importance(ground, token)
    return abs(float(found.change[place.stack, place.kind][place.layer, head]))


@_called(mark("what this head adds to the token's logit"))
def contribution(ground: Ground, site: str, head: int, token: int) -> float:
    """Directly, in the intact network, with the scale of every norm held."""
    place, family = Site.parse(site), ground.run.config.family
    _record(ground, site, head)
    if place.stack == "encoder" and family != "encoder":
        raise ValueError(say("heads of {site} have no {name}", site=site, name="contribution"))
    return float(_contribution(ground, token).heads[place.kind][place.layer, head])


@_called(mark("what its silence costs beyond what it adds"))
def indirect(ground: Ground, site: str, head: int, token: int) -> float:
    """The fall of the token's log probability without a head, in nats, less its contribution:
    much where others build on it, below 0 where they make up for it."""
    added = contribution(ground, site, head, token)
    place = Site.parse(site)
    change = _importance(ground, token).change[place.stack, place.kind]
    return -float(change[place.layer, head]) - added


@_called(mark("the number of layers after which the lens knows the next token"))
def knows_from(ground: Ground, token: int) -> float:
    """The layer after which, to the end, the lens says what the last layer says; from 1."""
    lens = ground.lab.with_lens(ground.run).lens
    if lens is None:
        raise ValueError(say("this run has no lens"))
    best = lens.ids[:, _whole("token", token, lens.ids.shape[1]), 0]
    wrong = (best != best[-1]).nonzero()
    return float(wrong[-1] + 1) if len(wrong) else 0.0


@_called(mark("the position's number"))
def position(ground: Ground, position: int, dimension: int) -> float:
    """An entry of the matrix that is added to the tokens."""
    matrix = _positions(ground)
    at = _whole("position", position, matrix.shape[0])
    return float(matrix[at, _whole("dimension", dimension, matrix.shape[1])])


@_called(mark("the similarity (cosine) of the two positions"))
def position_similarity(ground: Ground, position: int, other: int) -> float:
    """-1 to 1."""
    matrix = _positions(ground)
    a, b = (matrix[_whole("position", one, matrix.shape[0])] for one in (position, other))
    return float(torch.nn.functional.cosine_similarity(a, b, dim=0))


@_called(mark("the number of tokens"))
def tokens(ground: Ground) -> float:
    """Of the whole text, given and generated."""
    return float(len(ground.run.labels))


@_called(mark("the number of heads"))
def heads(ground: Ground) -> float:
    """In each layer."""
    return float(ground.run.config.n_heads)


@_called(mark("the number of features of a head"))
def head_size(ground: Ground) -> float:
    """d, of whose root the scores are divided by."""
    record = next(iter(ground.run.trace))
    if record.queries is None:
        raise ValueError(say("this run has no queries"))
    return float(record.queries.shape[-1])


@_called(mark("the step at which the loss has fallen"))
def loss_fell(ground: Ground, task: str) -> float:
    """The end of the most sudden fall of a recorded training."""
    if task not in PLANS:
        raise ValueError(
            say("task must be one of {allowed}; got {got}", allowed=list(PLANS), got=repr(task))
        )
    found = sudden_fall(recorded(task).losses)
    return float(found[1]) if found else 0.0


def _metric(name: str) -> Measure:
    def measure(ground: Ground, site: str, head: int) -> float:
        record = _record(ground, site, head)
        place = record.site
        own = _metrics(ground.run, place.stack, place.kind).heads
        found = next(one for one in own if (one.layer, one.head) == (place.layer, head))
        if name not in found.values:
            raise ValueError(say("heads of {site} have no {name}", site=site, name=name))
        return found.values[name]

    return measure


for _name, _one in ALL.items():
    QUANTITIES[_name] = Quantity(name=_name, words=_one.title, measure=_metric(_name))


def _metrics(run: Run, stack: str, kind: str) -> Metrics:
    return remembered(run, ("metrics", stack, kind), lambda: head_metrics(run, stack, kind))


def _importance(ground: Ground, token: int) -> HeadImportance:
    key = ("importance", token, "zero")
    return remembered(ground.run, key, lambda: ground.lab.importance(ground.run, token, "zero"))


def _contribution(ground: Ground, token: int) -> LogitContribution:
    key = ("contribution", token, None)
    return remembered(ground.run, key, lambda: ground.lab.contribution(ground.run, token, None))


def of(ground: Ground, name: str, arguments: Mapping[str, Any]) -> float:
    """A quantity's number. Raises ValueError for what the run does not have."""
    return QUANTITIES[name].measure(ground, **arguments)


def _record(ground: Ground, site: str, head: int) -> AttentionRecord:
    record = ground.run.trace[ground.run.trace.find(str(site))]
    _whole("head", head, record.weights.shape[1])
    return record


def _row(ground: Ground, record: AttentionRecord, query: int) -> int:
    """The row of a query, whose place is told in the whole text."""
    own = record.site.stack == "decoder" or ground.run.config.family == "encoder"
    start = ground.run.trace_start if own else 0
    return _whole("query", query, start + record.weights.shape[2], start) - start


def _column(record: AttentionRecord, key: int) -> int:
    return _whole("key", key, record.weights.shape[3])


def _step(ground: Ground, token: int) -> GenerationStep:
    run = ground.run
    return run.steps[_whole("token", token, run.n_prompt + len(run.steps), run.n_prompt)
                     - run.n_prompt]  # fmt: skip


def _positions(ground: Ground) -> Tensor:
    matrices = ground.run.position_matrices
    if not matrices:
        raise ValueError(say("this network adds no positions"))
    return list(matrices.values())[-1]


def _batch(ground: Ground) -> Batch:
    if ground.batch is None:
        raise ValueError(say("this is about several texts, read together: there are none"))
    return ground.batch


def _sentence(ground: Ground, sentence: int) -> int:
    return _whole("sentence", sentence, len(_batch(ground).texts))


def _whole(name: str, got: Any, end: int, first: int = 0) -> int:
    if not isinstance(got, int) or isinstance(got, bool) or not first <= got < end:
        raise ValueError(
            say(
                "{name} must be a whole number from {least} to {last}; got {got}",
                name=name, least=first, last=end - 1, got=repr(got),
            )
        )  # fmt: skip
    return got

"""Measures of a visitor's run for lessons, by name: their registry, and those of texts, of networks
and of attention.

`token`, `query` and `key` count a stack's tokens from 0, as the page does; a negative token or
query counts from the end of the prompt, -1 is its last token. `token` is the last token read, like
the page's chosen token: the token after it is predicted, or by an encoder the token itself, of
which "[MASK]" is the first hidden one. `site`
is a site such as "decoder.5.self". Every measure returns a number, and raises ValueError if the
run has no such number.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import torch

from transformer.analysis.head_measures import ALL
from transformer.analysis.head_metrics import head_metrics
from transformer.analysis.model_queries import ModelQueries
from transformer.analysis.row_arithmetic import heads_of
from transformer.checks import InvalidRequest, check_whole, is_whole
from transformer.interventions.descriptions import Ablate
from transformer.messages import mark
from transformer.model.sites import Site
from transformer.model.trace import AttentionRecord
from transformer.runs.head_data import weights_read
from transformer.runs.memo import memoize_on_run
from transformer.runs.run import Run

Function = Callable[..., float]
HIDDEN = "[MASK]"
ELSEWHERE = mark(
    "The shown text or network lacks the place that this question is about. It can be answered as "
    "the step opened it: leave the step and come back."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class GradingContext:
    """The run that a check is graded on. models: answers measures that run the network again."""

    run: Run
    models: ModelQueries


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """words: its name in an answer, "{words} is 0.91 here". yes, no: the answers for 1 and 0 of a
    yes-or-no measure."""

    words: str
    measure: Function
    yes: str = ""
    no: str = ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of its arguments, apart from the context."""
        return tuple(inspect.signature(self.measure).parameters)[1:]


MEASURES: dict[str, Measure] = {}


def measured(words: str, yes: str = "", no: str = "") -> Callable[[Function], Function]:
    """Register a function as a Measure under its name."""

    def keep(measure: Function) -> Function:
        MEASURES[measure.__name__] = Measure(words=words, measure=measure, yes=yes, no=no)
        return measure

    return keep


def not_measurable(name: str) -> InvalidRequest:
    """The error for a run that lacks what a measure needs."""
    return InvalidRequest("not_measurable", "the shown run has no {name} to measure", name=name)


def of(context: GradingContext, name: str, arguments: Mapping[str, Any], **clicked: Any) -> float:
    """A measure's number. clicked: the arguments that a visitor gives. Raises ValueError where the
    run has none."""
    try:
        return MEASURES[name].measure(context, **counted(context, arguments), **clicked)
    except ValueError as error:  # such as a network without this layer
        if clicked or getattr(error, "code", "out_of_range") != "out_of_range":
            raise
        raise InvalidRequest("not_measurable", ELSEWHERE) from error


def counted(context: GradingContext, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, tokens and queries counted from the start."""
    values, n_prompt = dict(arguments), context.run.n_prompt
    if values.get("token") == HIDDEN:
        mask = context.models.model(context.run.model).tokenizer.mask_id
        if mask is None or mask not in context.run.ids:
            raise not_measurable(HIDDEN)
        values["token"] = context.run.ids.index(mask)
    for place in {"token", "query"} & values.keys():
        if isinstance(values[place], int) and -n_prompt <= values[place] < 0:
            values[place] += n_prompt
    return values


def record_of(context: GradingContext, site: str, head: int) -> AttentionRecord:
    """A site's attention record. A switched-off head's weights are 0, as the page shows them.
    Raises ValueError for an unknown site or head."""
    record = context.run.trace[context.run.trace.find(str(site))]
    check_whole("head", head, 0, record.pattern.shape[1] - 1)
    read = weights_read(context.run, record.site, record.pattern)
    return dataclasses.replace(record, pattern=read)


# ---- of a text and of a network ----

COUNTS: dict[str, tuple[str, Callable[[Run], float]]] = {
    "tokens": (mark("the number of tokens"), lambda run: len(run.labels)),
    "generated": (mark("the number of generated tokens"), lambda run: len(run.steps)),
    "heads": (mark("the number of heads"), lambda run: run.config.n_heads),
    "head_size": (mark("the number of features of a head"), lambda run: run.config.d_head),
    "vocabulary": (
        mark("the number of tokens that it knows"), lambda run: run.config.output_vocab_size,
    ),
    "features": (mark("the number of features of a token"), lambda run: run.config.d_model),
    "feed_forward_weights": (
        mark("the number of weights in one feed-forward"),
        lambda run: (2 + run.config.gated) * run.config.d_model * run.config.d_ff,
    ),
    "attention_weights": (
        mark("the number of weights in one layer's attention"),
        lambda run: 2 * run.config.d_model * run.config.d_head
        * (run.config.n_heads + run.config.key_heads),
    ),
}  # fmt: skip


def _counted_in(count: Callable[[Run], float]) -> Function:
    def measure(context: GradingContext) -> float:
        return float(count(context.run))

    return measure


for _name, (_words, _count) in COUNTS.items():
    MEASURES[_name] = Measure(words=_words, measure=_counted_in(_count))


@measured(mark("the largest number of tokens in a word"))
def most_pieces(context: GradingContext) -> float:
    """The number of tokens of the word in the given text that is cut into the most."""
    return float(max(_pieces(context)))


@measured(mark("the smallest number of tokens in a word"))
def fewest_pieces(context: GradingContext) -> float:
    """The number of tokens of the word in the given text that is cut into the fewest."""
    return float(min(_pieces(context)))


def _pieces(context: GradingContext) -> list[int]:
    """The number of tokens of each word; a word begins after a space, and has no digits."""
    tokenizer, run = context.models.model(context.run.model).tokenizer, context.run
    texts = [tokenizer.text(id_) for id_ in run.ids[: run.n_prompt] if id_ not in run.special_ids]
    word, words = 0, []
    for before, text in pairwise(["", *texts]):
        word += text[:1].isspace() or before[-1:].isspace()
        if any(map(str.isalnum, text)):  # a comma belongs to no word
            words.append((word, text.strip()))
    pieces = [[text for _, text in group] for _, group in groupby(words, key=lambda pair: pair[0])]
    return [len(texts) for texts in pieces if not any(map(str.isdigit, "".join(texts)))] or [0]


@measured(mark("the number of times that a sentence is repeated"))
def repeated_sentences(context: GradingContext) -> float:
    """How often the most frequent sentence of the generated text is repeated; without those that
    the given text has already."""
    prompt, written = context.run.request.text, "".join(step.text for step in context.run.steps)
    sentences = [part.strip() for part in written.split(".") if len(part.split()) > 2]
    new = [sentences.count(sentence) for sentence in sentences if f"{sentence}." not in prompt]
    return float(max(new, default=1) - 1)


@measured("", mark("It says what was changed, where, and what happened."),
          mark("No run of this network shows that."))  # fmt: skip
def is_supported(context: GradingContext, claim: str) -> float:
    """1 for the claim "intervention"; a weight, a number and one text support no other."""
    return float(claim == "intervention")


@measured(mark("the count of numbers in the table"))
def embedding_numbers(context: GradingContext) -> float:
    """Numbers in the table of token vectors."""
    return float(_table(context).numel())


@measured(mark("the similarity (cosine) of the two tokens"))
def token_similarity(context: GradingContext, text: str, other: str) -> float:
    """Cosine similarity, -1 to 1, of the vectors of two tokens."""
    tokenizer, table = context.models.model(context.run.model).tokenizer, _table(context)
    encoded = [tokenizer.encode(word) for word in (text, other)]
    if any(len(ids) != 1 for ids in encoded):
        raise not_measurable("single token")
    a, b = (table[ids[0]].float() for ids in encoded)
    return float(torch.nn.functional.cosine_similarity(a, b, dim=0))


@measured(mark("the mean similarity (cosine) of two tokens"))
def usual_similarity(context: GradingContext) -> float:
    """Mean cosine similarity of all pairs of different tokens."""
    rows = torch.nn.functional.normalize(_table(context).float(), dim=1)
    n, total = len(rows), rows.sum(dim=0)
    return float((total @ total - n) / (n * (n - 1)))


@measured(mark("the number of words whose nearest token is in the text"))
def near_pairs(context: GradingContext) -> float:
    """Words of the given text, of one token, whose nearest token by cosine is another of them."""
    run, table = context.run, torch.nn.functional.normalize(_table(context).float(), dim=1)
    tokenizer = context.models.model(run.model).tokenizer
    ids = {id_ for id_ in run.ids[: run.n_prompt] if tokenizer.text(id_)[1:].isalpha()}
    nearest = {id_: (table @ table[id_]).topk(2).indices.tolist() for id_ in ids}
    return float(sum(any(n in ids - {id_} for n in near) for id_, near in nearest.items()))


def _table(context: GradingContext) -> torch.Tensor:
    network = context.models.model(context.run.model).network
    table: torch.Tensor = next(iter(network.embeddings.values())).tokens.weight
    return table


# ---- of attention ----


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
    first, second = (weight(context, site, head, query, each) for each in (key, other))
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
    run, weights = context.run, [0.0]
    row = run.n_prompt - 1 - run.trace_start
    for intervention in run.request.interventions:
        if isinstance(intervention, Ablate) and intervention.stack == "decoder":
            pattern = run.trace[intervention.site].pattern
            weights += [float(pattern[0, head, row].max()) for head in intervention.heads or ()]
    return max(weights)


@measured(mark("the mean over the model's texts"))
def over_texts(context: GradingContext, metric: str, unit: str) -> float:
    """A metric of a head, "5.0", averaged over the texts that come with the model."""
    heads = (context.models.model(context.run.model).heads or {}).get("heads", ())
    matches = [each for each in heads if f"{each['layer']}.{each['head']}" == unit]
    if not matches or metric not in matches[0]["metrics"]:
        raise not_measurable(metric)
    return float(matches[0]["metrics"][metric]["mean"])


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


@measured(
    "", mark("This cell shows what was read to choose the word."),
    mark("Not this cell: the row from which the word was chosen would count, and the column that "
         "this row reads most."),
)  # fmt: skip
def was_read_for(
    context: GradingContext, site: str, head: int, word: str, query: int, key: int
) -> float:
    """1 if the token after the query is this word, and the query reads the key most."""
    run, record = context.run, record_of(context, site, head)
    tokenizer = context.models.model(run.model).tokenizer
    following = [tokenizer.text(index).strip() for index in run.ids[1:]]
    if word not in following:
        raise InvalidRequest("not_measurable", ELSEWHERE)
    weights = record.pattern[0, head, _row(context, record, query)]
    is_chosen = query < len(following) and following[query] == word
    return float(is_chosen and int(weights.argmax()) == _column(record, key))


def _metric(name: str) -> Function:
    def measure(context: GradingContext, site: str, head: int) -> float:
        record = record_of(context, site, head)
        place = record.site
        run, stack, kind = context.run, place.stack, place.kind
        key = ("metrics", stack, kind)
        own = memoize_on_run(run, key, lambda: head_metrics(run, stack, kind)).heads
        metrics = next(each for each in own if (each.layer, each.head) == (place.layer, head))
        value = metrics.values.get(name, math.nan)
        if math.isnan(value):  # of a head that is switched off
            raise not_measurable(name)
        return value

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
    return place_in_text(query, start, record.pattern.shape[2]) - start


def _column(record: AttentionRecord, key: int) -> int:
    return place_in_text(key, 0, record.pattern.shape[3])


def place_in_text(token: Any, first: int, count: int) -> int:
    """The token's place. Raises ValueError unless it is one of `count` from `first`."""
    if is_whole(token) and not first <= token < first + count:
        raise InvalidRequest(
            "outside_text",
            "The question is about token {token}, and the shown text has only tokens {first} to "
            "{last}.",
            token=token, first=first, last=first + count - 1,
        )  # fmt: skip
    return check_whole("token", token, first, first + count - 1)

"""Measures of a visitor's run for lessons, by name: their registry, and what is counted
in a text and in a network.

`token`, `query` and `key` count a stack's tokens from 0, as the page does; a negative token or
query counts from the end of the prompt, -1 is its last token. `token` is the last token read, like
the page's chosen token: the token after it is predicted, or by an encoder the token itself. `site`
is a site such as "decoder.5.self". Every measure returns a number, and raises ValueError if the
run has no such number.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch

from transformer.analysis.model_queries import ModelQueries
from transformer.checks import InvalidRequest, check_whole
from transformer.messages import mark
from transformer.model.trace import AttentionRecord
from transformer.runs.head_data import weights_read
from transformer.runs.run import Run

Function = Callable[..., float]


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
    return MEASURES[name].measure(context, **counted(context, arguments), **clicked)


def counted(context: GradingContext, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, tokens and queries counted from the start."""
    found, n_prompt = dict(arguments), context.run.n_prompt
    for place in {"token", "query"} & found.keys():
        if isinstance(found[place], int) and -n_prompt <= found[place] < 0:
            found[place] += n_prompt
    return found


def record_of(context: GradingContext, site: str, head: int) -> AttentionRecord:
    """A site's attention record. A switched-off head's weights are 0, as the page shows them.
    Raises ValueError for an unknown site or head."""
    record = context.run.trace[context.run.trace.find(str(site))]
    check_whole("head", head, 0, record.pattern.shape[1] - 1)
    read = weights_read(context.run, record.site, record.pattern)
    return dataclasses.replace(record, pattern=read)


# ---- of a text ----


@measured(mark("the number of tokens"))
def tokens(context: GradingContext) -> float:
    """Tokens of the whole text, given and generated."""
    return float(len(context.run.labels))


@measured(mark("the number of generated tokens"))
def generated(context: GradingContext) -> float:
    """Tokens that the network added: it ran once for each."""
    return float(len(context.run.steps))


@measured(mark("the number of tokens of the word with the most"))
def most_pieces(context: GradingContext) -> float:
    """Tokens of the word of the given text that is cut into most."""
    return float(max(_pieces(context)))


@measured(mark("the number of tokens of the word with the fewest"))
def fewest_pieces(context: GradingContext) -> float:
    """Tokens of the word of the given text that is cut into fewest."""
    return float(min(_pieces(context)))


def _pieces(context: GradingContext) -> list[int]:
    """The number of tokens of each word; a word begins with a space."""
    tokenizer, run = context.models.model(context.run.model).tokenizer, context.run
    texts = [tokenizer.text(one) for one in run.ids[: run.n_prompt] if one not in run.special_ids]
    word, words = 0, []
    for text in texts:
        word += text.startswith(" ")
        if any(map(str.isalnum, text)):  # a comma belongs to no word
            words.append(word)
    return [len([*group]) for _, group in groupby(words)] or [0]


@measured(mark("the number of times that a sentence is repeated"))
def repeated_sentences(context: GradingContext) -> float:
    """How often the most frequent sentence of the generated text is repeated."""
    written = "".join(step.text for step in context.run.steps)
    sentences = [one.strip() for one in written.split(".") if len(one.split()) > 2]
    return float(max((sentences.count(one) for one in sentences), default=1) - 1)


@measured("", mark("It says what was changed, where, and what happened."),
          mark("No run of this network shows that."))  # fmt: skip
def is_supported(context: GradingContext, claim: str) -> float:
    """1 for the claim "intervention"; a weight, a number and one text support no other."""
    return float(claim == "intervention")


# ---- of a network ----


@measured(mark("the number of heads"))
def heads(context: GradingContext) -> float:
    """Heads in each layer."""
    return float(context.run.config.n_heads)


@measured(mark("the number of features of a head"))
def head_size(context: GradingContext) -> float:
    """d_head; scores are divided by its square root."""
    return float(context.run.config.d_head)


@measured(mark("the number of tokens that it knows"))
def vocabulary(context: GradingContext) -> float:
    """The size of the vocabulary."""
    return float(context.run.config.output_vocab_size)


@measured(mark("the number of features of a token"))
def features(context: GradingContext) -> float:
    """d_model."""
    return float(context.run.config.d_model)


@measured(mark("the number of numbers in the table"))
def embedding_numbers(context: GradingContext) -> float:
    """Numbers in the table of token vectors."""
    return float(_table(context).numel())


@measured(mark("the number of weights of one feed-forward"))
def feed_forward_weights(context: GradingContext) -> float:
    """Weights, without biases, of a layer's feed-forward."""
    return 2.0 * context.run.config.d_model * context.run.config.d_ff


@measured(mark("the number of weights of one attention"))
def attention_weights(context: GradingContext) -> float:
    """Weights, without biases, of a layer's four attention matrices."""
    return 4.0 * context.run.config.d_model**2


@measured(mark("the similarity (cosine) of the two tokens"))
def token_similarity(context: GradingContext, text: str, other: str) -> float:
    """Cosine similarity, -1 to 1, of the vectors of two tokens."""
    tokenizer, table = context.models.model(context.run.model).tokenizer, _table(context)
    found = [tokenizer.encode(one) for one in (text, other)]
    if any(len(ids) != 1 for ids in found):
        raise not_measurable("single token")
    a, b = (table[ids[0]].float() for ids in found)
    return float(torch.nn.functional.cosine_similarity(a, b, dim=0))


def _table(context: GradingContext) -> torch.Tensor:
    network = context.models.model(context.run.model).network
    table: torch.Tensor = next(iter(network.embeddings.values())).tokens.weight
    return table

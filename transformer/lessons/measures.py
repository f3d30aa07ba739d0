"""Measures of a visitor's run or batch for lessons, by name.

`token`, `query` and `key` count a stack's tokens from 0, as the page does. `token` is the last
token read, like the page's chosen token: the token after it is predicted, or by an encoder the
token itself. `site` is a site such as "decoder.5.self". Every measure returns a number, and raises
ValueError if the run has no such number. `attention_measures` adds those of attention.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer.analysis.ablation import HeadImportance, head_importance
from transformer.analysis.logit_contribution import logit_contribution
from transformer.analysis.masked_token import masked_token
from transformer.analysis.model_queries import ModelQueries
from transformer.checks import InvalidRequest, check_choice, check_whole
from transformer.learning.summary import sudden_fall
from transformer.learning.training_record import BUNDLED, bundled_recording
from transformer.messages import mark
from transformer.model.sites import Site
from transformer.model.trace import AttentionRecord
from transformer.runs.batch import Batch
from transformer.runs.head_data import weights_read
from transformer.runs.run import Run
from transformer.runs.steps import GenerationStep

Function = Callable[..., float]


@dataclass(frozen=True, kw_only=True, slots=True)
class GradingContext:
    """The run that a check is graded on, and the batch for checks of padding.

    models: answers measures that run the network again.
    """

    run: Run
    models: ModelQueries
    batch: Batch | None = None


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


def of(context: GradingContext, name: str, arguments: Mapping[str, Any]) -> float:
    """A measure's number. Raises ValueError where the run has none."""
    return MEASURES[name].measure(context, **arguments)


def record_of(context: GradingContext, site: str, head: int) -> AttentionRecord:
    """A site's attention record. A switched-off head's weights are 0, as the page shows them.
    Raises ValueError for an unknown site or head."""
    record = context.run.trace[context.run.trace.find(str(site))]
    check_whole("head", head, 0, record.pattern.shape[1] - 1)
    read = weights_read(context.run, record.site, record.pattern)
    return dataclasses.replace(record, pattern=read)


@measured(mark("the probability"))
def probability(context: GradingContext, token: int) -> float:
    """Of the token written after `token`, before temperature and filters."""
    return float(_step(context, token).chosen.probability)


@measured(mark("the probability of this token"))
def candidate(context: GradingContext, token: int, text: str) -> float:
    """Of another candidate after `token`; 0 if it is not among the recorded ones."""
    found = [one for one in _step(context, token).candidates if one.text == text]
    return float(found[0].probability) if found else 0.0


@measured(mark("the number of tokens that the filters left"))
def kept(context: GradingContext, token: int) -> float:
    """Tokens of the vocabulary from which the next one was drawn."""
    return float(_step(context, token).n_kept)


@measured(mark("the surprisal, in bits,"))
def surprisal(context: GradingContext, token: int) -> float:
    """-log2 of the probability of the token that follows."""
    found = context.models.with_lens(context.run).surprisal or ()
    value = found[check_whole("token", token, 0, len(found) - 2) + 1]
    return 0.0 if value is None else float(value)


@measured(mark("the change of the token's log probability without this head"))
def importance(context: GradingContext, site: str, head: int, token: int) -> float:
    """|change| of the next token's log probability if the head is ablated, in nats."""
    at = Site.parse(site)
    record_of(context, site, head)
    found = _importance(context, token)
    return abs(float(found.change[at.stack, at.kind][at.layer, head]))


@measured(mark("what this head adds to the token's logit"))
def contribution(context: GradingContext, site: str, head: int, token: int) -> float:
    """Direct logit attribution in the intact network, with the scales of norms held fixed."""
    at, is_encoder = Site.parse(site), context.run.config.family == "encoder"
    record_of(context, site, head)
    if at.stack == "encoder" and not is_encoder:
        raise not_measurable("contribution")
    position = token if is_encoder else token + 1
    found = context.models.ask(logit_contribution, context.run, position=position, target=None)
    return float(found.heads[at.kind][at.layer, head])


@measured(mark("what its ablation costs beyond what it adds"))
def indirect(context: GradingContext, site: str, head: int, token: int) -> float:
    """The fall of the next token's log probability without a head, in nats, less its direct
    contribution: large where later parts read its output, negative where they compensate."""
    added = contribution(context, site, head, token)
    at = Site.parse(site)
    change = _importance(context, token).change[at.stack, at.kind]
    return -float(change[at.layer, head]) - added


@measured(mark("the number of layers after which the lens knows the next token"))
def knows_from(context: GradingContext, token: int) -> float:
    """The first layer, from 1, from which on the lens agrees with the last layer."""
    lens = context.models.with_lens(context.run).lens
    if lens is None:
        raise not_measurable("logit lens")
    best = lens.ids[:, check_whole("token", token, 0, lens.ids.shape[1] - 1), 0]
    wrong = (best != best[-1]).nonzero()
    return float(wrong[-1] + 1) if len(wrong) else 0.0


@measured(mark("the probability from both sides"))
def guess(context: GradingContext, token: int, text: str) -> float:
    """Of this text at a token hidden from an encoder; 0 if it is not among the best."""
    return _guessed(context, token, text, from_left=False)


@measured(mark("the probability from the left side alone"))
def guess_from_left(context: GradingContext, token: int, text: str) -> float:
    """`guess` without the text to the right of the hidden token."""
    return _guessed(context, token, text, from_left=True)


def _guessed(context: GradingContext, token: int, text: str, *, from_left: bool) -> float:
    position = check_whole("token", token, 0, len(context.run.ids) - 1)
    found = context.models.ask(masked_token, context.run, position=position)
    tokenizer = context.models.model(context.run.model).tokenizer
    numbers = found.from_left if from_left else found.probabilities
    return next(
        (one for at, one in zip(found.ids, numbers, strict=True) if tokenizer.text(at) == text), 0.0
    )


def _importance(context: GradingContext, token: int) -> HeadImportance:
    return context.models.ask(head_importance, context.run, position=token + 1, by="zero")


def _step(context: GradingContext, token: int) -> GenerationStep:
    run, first = context.run, context.run.n_prompt - 1
    return run.steps[check_whole("token", token, first, first + len(run.steps) - 1) - first]


@measured(mark("the position's number"))
def position(context: GradingContext, position: int, dimension: int) -> float:
    """An entry of the matrix that is added to the tokens."""
    matrix = _positions(context)
    n_positions, size = matrix.shape
    at = check_whole("position", position, 0, n_positions - 1)
    return float(matrix[at, check_whole("dimension", dimension, 0, size - 1)])


@measured(mark("the similarity (cosine) of the two positions"))
def position_similarity(context: GradingContext, position: int, other: int) -> float:
    """Cosine similarity, -1 to 1."""
    matrix = _positions(context)
    last = len(matrix) - 1
    a, b = (matrix[check_whole("position", one, 0, last)] for one in (position, other))
    return float(torch.nn.functional.cosine_similarity(a, b, dim=0))


@measured(mark("the number of tokens"))
def tokens(context: GradingContext) -> float:
    """Tokens of the whole text, given and generated."""
    return float(len(context.run.labels))


@measured(mark("the number of heads"))
def heads(context: GradingContext) -> float:
    """Heads in each layer."""
    return float(context.run.config.n_heads)


@measured(mark("the number of features of a head"))
def head_size(context: GradingContext) -> float:
    """d_head; scores are divided by its square root."""
    record = next(iter(context.run.trace))
    if record.q is None:
        raise not_measurable("queries")
    return float(record.q.shape[-1])


@measured(mark("the step at which the loss has fallen"))
def loss_fell(context: GradingContext, task: str) -> float:
    """The step at the end of the steepest fall of a bundled recording."""
    check_choice("task", task, BUNDLED)
    found = sudden_fall(bundled_recording(task).losses)
    return float(found[1]) if found else 0.0


def _positions(context: GradingContext) -> Tensor:
    matrices = context.run.position_matrices
    if not matrices:
        raise not_measurable("position matrix")
    return list(matrices.values())[-1]

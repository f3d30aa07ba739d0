"""What a lesson can measure: each a function of the visitor's own run or batch, by its name.

`token`, `query` and `key` count a stack's tokens from 0, as the page does. `token` is the last one
read, as the page's chosen token is: what is predicted is the one that follows it, and by an encoder
the token itself. `site` is a place such as "decoder.5.self". Every measure gives a number, and
raises ValueError for what the run does not have. Those of attention stand in `attention_measures`.
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
    """What a check is graded on: a run, and where it is about padding a batch.

    models: where what needs the network again is asked.
    """

    run: Run
    models: ModelQueries
    batch: Batch | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """words: what it is, in an answer: "{words} is 0.91 here". yes, no: in place of that, where it
    is 1 or 0."""

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
    """Keep a measure under its own name, see Measure."""

    def keep(measure: Function) -> Function:
        MEASURES[measure.__name__] = Measure(words=words, measure=measure, yes=yes, no=no)
        return measure

    return keep


def not_measurable(name: str) -> InvalidRequest:
    """The error of a measure for which the shown run has no `name`."""
    return InvalidRequest("not_measurable", "the shown run has no {name} to measure", name=name)


def of(context: GradingContext, name: str, arguments: Mapping[str, Any]) -> float:
    """A measure's number. Raises ValueError where the run has none."""
    return MEASURES[name].measure(context, **arguments)


def record_of(context: GradingContext, site: str, head: int) -> AttentionRecord:
    """The attention of a place, with this head; 0 are the weights of one that is switched off, as
    the page shows them. Raises ValueError for none."""
    record = context.run.trace[context.run.trace.find(str(site))]
    check_whole("head", head, 0, record.pattern.shape[1] - 1)
    read = weights_read(context.run, record.site, record.pattern)
    return dataclasses.replace(record, pattern=read)


@measured(mark("the probability"))
def probability(context: GradingContext, token: int) -> float:
    """That the network gave to what it wrote after a token, before temperature and filters."""
    return float(_step(context, token).chosen.probability)


@measured(mark("the probability of this token"))
def candidate(context: GradingContext, token: int, text: str) -> float:
    """Of another text after a token that the network went on from; 0 far down the list."""
    found = [one for one in _step(context, token).candidates if one.text == text]
    return float(found[0].probability) if found else 0.0


@measured(mark("the number of tokens that the filters left"))
def kept(context: GradingContext, token: int) -> float:
    """Of the vocabulary, where the token that follows was drawn."""
    return float(_step(context, token).n_kept)


@measured(mark("the surprisal, in bits,"))
def surprisal(context: GradingContext, token: int) -> float:
    """-log2 of the probability that the network gave to what follows the token."""
    found = context.models.with_lens(context.run).surprisal or ()
    value = found[check_whole("token", token, 0, len(found) - 2) + 1]
    return 0.0 if value is None else float(value)


@measured(mark("the change of the token's log probability without this head"))
def importance(context: GradingContext, site: str, head: int, token: int) -> float:
    """How much it matters for the next token: |change| where the head is ablated, in nats."""
    at = Site.parse(site)
    record_of(context, site, head)
    found = _importance(context, token)
    return abs(float(found.change[at.stack, at.kind][at.layer, head]))


@measured(mark("what this head adds to the token's logit"))
def contribution(context: GradingContext, site: str, head: int, token: int) -> float:
    """Directly, in the intact network, with every normalisation's scale held fixed."""
    at, is_encoder = Site.parse(site), context.run.config.family == "encoder"
    record_of(context, site, head)
    if at.stack == "encoder" and not is_encoder:
        raise InvalidRequest(
            "not_measurable", "the shown run has no {name} to measure", name="contribution"
        )
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
    """The layer after which, to the end, the lens says what the last layer says; from 1."""
    lens = context.models.with_lens(context.run).lens
    if lens is None:
        raise InvalidRequest(
            "not_measurable", "the shown run has no {name} to measure", name="logit lens"
        )
    best = lens.ids[:, check_whole("token", token, 0, lens.ids.shape[1] - 1), 0]
    wrong = (best != best[-1]).nonzero()
    return float(wrong[-1] + 1) if len(wrong) else 0.0


@measured(mark("the probability from both sides"))
def guess(context: GradingContext, token: int, text: str) -> float:
    """Of this text where a token is hidden from an encoder; 0 far down the list."""
    return _guessed(context, token, text, from_left=False)


@measured(mark("the probability from the left side alone"))
def guess_from_left(context: GradingContext, token: int, text: str) -> float:
    """The same without the text to its right; 0 far down the list from both sides."""
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
    """-1 to 1."""
    matrix = _positions(context)
    last = len(matrix) - 1
    a, b = (matrix[check_whole("position", one, 0, last)] for one in (position, other))
    return float(torch.nn.functional.cosine_similarity(a, b, dim=0))


@measured(mark("the number of tokens"))
def tokens(context: GradingContext) -> float:
    """Of the whole text, given and generated."""
    return float(len(context.run.labels))


@measured(mark("the number of heads"))
def heads(context: GradingContext) -> float:
    """In each layer."""
    return float(context.run.config.n_heads)


@measured(mark("the number of features of a head"))
def head_size(context: GradingContext) -> float:
    """d, of whose root the scores are divided by."""
    record = next(iter(context.run.trace))
    if record.q is None:
        raise InvalidRequest(
            "not_measurable", "the shown run has no {name} to measure", name="queries"
        )
    return float(record.q.shape[-1])


@measured(mark("the step at which the loss has fallen"))
def loss_fell(context: GradingContext, task: str) -> float:
    """The end of the most sudden fall of a recorded training."""
    check_choice("task", task, BUNDLED)
    found = sudden_fall(bundled_recording(task).losses)
    return float(found[1]) if found else 0.0


def _positions(context: GradingContext) -> Tensor:
    matrices = context.run.position_matrices
    if not matrices:
        raise InvalidRequest(
            "not_measurable", "the shown run has no {name} to measure", name="position matrix"
        )
    return list(matrices.values())[-1]

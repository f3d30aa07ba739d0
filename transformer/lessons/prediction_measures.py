"""Measures for lessons of what comes next, of hidden words, and of the parts behind both."""

from __future__ import annotations

import re
from dataclasses import replace

import torch
from torch import Tensor

from transformer.analysis.ablation import head_importance, intact_ids, log_probabilities_at
from transformer.analysis.logit_contribution import LogitContribution, logit_contribution
from transformer.analysis.logit_lens import streams_of
from transformer.analysis.text_before import TextBefore, token_asked
from transformer.checks import InvalidRequest, check_whole
from transformer.inference.generation import apply_sampling, draw
from transformer.inference.model import Model
from transformer.interventions.descriptions import Ablate, Break
from transformer.interventions.hooks import ablated_one_by_one
from transformer.lessons.measures import (
    GradingContext,
    measured,
    not_measurable,
    place_in_text,
    record_of,
)
from transformer.messages import mark
from transformer.model.hooks import unchanged
from transformer.model.sites import Site
from transformer.runs.request import Sampling
from transformer.runs.run import Run
from transformer.runs.steps import GenerationStep
from transformer.tokenizer import Tokenizer

EQUAL = 1e-3  # relative difference of streams that are the same up to rounding


@measured(mark("the probability"))
def probability(context: GradingContext, token: int) -> float:
    """The probability of the token written after `token`, before temperature and filters."""
    return float(_step(context, token).chosen.probability)


@measured(mark("the likeliest token's probability"))
def top_probability(context: GradingContext, token: int, temperature: float) -> float:
    """The probability of the likeliest token after `token`, at a temperature."""
    return float((_after(context, token) / temperature).softmax(dim=-1).max())


@measured(mark("the surest guess within the text"))
def surest(context: GradingContext) -> float:
    """The largest probability that any next token gets at a place of the given text."""
    run, lens = context.run, context.models.with_lens(context.run).lens
    if lens is None:
        raise not_measurable("logit lens")
    return float(lens.probabilities[-1, : run.n_prompt - run.trace_start, 0].max())


@measured(mark("the probability of all but the likeliest tokens"))
def tail(context: GradingContext, token: int, temperature: float, best: int) -> float:
    """The probability of all tokens but the `best` likeliest after `token`, at a temperature."""
    chances = (_after(context, token) / temperature).softmax(dim=-1)
    return 1 - float(chances.topk(best).values.sum())


@measured(mark("the probability of this token"))
def candidate(context: GradingContext, token: int, text: str) -> float:
    """The probability of another token after `token`."""
    return float(_after(context, token)[_id(context, text)].exp())


@measured(mark("the ratio of the two probabilities"))
def odds(context: GradingContext, token: int, text: str, other: str) -> float:
    """How many times as likely as another token it is after `token`."""
    after = _after(context, token)
    return float((after[_id(context, text)] - after[_id(context, other)]).exp())


@measured(mark("the probability of going on as in a name of the text"))
def completion(context: GradingContext) -> float:
    """The probability of all next tokens that continue the last, unfinished word of the given text
    as a name that the text has before; 0 without such a name. A name has a capital letter, also
    within a sentence, or else is no frequent word. "the Park" and "Sunday" are none."""
    run, tokenizer = context.run, context.models.model(context.run.model).tokenizer
    _, start = _last_word(run.request.text)
    names = {
        word
        for word in _names(run.request.text, tokenizer)
        if start and word.startswith(start) and word != start
    }
    if not names:
        return 0.0
    text_of = tokenizer.text
    probabilities = _after(context, run.n_prompt - 1).exp()
    texts = map(text_of, range(len(probabilities)))
    continues = [bool(text) and any(n.startswith(start + text) for n in names) for text in texts]
    return float(probabilities[torch.tensor(continues)].sum())


_OF_CALENDAR = frozenset({
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "January",
    "February", "March", "July", "September", "October", "November", "December", "Christmas",
    "Easter", "Halloween",
})  # fmt: skip
# "the Park", "a Big Red Ball": the words after it are no names.
_DETERMINED = re.compile(r"\b(?:[Tt]he|[Aa]n?|[Mm]y|[Yy]our|[Hh]is|[Hh]er|[Oo]ur)(?: [A-Z]\w*)* $")


def _names(text: str, tokenizer: Tokenizer) -> set[str]:
    """Words with a capital letter, within a sentence or else no single token in small letters;
    neither of the calendar nor after an article."""
    names = set()
    for match in re.finditer(r"[A-Z]\w*", text):
        word, before = match[0], text[: match.start()]
        is_within = before.rstrip()[-1:] not in ("", *'.!?"“”')
        is_name = is_within or len(tokenizer.encode(f" {word.lower()}")) > 1
        if is_name and word not in _OF_CALENDAR and not _DETERMINED.search(before):
            names.add(word)
    return names


@measured(mark("the number of names that are completed"))
def names_completed(context: GradingContext, names: str, without: str) -> float:
    """How many of these names, each put in place of the one in the given text that its last word
    begins, get a `completion` above one half, without a head, "3.4"."""
    run, (layer, _, head) = context.run, without.partition(".")
    text = run.request.text
    before, start = _last_word(text)
    old = next(name for name in before if name.startswith(start) and name != start)
    n_completed = 0
    for name in names.split():
        new = text.removesuffix(start).replace(old, name) + name[: len(start)]
        off = [Ablate("decoder", int(layer), [int(head)])]
        model = context.models.model(run.model)
        other = model.trace(new, off)
        assert isinstance(other, Run)
        n_completed += completion(replace(context, run=other)) > 0.5
    return float(n_completed)


def _last_word(text: str) -> tuple[list[str], str]:
    """The words before the last one, and that one; "" if the text ends with something else."""
    words = re.findall(r"\w+", text)
    return (words[:-1], words[-1]) if words and text.endswith(words[-1]) else (words, "")


@measured(mark("its place in the list"))
def rank(context: GradingContext, token: int, text: str) -> float:
    """The place of a token among all that may come after `token`; 1: the likeliest."""
    chances = _after(context, token)
    return 1.0 + float((chances > chances[_id(context, text)]).sum())


@measured(mark("the number of tokens that the filters left"))
def kept(context: GradingContext, token: int) -> float:
    """Tokens of the vocabulary from which the next one was drawn."""
    return float(_step(context, token).n_kept)


@measured(mark("the surprisal, in bits,"))
def surprisal(context: GradingContext, token: int) -> float:
    """-log2 of the token's own probability, as the network gave it before it read the token."""
    surprisals = context.models.with_lens(context.run).surprisal or ()
    first = context.run.trace_start
    value = surprisals[place_in_text(token, first, len(surprisals)) - first]
    return 0.0 if value is None else float(value)


@measured(mark("the mean surprisal of the given text, in bits,"))
def mean_surprisal(context: GradingContext) -> float:
    """Bits per token of the given text."""
    run = context.run
    n_given = max(0, run.n_prompt - run.trace_start)
    surprisals = (context.models.with_lens(run).surprisal or ())[:n_given]
    values = [bits for bits in surprisals if bits is not None]
    if not values:
        raise not_measurable("surprisal")
    return sum(values) / len(values)


@measured(mark("the share of later tokens that are as before"))
def later_alike(context: GradingContext) -> float:
    """The share of the generated tokens after the last forced one that is the same as without
    forced tokens, at the same place; 1 if none comes after it."""
    run = context.run
    before = context.models.ask(intact_ids, run, forced=False)
    start = run.n_prompt + len(run.request.forced_tokens)
    later = run.ids[start:]
    if not later:
        return 1.0
    return sum(pair[0] == pair[1] for pair in zip(later, before[start:], strict=False)) / len(later)


@measured(mark("the number of tokens after the replaced one"))
def later_tokens(context: GradingContext) -> float:
    """The number of generated tokens after the last forced one."""
    return float(len(context.run.steps) - len(context.run.request.forced_tokens))


@measured(mark("the number of draws in a hundred that give this token"))
def draws(context: GradingContext, token: int, text: str) -> float:
    """How often seeds 0 to 99 draw a token after the given text, by the run's settings."""
    sampling = context.run.request.sampling or Sampling()
    chances = apply_sampling(_after(context, token)[None], sampling).softmax(dim=-1)
    seeds = [torch.Generator().manual_seed(seed) for seed in range(100)]
    return float((draw(chances.expand(100, -1), seeds) == _id(context, text)).sum())


# ---- a word that is hidden from an encoder ----


@measured(mark("the probability that moves"))
def moved(context: GradingContext, other: str, without: str) -> float:
    """Total variation between the predictions for the first [MASK] of this text and of `other`, by
    the network intact (without="") or with a part removed, such as "no-positions": 0 if equal."""
    texts = (context.run.request.text, other)
    here, there = (
        context.models.ask(hidden_in, context.run, other=text, without=without).exp()
        for text in texts
    )
    return float((here - there).abs().sum() / 2)


def hidden_in(model: Model, run: Run, other: str, without: str) -> Tensor:
    """Log probabilities (V,) at the first [MASK] of a text, see `moved`."""
    traced = model.trace(other, [Break(without)] if without else [])
    assert isinstance(traced, Run)
    mask = model.tokenizer.mask_id
    if mask is None or mask not in traced.ids:
        raise not_measurable("[MASK]")
    return log_probabilities_at(model, traced, traced.ids.index(mask))


# ---- layers ----


@measured(mark("the share of places where the lens agrees"))
def lens_agreement(context: GradingContext, layers: int) -> float:
    """The share of the given text's places at which the logit lens after this many layers has the
    last layer's token."""
    lens = context.models.with_lens(context.run).lens
    if lens is None:
        raise not_measurable("logit lens")
    best = lens.ids[:, : context.run.n_prompt - context.run.trace_start, 0]
    check_whole("layers", layers, 0, len(best) - 1)
    return float((best[layers] == best[-1]).double().mean())


@measured(mark("the number of layers after which the two are still equal"))
def equal_layers(context: GradingContext, token: int, other: str) -> float:
    """Layers after which the stream of a token is, up to rounding, that of the last prompt token of
    another text, with the same interventions."""
    return float(context.models.ask(layers_alike, context.run, token=token, other=other))


def layers_alike(model: Model, run: Run, token: int, other: str) -> int:
    """How many layers leave the two streams equal."""
    traced = model.trace(other, run.request.interventions)
    assert isinstance(traced, Run)
    stack = model.network.last_stack.name
    here, there = streams_of(model, run, stack), streams_of(model, traced, stack)
    row = token - run.trace_start
    differ = [
        float((a[0, row] - b[0, -1]).norm() / b[0, -1].norm()) > EQUAL
        for a, b in zip(here[1:], there[1:], strict=True)
    ]
    return differ.index(True) if True in differ else len(differ)


# ---- parts of the network, for one token ----


@measured(mark("the logit"))
def logit(context: GradingContext, token: int) -> float:
    """The next token's logit in the intact network."""
    return _contribution(context, token).logit


@measured(mark("what this head adds to the token's logit"))
def contribution(context: GradingContext, site: str, head: int, token: int) -> float:
    """Direct logit attribution in the intact network, with the scales of norms held fixed."""
    at = Site.parse(site)
    record_of(context, site, head)
    if at.stack == "encoder" and context.run.config.family != "encoder":
        raise not_measurable("contribution")
    return float(_contribution(context, token).heads[at.kind][at.layer, head])


@measured(mark("the least that a head adds to the token's logit"))
def least_added(context: GradingContext, token: int) -> float:
    """The contribution of the most negative head."""
    return float(min(heads.min() for heads in _contribution(context, token).heads.values()))


@measured(mark("what all heads add to the token's logit"))
def heads_add(context: GradingContext, token: int) -> float:
    """The sum of all heads' contributions."""
    return float(sum(heads.sum() for heads in _contribution(context, token).heads.values()))


@measured(mark("what all feed-forwards add to the token's logit"))
def feed_forwards_add(context: GradingContext, token: int) -> float:
    """The sum of all feed-forwards' contributions."""
    return float(_contribution(context, token).feed_forward.sum())


@measured(mark("what this feed-forward adds to the token's logit"))
def forward_adds(context: GradingContext, layer: int, token: int) -> float:
    """The contribution of the feed-forward of a layer."""
    added = _contribution(context, token).feed_forward
    return float(added[check_whole("layer", layer, 0, len(added) - 1)])


@measured(mark("the change of the token's log probability without this head"))
def importance(context: GradingContext, site: str, head: int, token: int) -> float:
    """|change| of the next token's log probability if the head is ablated, in nats."""
    at = Site.parse(site)
    record_of(context, site, head)
    effects = context.models.ask(head_importance, context.run, position=token + 1, by="zero")
    return abs(float(effects.change[at.stack, at.kind][at.layer, head]))


@measured(mark("what this head adds to the lead over the runner-up"))
def lead_added(context: GradingContext, unit: str, token: int) -> float:
    """The direct effect of a head, "5.0": on the next token's logit less the runner-up's."""
    site, head = _unit(context, unit)
    ask = context.models.ask
    target, minus = ask(leading, context.run, position=token + 1)
    parts = ask(logit_contribution, context.run, position=token + 1, target=target, minus=minus)
    return float(parts.heads["self"][site.layer, head])


@measured(mark("what the lead over the runner-up loses without this head"))
def lead_lost(context: GradingContext, unit: str, token: int, by: str) -> float:
    """The total effect of a head, "5.0", on the same lead: its fall when the head is ablated, by
    "zero" or "mean"."""
    unit_at = _unit(context, unit)
    return context.models.ask(lead_change, context.run, position=token + 1, head=unit_at, by=by)


def _unit(context: GradingContext, unit: str) -> tuple[Site, int]:
    layer, _, head = unit.partition(".")
    site = f"decoder.{layer}.self"
    record_of(context, site, int(head))
    return Site.parse(site), int(head)


@torch.no_grad()
def leading(model: Model, run: Run, position: int) -> tuple[int, int]:
    """The token at `position` of the run's ids, and the likeliest other one, by the intact
    network."""
    logits = TextBefore.of(model, run, position).logits([unchanged])[0]
    first = token_asked(run, position, logits)
    return first, next(token for token in logits.topk(2).indices.tolist() if token != first)


@torch.no_grad()
def lead_change(model: Model, run: Run, position: int, head: tuple[Site, int], by: str) -> float:
    """What the first of the `leading` tokens loses against the second without one head."""
    first, second = leading(model, run, position)
    text = TextBefore.of(model, run, position)
    hooks = [unchanged], [ablated_one_by_one(run.config, [head], by)]
    intact, ablated = (text.logits(hook)[0] for hook in hooks)
    return float((intact[first] - intact[second]) - (ablated[first] - ablated[second]))


def _contribution(context: GradingContext, token: int) -> LogitContribution:
    position = _predicted(context, token)
    return context.models.ask(logit_contribution, context.run, position=position)


def _after(context: GradingContext, token: int) -> Tensor:
    """Log probabilities (V,) of what follows a token, or for an encoder of the token itself."""
    position = _predicted(context, token)
    logs: Tensor = context.models.ask(log_probabilities_at, context.run, position=position)
    return logs


def _predicted(context: GradingContext, token: int) -> int:
    return token if context.run.config.family == "encoder" else token + 1


def _id(context: GradingContext, text: str) -> int:
    ids = context.models.model(context.run.model).tokenizer.encode(text)
    if len(ids) != 1:
        raise InvalidRequest("no_single_token", "“{text}” is not one token", text=text)
    return int(ids[0])


def _step(context: GradingContext, token: int) -> GenerationStep:
    run, first = context.run, context.run.n_prompt - 1
    return run.steps[place_in_text(token, first, len(run.steps)) - first]

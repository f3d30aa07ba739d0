"""What a lesson can measure of a token: how likely it is, and which heads make it so."""

from __future__ import annotations

from transformer.analysis.ablation import HeadImportance
from transformer.analysis.logit_contribution import LogitContribution
from transformer.checks import check_whole
from transformer.lessons.quantity import Ground, called, record_of
from transformer.messages import invalid, mark
from transformer.model.sites import Site
from transformer.runs.candidates import GenerationStep
from transformer.runs.memo import remembered


@called(mark("the probability"))
def probability(ground: Ground, token: int) -> float:
    """That the network gave to a token that it wrote, before temperature and filters."""
    return float(_step(ground, token).chosen.probability)


@called(mark("the probability of this token"))
def candidate(ground: Ground, token: int, text: str) -> float:
    """Of another text at the place of a token that the network wrote; 0 far down the list."""
    found = [one for one in _step(ground, token).candidates if one.text == text]
    return float(found[0].probability) if found else 0.0


@called(mark("the number of tokens that the filters left"))
def kept(ground: Ground, token: int) -> float:
    """Of the vocabulary, where a token was drawn."""
    return float(_step(ground, token).n_kept)


@called(mark("the surprise, in bits,"))
def surprise(ground: Ground, token: int) -> float:
    """-log2 of the probability that the network gave the token before it came."""
    found = ground.lab.with_lens(ground.run).surprise or ()
    value = found[check_whole("token", token, 0, len(found) - 1)]
    return 0.0 if value is None else float(value)


@called(mark("the change of the token's log probability without this head"))
def importance(ground: Ground, site: str, head: int, token: int) -> float:
    """How much it matters for one token: |change| where the head is silenced, in nats."""
    place = Site.parse(site)
    record_of(ground, site, head)
    found = _importance(ground, token)
    return abs(float(found.change[place.stack, place.kind][place.layer, head]))


@called(mark("what this head adds to the token's logit"))
def contribution(ground: Ground, site: str, head: int, token: int) -> float:
    """Directly, in the intact network, with the scale of every norm held."""
    place, family = Site.parse(site), ground.run.config.family
    record_of(ground, site, head)
    if place.stack == "encoder" and family != "encoder":
        raise invalid("heads of {site} have no {name}", site=site, name="contribution")
    return float(_contribution(ground, token).heads[place.kind][place.layer, head])


@called(mark("what its silence costs beyond what it adds"))
def indirect(ground: Ground, site: str, head: int, token: int) -> float:
    """The fall of the token's log probability without a head, in nats, less its contribution:
    much where others build on it, below 0 where they make up for it."""
    added = contribution(ground, site, head, token)
    place = Site.parse(site)
    change = _importance(ground, token).change[place.stack, place.kind]
    return -float(change[place.layer, head]) - added


@called(mark("the number of layers after which the lens knows the next token"))
def knows_from(ground: Ground, token: int) -> float:
    """The layer after which, to the end, the lens says what the last layer says; from 1."""
    lens = ground.lab.with_lens(ground.run).lens
    if lens is None:
        raise invalid("this run has no lens")
    best = lens.ids[:, check_whole("token", token, 0, lens.ids.shape[1] - 1), 0]
    wrong = (best != best[-1]).nonzero()
    return float(wrong[-1] + 1) if len(wrong) else 0.0


@called(mark("the probability from both sides"))
def guess(ground: Ground, token: int, text: str) -> float:
    """Of this text where a token is hidden from an encoder; 0 far down the list."""
    return _guessed(ground, token, text, from_left=False)


@called(mark("the probability from the left side alone"))
def guess_from_left(ground: Ground, token: int, text: str) -> float:
    """The same where what stands to the right is cut off; 0 far down the list from both sides."""
    return _guessed(ground, token, text, from_left=True)


def _guessed(ground: Ground, token: int, text: str, *, from_left: bool) -> float:
    key = ("masked", check_whole("token", token, 0, len(ground.run.ids) - 1))
    found = remembered(ground.run, key, lambda: ground.lab.masked_token(ground.run, token))
    tokenizer = ground.lab.model(ground.run.model).tokenizer
    numbers = found.from_left if from_left else found.probabilities
    return next(
        (one for at, one in zip(found.ids, numbers, strict=True) if tokenizer.text(at) == text), 0.0
    )


def _importance(ground: Ground, token: int) -> HeadImportance:
    key = ("importance", token, "zero")
    return remembered(ground.run, key, lambda: ground.lab.importance(ground.run, token, "zero"))


def _contribution(ground: Ground, token: int) -> LogitContribution:
    key = ("contribution", token, None)
    return remembered(ground.run, key, lambda: ground.lab.contribution(ground.run, token, None))


def _step(ground: Ground, token: int) -> GenerationStep:
    run = ground.run
    return run.steps[check_whole("token", token, run.n_prompt, run.n_prompt + len(run.steps) - 1)
                     - run.n_prompt]  # fmt: skip

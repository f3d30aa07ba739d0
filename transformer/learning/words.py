"""What happened in a training, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from transformer.learning.record import Moment, Record
from transformer.messages import mark, numeral, say
from transformer.model.sites import Site

SMOOTH = 10  # steps of which a loss is the mean
STRETCH = 60  # steps in which a fall is sudden
SUDDEN = 0.3  # of the first loss
FORMED = 0.3  # by which a head's score rises meanwhile, if one is said to have formed

_STANDS = {  # by what a head's score is, see Exercise.reads
    "weight on the right letter": mark("Weight on the right letter: {score}, in {head}."),
    "induction score": mark("Induction score: {score}, in {head}."),
}
_ROSE = {
    "weight on the right letter": mark(
        "From step {first} to {last} the loss fell from {high} to {low}, while the weight on the "
        "right letter rose from {low_score} to {high_score}: {head} had formed."
    ),
    "induction score": mark(
        "From step {first} to {last} the loss fell from {high} to {low}, while the induction score "
        "rose from {low_score} to {high_score}: {head} had formed."
    ),
}


def told(record: Record, step: int) -> list[str]:
    """How it stands after a step, and the most sudden fall of the loss up to there."""
    now = record.moment(step)
    if now is None:
        return []
    loss = numeral(_smooth(record.losses, step), ".2f")
    words = say(
        "After step {step} of {total}: loss {loss} nats, {right} of the held-out questions right.",
        step=numeral(now.step), total=numeral(record.plan.n_steps), loss=loss,
        right=_percent(now.accuracy),
    )  # fmt: skip
    return [words, *_best_head(record, now), *_fall(record, step)]


def _best_head(record: Record, now: Moment) -> list[str]:
    if now.score is None:
        return []
    sentence = say(
        _STANDS[record.plan.exercise.reads],
        score=numeral(now.score, ".2f"), head=head_words(now),
    )  # fmt: skip
    return [sentence]


def _fall(record: Record, step: int) -> list[str]:
    """The stretch in which the loss fell most, if that was sudden."""
    found = sudden_fall(record.losses[:step])
    if found is None:
        return []
    first, last = found
    before, after = record.moment(first), record.moment(last)
    assert after is not None
    high, low = (numeral(_smooth(record.losses, one), ".2f") for one in found)
    rise = 0.0 if before is None else (after.score or 0.0) - (before.score or 0.0)
    if before is None or rise < FORMED:
        sentence = say(
            "From step {first} to {last} the loss fell from {high} to {low}.",
            first=numeral(first), last=numeral(last), high=high, low=low,
        )  # fmt: skip
        return [sentence]
    sentence = say(
        _ROSE[record.plan.exercise.reads],
        first=numeral(first), last=numeral(last), high=high, low=low,
        low_score=numeral(before.score or 0.0, ".2f"), high_score=numeral(after.score, ".2f"),
        head=head_words(after),
    )  # fmt: skip
    return [sentence]


def sudden_fall(losses: Sequence[float]) -> tuple[int, int] | None:
    """The steps between which the loss fell most, STRETCH apart; None where it never fell so much
    in so few steps, or did at once."""
    ends = range(STRETCH + SMOOTH, len(losses) + 1, SMOOTH)
    falls = [(_smooth(losses, end - STRETCH) - _smooth(losses, end), end) for end in ends]
    fall, end = max(falls, default=(0.0, 0))
    return (end - STRETCH, end) if falls and fall >= SUDDEN * _smooth(losses, 1) else None


def head_words(moment: Moment) -> str:
    """Which head a moment's score is of."""
    assert moment.site is not None
    site = Site.parse(moment.site)
    return say("layer {layer}, head {head}", layer=site.layer, head=moment.head)


def _smooth(losses: Sequence[float], step: int) -> float:
    """The mean loss of the steps up to this one."""
    part = losses[max(0, step - SMOOTH) : max(1, step)]
    return sum(part) / len(part)


def _percent(share: float) -> str:
    return say("{percent} %", percent=numeral(100 * share, ".0f"))

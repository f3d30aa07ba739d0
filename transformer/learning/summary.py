"""A training run in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transformer.learning.training import Measurement, Record
from transformer.messages import capital, numeral, say
from transformer.model.sites import Site

SMOOTHED_STEPS = 10  # steps of which a loss is the mean
STRETCH = 60  # steps in which a fall is sudden
MIN_FALL_SHARE = 0.3  # of the first loss
MIN_SCORE_RISE = 0.3  # by which a head's score rises meanwhile, if one is said to have formed


def summary(record: Record, step: int) -> list[str]:
    """The measurements after a step, and the steepest fall of the loss before it."""
    now = record.measured_by(step)
    if now is None:
        return []
    loss = numeral(smoothed(record.losses, step), ".2f")
    right = say("{percent} %", percent=numeral(100 * now.accuracy, ".0f"))
    words = [
        say(
            "After step {step} of {total}: loss {loss} nats, {right} of the held-out questions "
            "right.",
            step=numeral(now.step), total=numeral(record.plan.n_steps), loss=loss, right=right,
        )
    ]  # fmt: skip
    if now.score is not None:
        measure, score = say(record.plan.exercise.reads), numeral(now.score, ".2f")
        words.append(
            say(
                "{measure}: {score}, in {head}.",
                measure=capital(measure),
                score=score,
                head=head_words(now),
            )
        )
    fall = sudden_fall(record.losses[:step])
    return [*words, *_fall(record, *fall)] if fall else words


def _fall(record: Record, first: int, last: int) -> Iterator[str]:
    """The stretch in which the loss fell most, and the head that formed in it."""
    before, after = record.measured_by(first), record.measured_by(last)
    assert after is not None
    high, low = (numeral(smoothed(record.losses, at), ".2f") for at in (first, last))
    fall = {"first": numeral(first), "last": numeral(last), "high": high, "low": low}
    yield say("From step {first} to {last} the loss fell from {high} to {low}.", **fall)
    rise = 0.0 if before is None else (after.score or 0.0) - (before.score or 0.0)
    if before is not None and rise >= MIN_SCORE_RISE:
        yield say(
            "During these steps, {head} formed: {measure} {low_score} → {high_score}.",
            head=head_words(after), measure=say(record.plan.exercise.reads),
            low_score=numeral(before.score or 0.0, ".2f"), high_score=numeral(after.score, ".2f"),
        )  # fmt: skip


def sudden_fall(losses: Sequence[float]) -> tuple[int, int] | None:
    """The STRETCH steps in which the loss fell most; None where no fall is steep, or it fell from
    the first step on."""
    ends = range(STRETCH + SMOOTHED_STEPS, len(losses) + 1, SMOOTHED_STEPS)
    falls = [(smoothed(losses, end - STRETCH) - smoothed(losses, end), end) for end in ends]
    fall, end = max(falls, default=(0.0, 0))
    return (end - STRETCH, end) if falls and fall >= MIN_FALL_SHARE * smoothed(losses, 1) else None


def head_words(measurement: Measurement) -> str:
    """The head that a measured score belongs to."""
    assert measurement.site is not None
    site = Site.parse(measurement.site)
    return say("layer {layer}, head {head}", layer=site.layer, head=measurement.head)


def smoothed(losses: Sequence[float], step: int) -> float:
    """The mean loss of the steps up to this one."""
    part = losses[max(0, step - SMOOTHED_STEPS) : max(1, step)]
    return sum(part) / len(part)

"""Activity of another text patched into a run: these views run the network, or its tokenizer."""

from __future__ import annotations

from transformer import figures
from transformer.figures.patching import largest_change
from transformer.inference.model import Model
from transformer.inference.run import Run
from transformer.model.sites import check_choice
from transformer.ui.experiments import Experiments
from transformer.ui.limits import check_input
from transformer.ui.variants import TEACHING, text_before, variant
from transformer.ui.views.answers import Answer, as_json

TARGETS = ("other", "here")


def other_text(experiments: Experiments, *, run: str, place: int | None = None) -> Answer:
    """Another text to patch from: this one with a word exchanged ("variant", None if it has none),
    and one of ours to try ("teaching"). place: the chosen token, None = the first generated."""
    item = experiments.store.run(run)
    model = experiments.service.model(item.model)
    text = text_before(model, item, _first(item) if place is None else _checked(item, place))
    return {"variant": variant(model, text), "teaching": TEACHING[item.config.family]}


def patching(
    experiments: Experiments,
    *,
    run: str,
    other: str,
    place: int | None = None,
    stack: str = "decoder",
    part: str = "residual",
    kind: str = "self",
    target: str = "other",
    dark: bool = False,
) -> Answer:
    """The layer x place map of what a patch does to one token.

    place: the token; None = of a translation the one that the other source changes most, else the
    first generated one. target: whose ln p it is, "other" = what the other run foresees there,
    "here" = the token that stands there.
    """
    item = experiments.store.run(run)
    check_choice("target", target, TARGETS)
    check_input(other)
    model = experiments.service.model(item.model)
    at = _place(experiments, item, other, place)
    wanted = item.ids[at] if target == "here" else None
    where = {"stack": stack, "part": part, "kind": kind, "target": wanted}
    found = experiments.patching(item, other, at, **where)
    here, there = _labels(model, item, other, at, stack)
    label = model.tokenizer.label(found.target)
    figure = figures.patching(found, here, there, label, part=part, dark=dark)
    return {
        "figure": as_json(figure),
        "place": at,
        "stands": item.labels[at],
        "target": label,
        "before": found.before,
        "other": found.other,
        "limit": largest_change(found),
        "lengths": [len(here), len(there)],
        "altered": bool(item.request.interventions),
    }


def _place(experiments: Experiments, run: Run, other: str, place: int | None) -> int:
    """The token to look at. Raises ValueError unless the network predicted it with all of the text
    in sight."""
    if run.trace_start:
        raise ValueError(
            f"this text is longer than the {run.config.max_len} tokens that {run.model} reads at "
            "once, so its places move; patch a shorter one"
        )
    if place is None:
        return experiments.most_changed(run, other) if run.source_ids else _first(run)
    return _checked(run, place)


def _first(run: Run) -> int:
    """The first generated token, or the last one of a text that was only read."""
    return min(run.n_prompt, len(run.ids) - 1)


def _checked(run: Run, place: int) -> int:
    last = min(len(run.ids), run.config.max_len + 1) - 1
    if not isinstance(place, int) or isinstance(place, bool) or not 1 <= place <= last:
        raise ValueError(
            f"the token must be one that the network predicted, at a place from 1 to {last}; "
            f"got {place!r}"
        )
    return place


def _labels(
    model: Model, run: Run, other: str, place: int, stack: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the stack reads here and in the other run; a translator's decoder reads the same."""
    source, ids = model.prepare(other)
    read = run.labels[:place]
    if run.source_ids:
        there = tuple(model.tokenizer.labels(source))
        return (run.source_labels, there) if stack == "encoder" else (read, read)
    return read, tuple(model.tokenizer.labels(ids))


VIEWS = (other_text, patching)

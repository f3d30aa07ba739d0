"""Activity of another text patched into a run: these views run the network, or its tokenizer."""

from __future__ import annotations

from transformer.analysis.ablation import next_token
from transformer.analysis.model_queries import ModelQueries
from transformer.analysis.patching import most_changed, patch_effect
from transformer.former_names import FORMER_NAMES
from transformer.inference.model import Model
from transformer.messages import invalid, mark
from transformer.runs.run import Run
from transformer.views.declaration import Answer, Picture, View
from transformer.views.parameters import Choice, Int, Item, Text
from transformer.views.patching.patching import TEACHING, text_before, variant
from transformer.views.patching.patching import patching as patching_figure


def _last(item: Item) -> int:
    """The last position that the network predicts with all of the text in sight."""
    return min(len(item.ids), item.config.output_max_len) if isinstance(item, Run) else 0


_POSITION = Int(name="position", use="selection", optional=True, least=1, most=_last)
_STACKS = {"encoder": "encoder", "decoder": "decoder"}
_KINDS = {"self": "self", "cross": "cross"}
_PARTS = {"resid_post": "stream", "z": "attention", "mlp_out": "feed-forward"}
_TARGETS = {
    "other": mark("what the other text leads to"),
    "here": mark("the token that stands here"),
}


def answer_other_text(models: ModelQueries, item: Run, *, position: int | None = None) -> Answer:
    """Another text to patch from: this one with a word exchanged ("variant", None if it has none),
    and one of ours to try ("teaching"). position: the chosen token, None = the first generated."""
    model = models.model(item.model)
    text = text_before(model, item, _first(item) if position is None else position)
    return {"variant": variant(model, text), "teaching": TEACHING.get(item.config.family)}


def answer_patching(
    models: ModelQueries,
    item: Run,
    *,
    other: str,
    position: int | None = None,
    stack: str = "decoder",
    part: str = "resid_post",
    kind: str = "self",
    target: str = "other",
) -> Answer:
    """The layer x position map of what a patch does to one token.

    position: the token; None = of a translation the one that the other source changes most, else
    the first generated one. target: whose ln p it is, "other" = what the other run predicts there,
    "here" = the token that stands there, after the end the likeliest of the intact network.
    """
    model = models.model(item.model)
    at = _position(models, item, other, position)
    here = target == "here" or at == len(item.ids)
    stands = models.ask(next_token, item, position=at).target if here else item.ids[at]
    wanted = stands if target == "here" else None
    found = models.ask(
        patch_effect,
        item,
        other=other,
        position=at,
        stack=stack,
        part=part,
        kind=kind,
        target=wanted,
    )
    read, there = _labels(model, item, other, at, stack)
    label = model.tokenizer.label(found.target)
    figure = patching_figure(found, read, there, label, part=part)
    return {
        "figure": figure,
        "position": at,
        "stands": model.tokenizer.label(stands),
        "target": label,
        "before": found.before,
        "other": found.other,
        "limit": figure.layout.meta["limit"],
        "lengths": [len(read), len(there)],
        "altered": bool(item.request.interventions),
    }


def _position(models: ModelQueries, run: Run, other: str, position: int | None) -> int:
    """The token to look at. Raises ValueError unless the network predicts it with all of the text
    in sight."""
    if run.trace_start:
        raise invalid(
            "this text is longer than the {max_len} tokens that {model} reads at "
            "once, so its places move; patch a shorter one",
            max_len=run.config.max_len,
            model=run.model,
        )
    if position is None:
        return models.ask(most_changed, run, other=other) if run.source_ids else _first(run)
    return position


def _first(run: Run) -> int:
    """The first generated token, or the last one of a text that was only read."""
    return min(run.n_prompt, len(run.ids) - 1)


def _labels(
    model: Model, run: Run, other: str, position: int, stack: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the stack reads here and in the other run; a translator's decoder reads the same."""
    source, ids = model.prepare(other)
    read = run.labels[:position]
    if run.source_ids:
        there = tuple(model.tokenizer.labels(source))
        return (run.source_labels, there) if stack == "encoder" else (read, read)
    return read, tuple(model.tokenizer.labels(ids))


VIEW = View(
    name="patching",
    tab=mark("What if?"),
    order=570,
    folded=True,
    title=mark("What if a part came from another text?"),
    help=mark(
        "Another text's activity put in at each layer and place, and what it does to one token."
    ),
    pictures=(
        Picture(
            name="other_text",
            answer=answer_other_text,
            network=True,
            parameters=(_POSITION,),
        ),
        Picture(
            name="patching",
            title=mark("Patch"),
            help=mark(
                "The change of one token's log-probability by a patch at each layer and place."
            ),
            figure=patching_figure,
            answer=answer_patching,
            network=True,
            parameters=(
                Text(name="other", title=mark("Another text"), use="request"),
                _POSITION,
                Choice(name="stack", options=_STACKS, default="decoder", use="request"),
                Choice(
                    name="part",
                    options=_PARTS,
                    former=FORMER_NAMES,
                    default="resid_post",
                    use="request",
                ),
                Choice(name="kind", options=_KINDS, default="self", use="request"),
                Choice(name="target", options=_TARGETS, default="other", use="request"),
            ),
        ),
    ),
)

"""The effect of another text's activations on one token, patched in at one layer and position at a
time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated, Any

import plotly.graph_objects as go

from transformer.analysis.ablation import next_token
from transformer.analysis.model_queries import ModelQueries
from transformer.analysis.patching import (
    PatchEffect,
    most_changed,
    patch_effect,
    text_before,
    variant,
)
from transformer.checks import InvalidRequest, check_whole
from transformer.inference.model import Model
from transformer.messages import mark, say
from transformer.runs.head_data import array
from transformer.runs.run import Run
from transformer.views.declaration import Answer, View, picture
from transformer.views.drawing import style
from transformer.views.parameters import Choice, Int, Text

CELL_PX, ROW_PX = 38, 34
MIN_WIDTH = 480
# The right margin has room for the whole colour bar: otherwise Plotly draws twice, at first
# without a position for the upper axis.
MARGIN = {"l": 76, "r": 128, "t": 170, "b": 100}
_STILL = {"automargin": False, "fixedrange": True}
PARTS = {
    "resid_post": "residual stream after the layer",
    "z": "what the heads read",
    "mlp_out": "what the feed-forward adds",
}


def patching(
    effect: PatchEffect,
    here: Sequence[str],
    other: Sequence[str],
    target: str,
    *,
    part: str = "resid_post",
) -> go.Figure:
    """The change of ln p(target) by a patch at each layer (down) and position (to the right).

    here, other: the tokens of this run and of the other run, whose activations replace those of the
    token below; where one text is shorter, its label is left out. target: the label of the token
    that is predicted. Orange: the patch makes it likelier. Colours reach as far to both sides as
    the largest change; `layout.meta` has row_labels, column_labels ("cat ← dog" where the tokens
    differ; plain text), limit, before and other (ln p in the two runs). `layout.width` is CELL_PX a
    position: a page scrolls a long text sideways.
    """
    n_layers, n_places = effect.change.shape
    limit = style.bound_of(array(effect.change), 1e-6)
    names = paired_labels(here, other)[:n_places]
    above = go.Scatter(x=[], y=[], xaxis="x2", showlegend=False, hoverinfo="skip")
    change, changes = array(effect.change), say("change of ln p")
    cells = style.signed_cells(
        change, "%{hovertext}<br>" + style.cell_hover(say("layer"), say("token"), changes),
        colorscale=style.EFFECTS,
        bound=limit, bar=changes, xgap=1, ygap=1,
        hovertext=[list(map(style.hover, names))] * n_layers,
    )  # fmt: skip
    token = style.hover(target)
    return style.figure(
        [cells, above],
        f"Change of ln p({token}) by a patch: {PARTS[part]}",
        f"ln p is {effect.before:.2f} here and {effect.other:.2f} in the other run",
        margin=MARGIN,
        dragmode=False,
        width=max(MIN_WIDTH, MARGIN["l"] + CELL_PX * n_places + MARGIN["r"]),
        height=MARGIN["t"] + ROW_PX * n_layers + MARGIN["b"],
        meta={
            "row_labels": [say("layer {layer}", layer=layer) for layer in range(n_layers)],
            "column_labels": names, "limit": limit,
            "before": effect.before, "other": effect.other,
        },
        xaxis=_tokens(say("token here"), here, other, n_places),
        xaxis2=_tokens(
            say("token of the other run"), other, here, n_places,
            overlaying="x", side="top", matches="x", showline=False,
        ),
        yaxis=style.axis(
            say("layer"), range=[n_layers - 0.5, -0.5], tickmode="linear", tick0=0,
            dtick=max(1, -(-n_layers // style.MAX_TICKS)), **_STILL,
        ),
    )  # fmt: skip


def paired_labels(here: Sequence[str], other: Sequence[str]) -> list[str]:
    """ "cat ← dog" for the tokens at each position; one of them where they are the same."""
    return [
        a if a == b else f"{a or '–'} ← {b or '–'}"
        for a, b in itertools.zip_longest(here, other, fillvalue="")
    ]


def _tokens(
    title: str, labels: Sequence[str], others: Sequence[str], n_places: int, **more: Any
) -> dict[str, Any]:
    """An axis of tokens, all of them labelled; those that differ from the other text's are bold."""
    texts = [style.label(text) for text in labels[:n_places]]
    strong = [
        f"<b>{text}</b>" if own != other else text
        for text, own, other in itertools.zip_longest(
            texts, labels[:n_places], others[: len(texts)], fillvalue=""
        )
    ]
    span = [-0.5, n_places - 0.5]
    return style.named_axis(title, strong, range=span, tickangle=-90, **_STILL, **more)


# A text for which one exchanged word changes what comes next, for each family of models.
TEACHING = {
    "decoder": "The boy saw a cat. He ran after the",
    "encoder-decoder": "The black cat is sleeping on the bed.",
}


_POSITION = Int(use="selection", least=1)
_STACK = Choice(options={"encoder": "encoder", "decoder": "decoder"}, use="request")
_KIND = Choice(options={"self": "self", "cross": "cross"}, use="request")
_PART = Choice(
    options={"resid_post": "stream", "z": "attention", "mlp_out": "feed-forward"}, use="request"
)
_TARGET = Choice(
    options={
        "other": "what the other text leads to",
        "here": "the token that stands here",
    },
    use="request",
)


def answer_other_text(
    models: ModelQueries, item: Run, *, position: Annotated[int | None, _POSITION] = None
) -> Answer:
    """Texts to patch from: this one with a word replaced ("variant", None if it has none), and an
    example ("teaching"). position: the chosen token, None = the first generated."""
    model = models.model(item.model)
    text = text_before(model, item, _first(item) if position is None else position)
    return {"variant": variant(model, text), "teaching": TEACHING.get(item.config.family)}


def answer_patching(
    models: ModelQueries,
    item: Run,
    *,
    other: Annotated[str, Text(title="Another text", use="request")],
    position: Annotated[int | None, _POSITION] = None,
    stack: Annotated[str, _STACK] = "decoder",
    part: Annotated[str, _PART] = "resid_post",
    kind: Annotated[str, _KIND] = "self",
    target: Annotated[str, _TARGET] = "other",
) -> Answer:
    """The layer x position map of what a patch does to one token.

    position: the token; None = of a translation the one that the other source changes most, else
    the first generated one. target: whose ln p it is, "other" = what the other run predicts there,
    "here" = the token at that position, after the end the likeliest of the intact network.
    """
    model = models.model(item.model)
    at = _position(models, item, other, position)
    here = target == "here" or at == len(item.ids)
    token = models.ask(next_token, item, position=at).target if here else item.ids[at]
    wanted = token if target == "here" else None
    effect = models.ask(
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
    assert effect.target is not None
    label = model.tokenizer.label(effect.target)
    figure = patching(effect, read, there, label, part=part)
    return {
        "figure": figure,
        "position": at,
        "token": model.tokenizer.label(token),
        "target": label,
        "before": effect.before,
        "other": effect.other,
        "limit": figure.layout.meta["limit"],
        "lengths": [len(read), len(there)],
        "altered": bool(item.request.interventions),
    }


def _position(models: ModelQueries, run: Run, other: str, position: int | None) -> int:
    """The token to look at. Raises ValueError unless the network predicts it with all of the text
    in sight."""
    if run.trace_start:
        raise InvalidRequest(
            "too_long",
            "this text is longer than the {max_len} tokens that {model} reads at "
            "once, so its places move; patch a shorter one",
            max_len=run.config.max_len,
            model=run.model,
        )
    if position is None:
        return models.ask(most_changed, run, other=other) if run.source_ids else _first(run)
    return check_whole("position", position, 1, min(len(run.ids), run.config.output_max_len))


def _first(run: Run) -> int:
    """The first generated token, or the last one of a text that was only read."""
    return min(run.n_prompt, len(run.ids) - 1)


def _labels(
    model: Model, run: Run, other: str, position: int, stack: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the stack reads here and in the other run; a translator's decoder reads the same."""
    source, ids, _ = model.in_languages(run.request).prepare(other)
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
    help=("Another text's activity put in at each layer and place, and what it does to one token."),
    pictures=(
        picture(answer_other_text),
        picture(
            answer_patching,
            figure=patching,
            title="Patch",
            help="The change of one token's log-probability by a patch at each layer and place.",
        ),
    ),
)

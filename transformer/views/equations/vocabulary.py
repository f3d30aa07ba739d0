"""What the topic of sampling shows of each step: symbols, and numbers of some tokens."""

from __future__ import annotations

from typing import Any

from transformer.messages import say
from transformer.runs.steps import GenerationStep
from transformer.views.equations.mathml import Node, mi, sub
from transformer.views.equations.shown import Look, number, tensor, token


def logit() -> Node:
    """The symbol of a token's logit."""
    return sub(mi("z"), mi("i"), "logits")


def chance() -> Node:
    """The symbol of a token's probability."""
    return sub(mi("p"), mi("i"), "probabilities")


def label_of(look: Look, token_id: int) -> str:
    """A candidate as people read it."""
    return token(look.run.candidate_labels.get(token_id, str(token_id)))


def cells_of(look: Look, ids: list[int], values: Any) -> list[dict[str, Any]]:
    """A number of each of these tokens of the vocabulary."""
    names = look.run.candidate_labels
    return [
        {
            "label": str(at), "token": names.get(at, str(at)),
            "value": value if isinstance(value, str) else number(value),
        }
        for at, value in zip(ids, values, strict=True)
    ]  # fmt: skip


def of_vocabulary(
    look: Look, part: str, symbol: Node, name: str, ids: list[int], values: Any, size: Any
) -> dict[str, Any]:
    """Numbers of the likeliest tokens, out of one for each token there is."""
    cells = cells_of(look, ids, values)
    return tensor(part, symbol, name, [("B", 1), size], cells, more=size[1] - len(cells))


def taken_of(look: Look, step: GenerationStep) -> dict[str, Any]:
    """The token of a step."""
    chosen = step.chosen
    return tensor(
        "drawn", mi("i"), say("the token that was taken"), [],
        cells=cells_of(look, [chosen.id], [chosen.sampling_probability]),
    )  # fmt: skip

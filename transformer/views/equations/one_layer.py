"""What the topics of a layer share: its numbers for one token, and rows of its tensors."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from transformer.analysis.layer_at_place import LayerAtPlace, layer_at_place
from transformer.views.equations.mathml import Node
from transformer.views.equations.shown import Look, altered, row_of, tensor


def layer_of(look: Look) -> LayerAtPlace:
    """The layer of the chosen head, at the chosen token."""
    site = look.site
    return look.models.ask(
        layer_at_place, look.run, stack=site.stack, layer=site.layer, place=look.place
    )


def changed(found: LayerAtPlace) -> list[str]:
    """A sentence where the recorded layer ends elsewhere."""
    return [] if found.agrees else [altered()]


def stream_row(look: Look, part: str, symbol: Node, name: str, values: Tensor) -> dict[str, Any]:
    """The chosen token's row of a (B, T, C) tensor."""
    axes = [("B", 1), ("T", len(look.run.queries(look.site.stack))), ("C", look.config.d_model)]
    return tensor(part, symbol, name, axes, **row_of(values))

"""Names of the attentions in a network, and the list of those that a network has."""

from __future__ import annotations

from typing import NamedTuple

from transformer.checks import shortened
from transformer.model.config import ModelConfig

STACKS = ("encoder", "decoder")
KINDS = ("self", "cross")


class Site(NamedTuple):
    """A place where attention happens, e.g. Site("decoder", 2, "cross"); layers count from 0."""

    stack: str
    layer: int
    kind: str

    def __str__(self) -> str:
        return f"{self.stack}.{self.layer}.{self.kind}"

    @classmethod
    def parse(cls, text: str) -> Site:
        """The inverse of str(). Raises ValueError for other text."""
        parts = text.split(".")
        if (
            len(parts) != 3
            or parts[0] not in STACKS
            or not parts[1].isascii()
            or not parts[1].isdigit()
            or parts[2] not in KINDS
        ):
            raise ValueError(
                f"a site is written STACK.LAYER.KIND with STACK one of {list(STACKS)} "
                f"and KIND one of {list(KINDS)}, e.g. 'decoder.0.self'; got "
                f"{shortened(text)}"
            )
        return cls(parts[0], int(parts[1]), parts[2])


# How callers may write one: a layer's number, with a stack or of the last one, is its
# self-attention.
SiteLike = Site | tuple[str, int, str] | tuple[str, int] | str | int

ATTENTIONS_OF_FAMILY = {
    "decoder": (("decoder", "self"),),
    "encoder": (("encoder", "self"),),
    "encoder-decoder": (("encoder", "self"), ("decoder", "self"), ("decoder", "cross")),
}


def sites_of(config: ModelConfig) -> list[Site]:
    """Every attention of the network, in the order of the data."""
    kinds = ATTENTIONS_OF_FAMILY[config.family]
    return [
        Site(stack, layer, kind)
        for stack, kind in kinds
        for layer in range(config.n_layers_of(stack))
    ]

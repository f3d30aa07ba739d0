"""Other people's weights by their names, each taken once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from transformer.messages import invalid


class Stored:
    """Weights under their own names, which are looked up when they are taken, so that of a file one
    tensor is read after the other. prefix: what may stand before all of them, or be left out.

    ignored: patterns of names that are no part of the network that we have. called: what a name is
    called today.
    """

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        prefix: str = "",
        ignored: Sequence[str] = (),
        called: Callable[[str], str] = str,
    ) -> None:
        dropped = re.compile("|".join(ignored) or "(?!)")
        names = {called(name).removeprefix(prefix): name for name in weights}
        self._weights = weights
        self._left = {name: own for name, own in names.items() if not dropped.fullmatch(name)}

    def take(self, name: str) -> Tensor:
        """The weight of this name. Raises ValueError where there is none."""
        if name not in self._left:
            raise invalid("the weight {name} is missing; it is needed", name=repr(name))
        return self._weights[self._left.pop(name)]

    def linear(self, ours: str, theirs: str, *, bias: bool = True) -> dict[str, Tensor]:
        """A linear map, or a norm, under our name: its weight, and its bias if it has one."""
        found = {f"{ours}.weight": self.take(f"{theirs}.weight")}
        return found | ({f"{ours}.bias": self.take(f"{theirs}.bias")} if bias else {})

    def finish(self) -> None:
        """Raise ValueError where something is left that nobody took."""
        if self._left:
            raise invalid(
                "it has a weight {name} that this network has no place for",
                name=repr(min(self._left)),
            )

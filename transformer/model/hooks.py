"""The one seam between a forward pass and the outside.

A pass meets its hooks at the named points below. A hook is shown what is there and returns what is
to stand in its place: itself to record (`Trace`), something else to alter
(`transformer/interventions/hooks.py`). Hooks are passed with each call, so that any number of
threads can share one network, each with its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from transformer.checks import shortened
from transformer.model.cache import KeyValueCache
from transformer.model.positions import RotaryAngles
from transformer.model.sites import Site

# In the order of the data, by the names of TransformerLens. Behind the semicolon: the arguments
# that a hook gets there by name. G: heads of keys and values, H where they are not shared.
POINTS: dict[str, str] = {
    "position_ids": "(T,) or (B, T) int64, the positions that the encoding is asked for",
    "embed": "(B, T, C), a stack's token embeddings, scaled and with their types' vectors, if "
    "the model does so",
    "pos_embed": "(T, C) or (B, T, C), what the encoding adds; embed",
    "rotation": "RotaryAngles by which queries and keys are rotated, if they are",
    "resid_pre": "(B, T, C), the residual stream that enters a layer",
    "norm": "(B, T, C), what a norm of a layer makes of what it reads; stream",
    "q": "(B, H, Tq, D), queries, normalised and rotated where the network does so",
    "k": "(B, G, Tk, D), keys, likewise",
    "v": "(B, G, Tk, D), values",
    "padding_mask": "bool or None, what hides keys that are not text, of an attention",
    "causal_mask": "(Tq, Tk) bool or None, what hides the future",
    "scores": "(B, H, Tq, Tk), q kT / sqrt(D), before the mask",
    "mask": "bool, broadcastable to the scores, or None, both masks in one; scores",
    "pattern": "(B, H, Tq, Tk), after the softmax; scores, mask, q, k, v",
    "z": "(B, H, Tq, D), pattern v, before the output projection; padding_mask",
    "attn_out": "(B, T, C), what an attention adds",
    "skip": "(B, T, C), what a sub-layer's output is added to",
    "resid_mid": "(B, T, C), the residual stream that a feed-forward reads, but not where it "
    "stands beside the attention",
    "mlp_out": "(B, T, C), what a feed-forward adds",
    "resid_post": "(B, T, C), the residual stream that leaves a layer",
    "final_norm": "(B, T, C), what leaves a pre-norm stack; stream",
}


# All names that hooks are given by keyword.
CONTEXT = {"embed", "stream", "q", "k", "v", "mask", "scores", "padding_mask"}


class Point(NamedTuple):
    """A place in one pass. name: one of POINTS; kind: "self" or "cross" within an attention."""

    name: str
    stack: str
    layer: int = 0
    kind: str = ""


class Hook(Protocol):
    """What a pass shows its numbers to.

    One that has an attribute `fused` which is true looks at nothing between v and attn_out: if all
    do so, PyTorch's fused kernel computes that, and does not show it.
    """

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """What goes on in place of `value`; None, or `value` itself, where nothing is to change."""


def unchanged(point: Point, value: Any, **context: Any) -> Any:
    """A hook that does nothing: with it a pass takes the steps, and rounds, as with any other."""
    return value


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ForwardContext:
    """What a stack's layers share in one pass. Made for the call and forgotten with it.

    mask: bool, True = may attend, which of the stack's own keys are text, broadcastable to
    (B, H, T, Tk); causal hides the future too. memory: (B, Ts, C), what cross-attention reads, and
    memory_mask the same for its keys. cache: what is known of tokens that were read before.
    rotation: how the stack's own queries and keys are rotated.
    """

    mask: Tensor | None = None
    causal: bool = False
    memory: Tensor | None = None
    memory_mask: Tensor | None = None
    cache: KeyValueCache | None = None
    rotation: RotaryAngles | None = None
    hooks: Sequence[Hook] = ()

    @property
    def step_by_step(self) -> bool:
        """Whether a hook looks at scores, masks or the pattern."""
        return any(not getattr(hook, "fused", False) for hook in self.hooks)

    def masks_of(self, site: Site) -> tuple[Tensor | None, bool]:
        """What hides keys of an attention from all its queries, and whether it hides the future."""
        return (self.memory_mask, False) if site.kind == "cross" else (self.mask, self.causal)

    def at(self, name: str, where: tuple[Any, ...], value: Any, **context: Any) -> Any:
        """The value at this point after all hooks, applied in order.

        where: (stack,), (stack, layer) or (stack, layer, kind).
        """
        for hook in self.hooks:
            found = hook(Point(name, *where), value, **context)
            value = value if found is None else found
        return value


PLAIN = ForwardContext()


def called(hooks: Any) -> tuple[Hook, ...]:
    """Hooks as a pass calls them: each is given of the context what it takes by name.

    Raises ValueError for anything but a list of functions of a point and a value.
    """
    if not isinstance(hooks, Sequence):
        raise ValueError(f"hooks must be a list of functions; got {type(hooks).__name__}")
    return tuple(map(_called, hooks))


def _called(hook: Any) -> Hook:
    if type(hook).__module__.startswith("transformer."):  # takes all, and is asked often
        return hook
    try:
        taken = [*inspect.signature(hook).parameters.values()]
    except (TypeError, ValueError):
        taken = []
    kinds = [one.kind for one in taken]
    places = [one.name for one in taken if one.kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if len(places) < 2 and inspect.Parameter.VAR_POSITIONAL not in kinds:
        raise ValueError(
            "a hook is a function of a point and a value, hook(point, value, **context); got "
            f"{shortened(hook)}"
        )
    first = {*places[:2]}  # these are given by their place, whatever they are called
    told = CONTEXT - first
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        told &= {one.name for one in taken}
    elif told == CONTEXT:
        return hook

    def narrowed(point: Point, value: Any, **context: Any) -> Any:
        return hook(point, value, **{name: context[name] for name in told & context.keys()})

    narrowed.fused = getattr(hook, "fused", False)  # type: ignore[attr-defined]
    return narrowed

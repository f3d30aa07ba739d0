"""Hook points: the only interface between a forward pass and code outside of it.

A forward pass calls its hooks at the named points below. A hook receives the value there and
returns the value to use: the same one to record it (`Trace`), another to alter it
(`transformer/interventions/hooks.py`). Hooks are passed with each call, so that any number of
threads can share one network, each with its hooks.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from transformer.checks import shortened
from transformer.model.cache import KeyValueCache
from transformer.model.positions import LayerType
from transformer.model.rotary import RotaryAngles
from transformer.model.sites import Site

# In the order of the data, with TransformerLens' names. After the semicolon: the arguments that a
# hook gets by name. G: heads of keys and values, H where they are not shared.
POINTS: dict[str, str] = {
    "position_ids": "(T,) or (B, T) int64, the positions to encode",
    "embed": "(B, T, C), a stack's token embeddings, scaled and with their types' vectors, if "
    "the model does so",
    "pos_embed": "(T, C) or (B, T, C), what the encoding adds; embed",
    "rotation": "RotaryAngles by which queries and keys are rotated, if they are",
    "resid_pre": "(B, T, C), the residual stream that enters a layer",
    "norm": "(B, T, C), the output of a norm in a layer; stream",
    "q": "(B, H, Tq, D), queries, after norm and rotation if there are any",
    "k": "(B, G, Tk, D), keys, likewise",
    "v": "(B, G, Tk, D), values",
    "padding_mask": "bool or None, hides keys that are not text",
    "position_mask": "(Tq, Tk) bool or None, hides a decoder's future and what is outside a window",
    "scores": "(B, H, Tq, Tk), q kT / sqrt(D), plus the relative bias and capped if the model does "
    "so, before the mask",
    "mask": "bool, broadcastable to the scores, or None, both masks in one; scores",
    "pattern": "(B, H, Tq, Tk), after the softmax; scores, mask, q, k, v",
    "z": "(B, H, Tq, D), pattern v, before the output projection; padding_mask",
    "attn_out": "(B, T, C), what an attention adds",
    "skip": "(B, T, C), what a sub-layer's output is added to",
    "resid_mid": "(B, T, C), the residual stream between attention and feed-forward, unless they "
    "are parallel",
    "mlp_out": "(B, T, C), what a feed-forward adds",
    "resid_post": "(B, T, C), the residual stream that leaves a layer",
    "final_norm": "(B, T, C), the output of a pre-norm stack; stream",
}


# The names of all keyword arguments of hooks.
CONTEXT = {"embed", "stream", "q", "k", "v", "mask", "scores", "padding_mask"}


class Point(NamedTuple):
    """A place in one pass. name: one of POINTS; kind: "self" or "cross" within an attention."""

    name: str
    stack: str
    layer: int = 0
    kind: str = ""


class Hook(Protocol):
    """A function that a forward pass calls at each point.

    A hook with a true attribute `fused` skips the points between v and attn_out: if all hooks do,
    PyTorch's fused kernel computes them.
    """

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """The value to use instead; None or `value` itself to change nothing."""


def unchanged(point: Point, value: Any, **context: Any) -> Any:
    """A hook that changes nothing, for a pass with the same steps and rounding as with others."""
    return value


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ForwardContext:
    """The arguments that a stack's layers share in one call.

    mask: bool, True = may attend, which self-attention keys are text, broadcastable to
    (B, H, T, Tk); causal also hides the future, windowed what is outside the window of a layer that
    has one. memory: (B, Ts, C), the encoder's output, and memory_mask its mask. cache: keys and
    values of tokens that were read before. rotation: the angles of the self-attention's queries and
    keys; sliding_rotation: in layers with a window, if they differ. positions: of its queries and
    of its keys, (T,) or (B, T) int64 each. bias: (H, T, T) or (B, H, T, T), added to its scores in
    all layers alike.
    """

    mask: Tensor | None = None
    causal: bool = False
    windowed: bool = True
    memory: Tensor | None = None
    memory_mask: Tensor | None = None
    cache: KeyValueCache | None = None
    rotation: RotaryAngles | None = None
    sliding_rotation: RotaryAngles | None = None
    positions: tuple[Tensor, ...] = ()
    bias: Tensor | None = None
    hooks: Sequence[Hook] = ()

    @property
    def step_by_step(self) -> bool:
        """Whether a hook looks at scores, masks or the pattern."""
        return any(not getattr(hook, "fused", False) for hook in self.hooks)

    def masks_of(self, site: Site) -> tuple[Tensor | None, bool]:
        """The padding mask of an attention, and whether it is causal."""
        return (self.memory_mask, False) if site.kind == "cross" else (self.mask, self.causal)

    def angles_of(self, site: Site, kind: LayerType) -> RotaryAngles | None:
        """The angles by which an attention rotates its queries and keys; None if it does not."""
        if site.kind == "cross" or not kind.rotates:
            return None
        return (self.sliding_rotation if kind.slides else None) or self.rotation

    def at(self, name: str, where: tuple[Any, ...], value: Any, **context: Any) -> Any:
        """The value at this point after all hooks, applied in order.

        where: (stack,), (stack, layer) or (stack, layer, kind).
        """
        for hook in self.hooks:
            result = hook(Point(name, *where), value, **context)
            value = value if result is None else result
        return value


PLAIN = ForwardContext()


def called(hooks: Any) -> tuple[Hook, ...]:
    """Hooks as a pass calls them: each gets only the context arguments that it takes.

    A hook may be a pair of a place and a function, which is then called there alone. Places are
    names of POINTS, "mlp_out", or of one stack, layer and kind: "decoder.3.mlp_out",
    "decoder.3.self.z", "decoder.embed".
    Raises ValueError for an unknown place, and for anything but a list of such functions or pairs.
    """
    if not isinstance(hooks, Sequence) or isinstance(hooks, str):
        raise ValueError(f"hooks must be a list of functions; got {type(hooks).__name__}")
    return tuple(
        _at_place(*hook) if isinstance(hook, tuple) and len(hook) == 2 else _called(hook)
        for hook in hooks
    )


def _at_place(place: Any, function: Any) -> Hook:
    """A hook that is called at one place alone."""
    *where, name = str(place).split(".")
    if name not in POINTS:
        raise ValueError(
            f"a hook's place must end with one of {list(POINTS)}; got {shortened(place)}"
        )
    hook = _called(function)

    def placed(point: Point, value: Any, **context: Any) -> Any:
        here = [part for part in (point.stack, str(point.layer), point.kind) if part]
        is_here = point.name == name and where == here[: len(where)]
        return hook(point, value, **context) if is_here else None

    placed.fused = getattr(function, "fused", False)  # type: ignore[attr-defined]
    return placed


def _called(hook: Any) -> Hook:
    if type(hook).__module__.startswith("transformer."):  # takes all arguments, and is called often
        return hook
    try:
        parameters = [*inspect.signature(hook).parameters.values()]
    except (TypeError, ValueError):
        parameters = []
    kinds = [parameter.kind for parameter in parameters]
    positional = [p.name for p in parameters if p.kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if len(positional) < 2 and inspect.Parameter.VAR_POSITIONAL not in kinds:
        raise ValueError(
            "a hook is a function of a point and a value, hook(point, value, **context); got "
            f"{shortened(hook)}"
        )
    names = CONTEXT - {*positional[:2]}  # point and value are passed by position
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        names &= {parameter.name for parameter in parameters}
    elif names == CONTEXT:
        return hook

    def narrowed(point: Point, value: Any, **context: Any) -> Any:
        return hook(point, value, **{name: context[name] for name in names & context.keys()})

    narrowed.fused = getattr(hook, "fused", False)  # type: ignore[attr-defined]
    return narrowed

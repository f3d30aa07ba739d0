"""Hook points: the only interface between a forward pass and code outside of it.

A forward pass calls its hooks at the named points below. A hook receives the value there and
returns the value to use: the same one to record it (`Trace`), another to alter it
(`transformer/interventions/hooks.py`). Hooks are passed with each call, so that any number of
threads can share one network, each with its hooks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

import torch
from torch import Tensor

from transformer.checks import shortened
from transformer.model.cache import KeyValueCache
from transformer.model.config import ModelConfig
from transformer.model.positions import POSITIONS, LayerType
from transformer.model.primitives import PLACEMENTS
from transformer.model.rotary import RotaryAngles
from transformer.model.score_bias import ByDistance
from transformer.model.sites import Site, sites_of

# In the order of the data, with TransformerLens' names. After the semicolon: the arguments that a
# hook gets by name, besides is_text: (B, T) bool, which of the tokens of a pass are text and not
# padding, or None where all are. G: heads of keys and values, H where they are not shared. F: d_ff.
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
    "mask": "bool, broadcastable to the scores, or None, both masks in one; scores, padding_mask",
    "pattern": "(B, H, Tq, Tk), after the softmax; scores, mask, padding_mask, q, k, v",
    "z": "(B, H, Tq, D), pattern v, before the output projection",
    "attn_out": "(B, T, C), what an attention adds",
    "skip": "(B, T, C), what a sub-layer's output is added to",
    "resid_mid": "(B, T, C), the residual stream between attention and feed-forward, unless they "
    "are parallel",
    "mlp_post": "(B, T, F), a feed-forward's neurons, after the activation and the gate, if any",
    "mlp_out": "(B, T, C), what a feed-forward adds",
    "resid_post": "(B, T, C), the residual stream that leaves a layer",
    "final_norm": "(B, T, C), the output of a pre-norm stack; stream",
}


# The names of all keyword arguments of hooks.
CONTEXT = {"embed", "stream", "q", "k", "v", "mask", "scores", "padding_mask", "is_text"}
# The points of each stack, of each of its layers, and of each attention.
OF_STACK = ("position_ids", "embed", "pos_embed", "rotation", "final_norm")
OF_LAYER = ("resid_pre", "norm", "skip", "resid_mid", "mlp_post", "mlp_out", "resid_post")
OF_ATTENTION = tuple(name for name in POINTS if name not in OF_STACK + OF_LAYER)
STEPS = {"padding_mask", "position_mask", "scores", "mask", "pattern", "z"}  # no fused kernel


class Point(NamedTuple):
    """A place in one pass. name: one of POINTS; kind: "self" or "cross" within an attention."""

    name: str
    stack: str
    layer: int = 0
    kind: str = ""


class Hook(Protocol):
    """A function that a forward pass calls at each point.

    A hook with a true attribute `fused` skips the points between v and attn_out: if all hooks do,
    PyTorch's fused kernel computes them. One with an attribute `point_names` is called at the
    points of these names alone.
    """

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """The value to use instead; None or `value` itself to change nothing."""


# A hook as callers may write it, see `called`.
HookLike = Hook | Callable[..., Any] | tuple[str, Callable[..., Any]]


def unchanged(point: Point, value: Any, **context: Any) -> Any:
    """A hook that changes nothing, for a pass with the same steps and rounding as with others."""
    return value


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ForwardContext:
    """The arguments that a stack's layers share in one call.

    mask: bool, True = may attend, which self-attention keys are text, broadcastable to
    (B, H, T, Tk); causal also hides the future, windowed what is outside the window of a layer that
    has one. memory: (B, Ts, C), the encoder's output, and memory_mask its mask. is_text: (B, T)
    bool, which of the tokens read now are text; None: all. cache: keys and values of tokens that
    were read before. rotation: the angles of the self-attention's queries and keys;
    sliding_rotation: in layers with a window, if they differ. positions: of its queries and of its
    keys, (T,) or (B, T) int64 each. bias: (H, T, T) or (B, H, T, T), added to its scores in all
    layers alike. distances: vectors that its queries and keys are matched to.
    """

    mask: Tensor | None = None
    causal: bool = False
    windowed: bool = True
    memory: Tensor | None = None
    memory_mask: Tensor | None = None
    is_text: Tensor | None = None
    cache: KeyValueCache | None = None
    rotation: RotaryAngles | None = None
    sliding_rotation: RotaryAngles | None = None
    positions: tuple[Tensor, ...] = ()
    bias: Tensor | None = None
    distances: ByDistance | None = None
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
        hooks = [hook for hook in self.hooks if name in getattr(hook, "point_names", POINTS)]
        if not hooks:
            return value
        point = Point(name, *where)
        for hook in hooks:
            result = hook(point, value, is_text=self.is_text, **context)
            value = value if result is None else result
        return value


PLAIN = ForwardContext()


def points_of(config: ModelConfig) -> set[Point]:
    """Every point that a pass of this network has."""
    absent = {"rotation"} if not POSITIONS[config.positions].is_rotary else set()
    absent |= {"resid_mid"} if config.parallel else set()
    absent |= {"final_norm"} if PLACEMENTS[config.norm].of_sum else set()
    points = set()
    for stack, layer, kind in sites_of(config):
        points |= {Point(name, stack) for name in OF_STACK}
        points |= {Point(name, stack, layer) for name in OF_LAYER}
        points |= {Point(name, stack, layer, kind) for name in OF_ATTENTION}
    return {point for point in points if point.name not in absent}


def called(hooks: Any, points: Callable[[], Collection[Point]]) -> tuple[Hook, ...]:
    """Hooks as a pass calls them: each gets only the context arguments that it takes.

    A hook may be a pair of a place and a function, which is then called there alone. Places are
    names of POINTS, "mlp_out", or of one stack, layer and kind: "decoder.3.mlp_out",
    "decoder.3.self.z", "decoder.embed". points: gives those that the pass has.
    Raises ValueError for a place without points, and for anything but a list of such functions or
    pairs.
    """
    if not isinstance(hooks, Sequence) or isinstance(hooks, str):
        raise ValueError(f"hooks must be a list of functions; got {type(hooks).__name__}")
    return tuple(
        OwnHook(_function(hook[1]), _points_at(hook[0], points()))
        if isinstance(hook, tuple) and len(hook) == 2
        else _called(hook)
        for hook in hooks
    )


class OwnHook:
    """A caller's hook, with checks of what it returns. points: those at which it is called; None:
    all.

    has_changed: whether it has changed a value, in place or by returning another.
    """

    def __init__(self, function: Callable[..., Any], points: Collection[Point] | None) -> None:
        self.function, self.points = function, points
        self.has_changed = False
        needs_steps = any(point.name in STEPS for point in points or ())
        self.fused = getattr(function, "fused", False) and not needs_steps
        parameters = _parameters(function)
        positional = [p.name for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]
        self._names = CONTEXT - {*positional[:2]}  # point and value are passed by position
        if not any(p.kind == p.VAR_KEYWORD for p in parameters):
            self._names &= {p.name for p in parameters}

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """See Hook."""
        if self.points is not None and point not in self.points:
            return None
        if point.name in _RECORDED:  # a change in place must not reach what was recorded before
            value = value.clone()
        before = _version(value)
        named = {name: context[name] for name in self._names & context.keys()}
        result = self.function(point, value, **named)
        if result is not None and result is not value:
            _check_result(point, value, result, context)
            self.has_changed = True
            return result
        self.has_changed |= _version(value) != before
        return value


_RECORDED = ("resid_pre", "skip")  # the same tensors as an earlier point's


def _version(value: Any) -> int | None:
    """PyTorch's count of changes in place, where it counts them."""
    return value._version if isinstance(value, Tensor) and not value.is_inference() else None


def _check_result(point: Point, value: Any, result: Any, context: Mapping[str, Any]) -> None:
    """Raise ValueError unless a hook's result can stand for the value at this point."""
    place = ".".join(str(part) for part in (*point[1:], point.name) if part != "")
    if isinstance(value, RotaryAngles):
        if not isinstance(result, RotaryAngles):
            raise ValueError(
                f"a hook at {place} must return RotaryAngles; got {type(result).__name__}"
            )
        return
    if not isinstance(result, Tensor):
        raise ValueError(
            f"a hook at {place} must return a tensor, or None to change nothing; got "
            f"{type(result).__name__}"
        )
    like = value
    if point.name == "mask":
        like = context["scores"]
    elif point.name == "pos_embed":
        like = context["embed"]
    is_mask = point.name in ("mask", "padding_mask", "position_mask")
    dtype = torch.bool if is_mask else value.dtype
    fits = like is None or result.shape == like.shape
    if not fits and point.name in _BROADCAST:
        joined = _joined(result.shape, like.shape)
        fits = joined == like.shape if point.name in ("mask", "pos_embed") else joined is not None
    if not fits or result.dtype != dtype:
        shape = "" if like is None else f" of shape {tuple(like.shape)}"
        raise ValueError(
            f"a hook at {place} must return {dtype}{shape}; got {result.dtype} of shape "
            f"{tuple(result.shape)}"
        )


_BROADCAST = ("mask", "padding_mask", "position_mask", "pos_embed", "position_ids")


def _joined(shape: Sequence[int], other: Sequence[int]) -> tuple[int, ...] | None:
    """The shape of both broadcast; None if they do not fit."""
    try:
        return tuple(torch.broadcast_shapes(tuple(shape), tuple(other)))
    except RuntimeError:
        return None


def _points_at(place: Any, points: Collection[Point]) -> frozenset[Point]:
    """The points at a place. Raises ValueError that lists those there are if it has none."""
    *where, name = str(place).split(".")
    if name not in POINTS:
        raise ValueError(
            f"a hook's place must end with one of {list(POINTS)}; got {shortened(place)}"
        )
    here = frozenset(
        point
        for point in points
        if point.name == name and where == [point.stack, str(point.layer), point.kind][: len(where)]
    )
    if not here:
        same = sorted(point for point in points if point.name == name)
        names = [".".join(str(part) for part in (*p[1:], p.name) if part != "") for p in same]
        there = f"from {names[0]} to {names[-1]}" if names else f"no {name} at all"
        raise ValueError(f"this pass has no place {shortened(place)} for a hook; it has {there}")
    return here


def _called(hook: Any) -> Hook:
    if getattr(hook, "__module__", None) and hook.__module__.startswith("transformer."):
        return cast(Hook, hook)  # takes all arguments, and is called often
    return OwnHook(_function(hook), None)


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return []


def _function(hook: Any) -> Callable[..., Any]:
    """A hook that takes a point and a value; else raise ValueError."""
    kinds = [parameter.kind for parameter in _parameters(hook)]
    n_positional = sum(kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD for kind in kinds)
    if n_positional < 2 and inspect.Parameter.VAR_POSITIONAL not in kinds:
        raise ValueError(
            "a hook is a function of a point and a value, hook(point, value, **context); got "
            f"{shortened(hook)}"
        )
    return cast(Callable[..., Any], hook)

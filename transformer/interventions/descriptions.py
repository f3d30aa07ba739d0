"""Descriptions of interventions in a network for one run, as plain data that travels as JSON.

`hooks.py` turns them into hooks; `breaks.py` has the switches that each remove one idea of the
architecture. Layers, heads and positions count from 0.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.checks import check_choice, check_whole, shortened
from transformer.interventions.breaks import BREAKS, breaks_of
from transformer.interventions.checks import (
    Indices,
    cells_of,
    check_heads,
    check_names,
    check_site,
    indices_of,
    listed,
)
from transformer.messages import mark, say, say_list, say_n
from transformer.model.config import ModelConfig
from transformer.model.sites import Site, sites_of
from transformer.network_words import attention_name, without_mask

ABLATED_BY = ("zero", "mean")
MASKS = ("causal", "padding")
PARTS = ("resid_post", "z", "mlp_out")
ABLATED = (
    "z",
    "mlp_out",
    "layer",
)  # "layer": attentions and feed-forward, so that nothing is added


@dataclass(frozen=True, slots=True)
class Ablate:
    """Heads of one attention switched off: their z is 0, or its mean over the text. Or another
    part: "mlp_out", the feed-forward's output, or a whole "layer".

    heads None: all. positions None: all, the generated ones too. by="mean": in a decoder the mean
    over the positions up to the query's, so that nothing of the future leaks; in an encoder over
    the whole text.
    """

    type: ClassVar[str] = "ablate"
    stack: str
    layer: int
    heads: Indices | None = None
    kind: str = "self"
    by: str = "zero"
    part: str = "z"
    positions: Indices | None = None

    def __post_init__(self) -> None:
        check_names(self.stack, self.layer, self.kind)
        object.__setattr__(self, "layer", int(self.layer))
        check_choice("part", self.part, ABLATED)
        for name in ("heads", "positions"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, indices_of(name, getattr(self, name)))
        if self.heads is not None and self.part != "z":
            raise ValueError(f"heads are for part='z'; got part={shortened(self.part)}")
        check_choice("by", self.by, ABLATED_BY)

    @property
    def site(self) -> Site:
        """The attention."""
        return Site(self.stack, self.layer, self.kind)

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the network has the site and the heads."""
        check_site(self.site, config)
        check_heads(self.heads or (), config)

    def __str__(self) -> str:
        if self.part == "z" and self.heads is not None and self.positions is None:
            return _ablation_words(self.site, self.heads, self.by)
        if self.part == "mlp_out" and self.by == "zero" and self.positions is None:
            return say(_FEED_FORWARDS_OFF[self.stack], layer=self.layer)
        heads = "" if self.heads is None else f" of heads {_listed(self.heads)}"
        where = "" if self.positions is None else f" at {_listed(self.positions)}"
        return f"{self.site}: {self.part}{heads} ablated by {self.by}{where}"


@dataclass(frozen=True, slots=True)
class Add:
    """A vector added to a part of one layer, by default to the stream after it: steering.

    vector: (C,) numbers. positions None: all, the generated ones too. part: "resid_post" or
    "mlp_out".
    """

    type: ClassVar[str] = "add"
    stack: str
    layer: int
    vector: Sequence[float] | Tensor | NDArray[Any] = dataclasses.field(repr=False)
    positions: Indices | None = None
    part: str = "resid_post"

    def __post_init__(self) -> None:
        check_names(self.stack, self.layer, "self")
        object.__setattr__(self, "layer", int(self.layer))
        check_choice("part", self.part, ("resid_post", "mlp_out"))
        if self.positions is not None:
            object.__setattr__(self, "positions", indices_of("positions", self.positions))
        object.__setattr__(self, "vector", _numbers("vector", self.vector))

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the network has the layer and the vector has its size."""
        check_site(Site(self.stack, self.layer, "self"), config)
        if torch.as_tensor(self.vector).shape != (config.d_model,):
            raise ValueError(
                f"a vector of {config.d_model} numbers is needed; got {len(self.vector)}"
            )

    def __str__(self) -> str:
        where = "" if self.positions is None else f" at {_listed(self.positions)}"
        return f"a vector added to {self.part} of {self.stack} layer {self.layer}{where}"


@dataclass(frozen=True, slots=True)
class EditMask:
    """A changed mask: whole masks removed, then cells allowed, then cells forbidden.

    layer None: every layer. without: "causal", "padding". allow, forbid: (query, key) positions;
    None means all, so (3, None) is a row and (None, 0) a column. A row with nothing allowed gives
    all keys equal weight. Padding is never allowed, except by without=["padding"].
    """

    type: ClassVar[str] = "mask"
    stack: str
    layer: int | None = None
    kind: str = "self"
    without: Sequence[str] = ()
    allow: Sequence[tuple[int | None, int | None]] = ()
    forbid: Sequence[tuple[int | None, int | None]] = ()

    def __post_init__(self) -> None:
        check_names(self.stack, 0 if self.layer is None else self.layer, self.kind)
        object.__setattr__(self, "layer", None if self.layer is None else int(self.layer))
        if isinstance(self.without, str) or not isinstance(self.without, Sequence):
            raise ValueError(
                f"without must be a list out of {list(MASKS)}; got {shortened(self.without)}"
            )
        for name in self.without:
            check_choice("without", name, MASKS)
        object.__setattr__(self, "without", tuple(self.without))
        for name in ("allow", "forbid"):
            object.__setattr__(self, name, cells_of(name, getattr(self, name)))

    def sites(self, config: ModelConfig) -> list[Site]:
        """Every attention with this mask."""
        layers = range(config.n_layers_of(self.stack)) if self.layer is None else [self.layer]
        return [Site(self.stack, layer, self.kind) for layer in layers]

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the network has the site and enough positions."""
        check_site(self.sites(config)[0], config)
        highest = max((p for cell in (*self.allow, *self.forbid) for p in cell if p), default=0)
        longest = max(config.max_len, config.output_max_len)
        check_whole("cells", highest, 0, longest - 1)

    def __str__(self) -> str:
        cells = len(self.allow), len(self.forbid)
        return _mask_words(self.stack, self.kind, self.layer, self.without, *cells)


@dataclass(frozen=True, slots=True)
class Break:
    """One idea of the architecture switched off everywhere, one of `BREAKS`."""

    type: ClassVar[str] = "break"
    what: str

    def __post_init__(self) -> None:
        check_choice("what", self.what, tuple(BREAKS))

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError if the network has nothing to switch off."""
        if self.what not in breaks_of(config):
            raise ValueError(
                f"this network has no such part for {shortened(self.what)}; allowed: "
                f"{breaks_of(config)}"
            )

    def __str__(self) -> str:
        return say(self.what.replace("-", " "))


@dataclass(frozen=True, slots=True)
class Patch:
    """Activations of another run instead of this one's, at chosen positions.

    text: the other run's text (in an encoder-decoder its source; the other decoder reads the same
    tokens as this one). values: the activations themselves instead of a text, a row for each
    position: (P, C), or for part "z" (P, H, D), or (P, D) that all chosen heads get.
    part: one of PARTS, see `model/hooks.py`: "resid_post", the residual stream after the layer;
    "z", heads' outputs; "mlp_out", the feed-forward's output. heads None: all.
    """

    type: ClassVar[str] = "patch"
    stack: str
    layer: int
    positions: Indices
    text: str = ""
    part: str = "resid_post"
    heads: Indices | None = None
    kind: str = "self"
    values: Sequence[Any] | Tensor | NDArray[Any] | None = dataclasses.field(
        default=None, repr=False
    )

    def __post_init__(self) -> None:
        check_names(self.stack, self.layer, self.kind)
        object.__setattr__(self, "layer", int(self.layer))
        check_choice("part", self.part, PARTS)
        places = listed("positions", self.positions)
        object.__setattr__(self, "positions", tuple(sorted(set(places))))
        if self.heads is not None:
            object.__setattr__(self, "heads", indices_of("heads", self.heads))
        if self.values is not None:
            rows = _numbers("values", self.values)
            if len(rows) != len(places) or len(places) != len(self.positions) or self.text:
                raise ValueError(
                    "a patch with values needs one row a position, each once, and no text; got "
                    f"{len(rows)} rows for positions {shortened(places)}, text="
                    f"{shortened(self.text)}"
                )
            order = sorted(range(len(places)), key=places.__getitem__)
            object.__setattr__(self, "values", tuple(rows[n] for n in order))
        elif not isinstance(self.text, str) or not self.text.strip():
            raise ValueError(f"a patch needs the text of the other run; got {shortened(self.text)}")

    @property
    def site(self) -> Site:
        """The site; its kind matters only for part "z"."""
        return Site(self.stack, self.layer, self.kind)

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the network has the site and heads, and values are of their
        sizes; the text is checked later."""
        check_site(self.site, config)
        check_heads(self.heads or (), config)
        if self.values is None:
            return
        n, shape = len(self.positions), tuple(torch.tensor(self.values, device="cpu").shape)
        allowed: list[tuple[int, ...]] = [(n, config.d_model)]
        if self.part == "z":
            allowed = [(n, config.d_head), (n, config.n_heads, config.d_head)]
        if shape not in allowed:
            sizes = " or ".join(map(str, allowed))
            raise ValueError(f"values of {self.part} are of shape {sizes}; got {shape}")

    def __str__(self) -> str:
        return _patch_words(self.stack, self.layer, self.part, self.heads, self.positions)


Intervention = Ablate | EditMask | Break | Patch | Add
TYPES: dict[str, type[Ablate] | type[EditMask] | type[Break] | type[Patch] | type[Add]] = {
    kind.type: kind for kind in (Ablate, EditMask, Break, Patch, Add)
}


def to_dict(intervention: Intervention) -> dict[str, Any]:
    """Plain values, for JSON; fields at their defaults are left out."""
    values: dict[str, Any] = {"type": intervention.type}
    for field in dataclasses.fields(intervention):
        value = getattr(intervention, field.name)
        if value != field.default:
            values[field.name] = _plain(value)
    return values


def interventions_of(values: Any) -> tuple[Intervention, ...]:
    """Interventions from a list of them or of their plain values; else raise ValueError."""
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence):
        raise ValueError(f"interventions must be a list; got {type(values).__name__}")
    return tuple(v if isinstance(v, Intervention) else _of(v) for v in values)


def check_all(interventions: Sequence[Intervention], config: ModelConfig) -> None:
    """Raise ValueError unless the network supports all of them."""
    for intervention in interventions:
        intervention.check(config)


def places_of(intervention: Intervention) -> Iterator[tuple[str, int]]:
    """(stack, position) of each token at which an intervention acts, where it names some."""
    if isinstance(intervention, EditMask):
        read = "encoder" if intervention.kind == "cross" else intervention.stack
        for query, key in (*intervention.allow, *intervention.forbid):
            yield from [(intervention.stack, query)] if query is not None else []
            yield from [(read, key)] if key is not None else []
    elif not isinstance(intervention, Break):
        yield from ((intervention.stack, place) for place in intervention.positions or ())


def reads_padding(intervention: Intervention) -> bool:
    """Whether it makes a network read padding as if it were text."""
    return isinstance(intervention, EditMask) and "padding" in intervention.without


def without_padding_mask(config: ModelConfig) -> tuple[EditMask, ...]:
    """Edits with which every attention reads padding as if it were text."""
    kinds = dict.fromkeys((site.stack, site.kind) for site in sites_of(config))
    return tuple(EditMask(stack, kind=kind, without=["padding"]) for stack, kind in kinds)


def _of(values: Any) -> Intervention:
    if not isinstance(values, Mapping) or values.get("type") not in list(TYPES):
        got = values.get("type") if isinstance(values, Mapping) else values
        raise ValueError(
            f"an intervention's type must be one of {list(TYPES)}; got {shortened(got)}"
        )
    kind = TYPES[values["type"]]
    fields = {field.name: field for field in dataclasses.fields(kind)}
    options = {str(name): value for name, value in values.items() if name != "type"}
    if unknown := [name for name in options if name not in fields]:
        raise ValueError(
            f"unknown field {shortened(unknown[0])} of '{kind.type}'; allowed: {sorted(fields)}"
        )
    needed = [f.name for f in fields.values() if f.default is dataclasses.MISSING]
    if missing := [name for name in needed if name not in options]:
        raise ValueError(f"'{kind.type}' needs {needed}; '{missing[0]}' is missing")
    return kind(**options)


def _numbers(name: str, got: Any) -> tuple[Any, ...]:
    """Finite numbers, in tuples within tuples; else raise ValueError."""
    try:
        tensor = torch.as_tensor(got, dtype=torch.float32, device="cpu").detach()
    except (TypeError, ValueError, RuntimeError):
        tensor = torch.tensor(math.nan, device="cpu")
    if not tensor.dim() or not tensor.numel() or not bool(tensor.isfinite().all()):
        raise ValueError(f"{name} must be finite numbers, a tensor or a list; got {shortened(got)}")
    return _tuples(tensor.tolist())


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


# ---- in one sentence each, in the visitor's language ----

_FEED_FORWARDS_OFF = {
    "encoder": mark("encoder layer {layer}, feed-forward switched off"),
    "decoder": mark("layer {layer}, feed-forward switched off"),
}
_LAYERS = {"encoder": mark("encoder layer {layer}"), "decoder": mark("layer {layer}")}


def _ablation_words(site: Site, heads: Indices, by: str) -> str:
    """Describe an ablation by "zero" or "mean"."""
    places = {"self": _LAYERS[site.stack], "cross": mark("cross-attention layer {layer}")}
    at = {"layer": say(places[site.kind], layer=site.layer), "heads": _listed(heads)}
    if by == "zero":
        return say_n(
            "{layer}, head {heads} switched off", "{layer}, heads {heads} switched off",
            len(heads), **at,
        )  # fmt: skip
    return say_n(
        "{layer}, head {heads} replaced by its mean",
        "{layer}, heads {heads} replaced by their mean",
        len(heads), **at,
    )  # fmt: skip


def _mask_words(
    stack: str,
    kind: str,
    layer: int | None,
    without: Sequence[str],
    n_allowed: int,
    n_forbidden: int,
) -> str:
    """Describe a changed mask; layer None: every layer."""
    where = attention_name(stack, kind)
    if layer is not None:
        where = say("{attention}, layer {layer}", attention=where, layer=layer)
    said = [without_mask(name) for name in without]
    said += [say_n("{n} allowed", "{n} allowed", n_allowed)] if n_allowed else []
    said += [say_n("{n} forbidden", "{n} forbidden", n_forbidden)] if n_forbidden else []
    return say("mask of {where}: {said}", where=where, said=say_list(said or [say("unchanged")]))


def _patch_words(stack: str, layer: int, part: str, heads: Indices | None, places: Indices) -> str:
    """Describe a patch."""
    if part == "resid_post":
        what = say("residual stream")
    elif part == "mlp_out":
        what = say("feed-forward")
    elif heads is None:
        what = say("all heads")
    else:
        what = say_n("head {listed}", "heads {listed}", len(heads), listed=_listed(heads))
    at = say_n("at place {listed}", "at places {listed}", len(places), listed=_listed(places))
    return say("{layer}, {what} {at}", layer=say(_LAYERS[stack], layer=layer), what=what, at=at)


def _listed(numbers: Indices) -> str:
    return say_list(map(str, numbers)) if numbers else say("none")

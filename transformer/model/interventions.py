"""What may be altered in a network for one run, as plain descriptions that travel as JSON.

They say what, not how: `changes.py` makes of them what the network applies, `BREAKS` holds the
switches that each take one idea of the architecture away. Layers, heads and places count from 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from transformer.model.config import ModelConfig
from transformer.model.sites import (
    cells_of,
    check_choice,
    check_heads,
    check_names,
    check_site,
    places_of,
    sites_of,
)
from transformer.model.trace import Site

SILENCED_BY = ("zero", "mean")
MASKS = ("causal", "padding")
PARTS = ("residual", "heads", "feed_forward")

# What is switched off, and why the network needs it.
BREAKS: dict[str, str] = {
    "no-scale": "Without ÷ √d_head the scores grow with the head's size, and softmax puts nearly "
    "all weight on one key.",
    "model-scale": "÷ √d_model instead of √d_head makes the scores too small, and the heads read "
    "nearly evenly.",
    "no-positions": "Attention sees a set, not a sequence: without positions the network knows the "
    "order only through the causal mask.",
    "shuffled-positions": "Every token is told the place of another, so heads that look one token "
    "back look anywhere.",
    "no-residual": "Each sub-layer replaces what it read instead of adding to it, and the token "
    "itself is soon forgotten.",
    "no-final-norm": "The head was trained on normalised vectors; the raw stream has another size, "
    "so its probabilities come out wrong.",
    "hard-attention": "Each query reads only its best key (argmax), so nothing can be blended.",
    "uniform-attention": "Each query reads all allowed keys alike: what it asks for no longer "
    "matters.",
}


@dataclass(frozen=True, slots=True)
class Silence:
    """Heads of one attention say nothing: their output is 0, or its mean over the text.

    by="mean": in a decoder the mean over the places up to the query's own, so that nothing of the
    future leaks; in an encoder over the whole text.
    """

    type: ClassVar[str] = "silence"
    stack: str
    layer: int
    heads: Sequence[int]
    kind: str = "self"
    by: str = "zero"

    def __post_init__(self) -> None:
        check_names(self.stack, self.layer, self.kind)
        object.__setattr__(self, "heads", places_of("heads", self.heads))
        check_choice("by", self.by, SILENCED_BY)

    @property
    def site(self) -> Site:
        """Which attention."""
        return Site(self.stack, self.layer, self.kind)

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the network has the site and the heads."""
        check_site(self.site, config)
        check_heads(self.heads, config)

    def __str__(self) -> str:
        how = "silenced" if self.by == "zero" else "replaced by their mean"
        return f"{self.site} {_listed('head', self.heads)} {how}"


@dataclass(frozen=True, slots=True)
class EditMask:
    """Another mask: whole masks taken away, then cells allowed, then cells forbidden.

    layer None: every layer. without: "causal", "padding". allow, forbid: (query, key) places in
    what the network reads; None stands for all of them, so (3, None) is a row and (None, 0) a
    column. A row with nothing allowed weighs all keys alike.
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
        if isinstance(self.without, str) or not isinstance(self.without, Sequence):
            raise ValueError(f"without must be a list out of {list(MASKS)}; got {self.without!r}")
        for name in self.without:
            check_choice("without", name, MASKS)
        object.__setattr__(self, "without", tuple(self.without))
        for name in ("allow", "forbid"):
            object.__setattr__(self, name, cells_of(name, getattr(self, name)))

    def sites(self, config: ModelConfig) -> list[Site]:
        """Every attention that this edits."""
        layers = range(config.n_layers) if self.layer is None else [self.layer]
        return [Site(self.stack, layer, self.kind) for layer in layers]

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the network has the site and can read as many places."""
        check_site(self.sites(config)[0], config)
        highest = max((p for cell in (*self.allow, *self.forbid) for p in cell if p), default=0)
        if highest >= config.max_len:
            raise ValueError(
                f"a cell's places must be from 0 to {config.max_len - 1}, what the network reads; "
                f"got {highest}"
            )

    def __str__(self) -> str:
        where = f"{self.stack} {self.kind}-attention"
        where += "" if self.layer is None else f" of layer {self.layer}"
        said = [f"without the {name} mask" for name in self.without]
        said += [f"{len(self.allow)} allowed"] if self.allow else []
        said += [f"{len(self.forbid)} forbidden"] if self.forbid else []
        return f"mask of {where}: {', '.join(said) or 'unchanged'}"


@dataclass(frozen=True, slots=True)
class Break:
    """One idea of the architecture switched off, everywhere; `BREAKS` says which and why."""

    type: ClassVar[str] = "break"
    what: str

    def __post_init__(self) -> None:
        check_choice("what", self.what, tuple(BREAKS))

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError if the network has nothing to switch off."""
        if self.what not in breaks_of(config):
            raise ValueError(
                f"this network has no such part for {self.what!r}; allowed: {breaks_of(config)}"
            )

    def __str__(self) -> str:
        return self.what.replace("-", " ")


@dataclass(frozen=True, slots=True)
class Patch:
    """Activity of another run put in place of this one's, at chosen places.

    text: what the other run reads (by a decoder-only network or an encoder; where there is an
    encoder, the other decoder reads the same tokens as this one). part: "residual", the stream
    that leaves the layer; "heads", what heads of an attention read; "feed_forward", what the
    feed-forward adds. heads None: all.
    """

    type: ClassVar[str] = "patch"
    stack: str
    layer: int
    positions: Sequence[int]
    text: str
    part: str = "residual"
    heads: Sequence[int] | None = None
    kind: str = "self"

    def __post_init__(self) -> None:
        check_names(self.stack, self.layer, self.kind)
        check_choice("part", self.part, PARTS)
        object.__setattr__(self, "positions", places_of("positions", self.positions))
        if self.heads is not None:
            object.__setattr__(self, "heads", places_of("heads", self.heads))
        if not isinstance(self.text, str) or not self.text.strip():
            raise ValueError(f"a patch needs the text of the other run; got {self.text!r}")

    @property
    def site(self) -> Site:
        """Where; for the residual stream and the feed-forward the kind says nothing."""
        return Site(self.stack, self.layer, self.kind)

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless the network has the place; the text's length is seen later."""
        check_site(self.site, config)
        check_heads(self.heads or (), config)

    def __str__(self) -> str:
        what = {"residual": "residual stream", "feed_forward": "feed-forward"}.get(self.part)
        what = what or ("heads" if self.heads is None else _listed("head", self.heads))
        return f"{self.stack} layer {self.layer}, {what} at {_listed('place', self.positions)}"


Intervention = Silence | EditMask | Break | Patch
TYPES: dict[str, type[Silence] | type[EditMask] | type[Break] | type[Patch]] = {
    kind.type: kind for kind in (Silence, EditMask, Break, Patch)
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
    """A list of interventions, or of their plain values.

    Raises ValueError that says what was got and what is allowed.
    """
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence):
        raise ValueError(f"interventions must be a list; got {type(values).__name__}")
    return tuple(v if isinstance(v, Intervention) else _of(v) for v in values)


def check_all(interventions: Sequence[Intervention], config: ModelConfig) -> None:
    """Raise ValueError unless the network can do all of them."""
    for intervention in interventions:
        intervention.check(config)


def without_padding_mask(config: ModelConfig) -> tuple[EditMask, ...]:
    """Every attention of the network reads padding as if it were text."""
    kinds = dict.fromkeys((site.stack, site.kind) for site in sites_of(config))
    return tuple(EditMask(stack, kind=kind, without=["padding"]) for stack, kind in kinds)


def breaks_of(config: ModelConfig) -> list[str]:
    """The switches that this network has something for."""
    return [what for what in BREAKS if what != "no-final-norm" or config.norm == "pre"]


def _of(values: Any) -> Intervention:
    if not isinstance(values, Mapping) or values.get("type") not in list(TYPES):
        got = values.get("type") if isinstance(values, Mapping) else values
        raise ValueError(f"an intervention's type must be one of {list(TYPES)}; got {got!r}")
    made = TYPES[values["type"]]
    fields = {field.name: field for field in dataclasses.fields(made)}
    given = {str(name): value for name, value in values.items() if name != "type"}
    if unknown := [name for name in given if name not in fields]:
        raise ValueError(
            f"unknown field {unknown[0]!r} of a {made.type!r}; allowed: {sorted(fields)}"
        )
    needed = [f.name for f in fields.values() if f.default is dataclasses.MISSING]
    if missing := [name for name in needed if name not in given]:
        raise ValueError(f"a {made.type!r} needs {needed}; {missing[0]!r} is missing")
    return made(**given)


def _plain(value: Any) -> Any:
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def _listed(name: str, numbers: Sequence[int]) -> str:
    """'head 3', 'heads 1, 4'."""
    return f"{name}{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers)) or 'none'}"

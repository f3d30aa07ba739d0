"""A recorder for attention and residual streams.

The caller creates a Trace and passes it: `network(ids, trace=trace)`. It belongs to that call, so
any number of threads can share one network.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from transformer.checks import is_whole, shortened
from transformer.model.hooks import Point
from transformer.model.sites import Site as Site
from transformer.model.sites import SiteLike


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class AttentionRecord:
    """The tensors of one attention call, detached, float32 on the model's device.

    scores: (B, H, Tq, Tk), q kT / sqrt(D), before the mask.
    pattern: (B, H, Tq, Tk), after mask and softmax, before dropout; rows sum to 1.
    mask: bool, broadcastable to (B, 1, Tq, Tk), True = may attend; None = all allowed.
    q, k, v: (B, H, Tq, D), (B, H, Tk, D), (B, H, Tk, D); None in a record of weights from another
    tool.
    """

    site: Site
    scores: Tensor
    pattern: Tensor
    mask: Tensor | None
    q: Tensor | None = None
    k: Tensor | None = None
    v: Tensor | None = None

    def __repr__(self) -> str:
        """One line, without the tensors."""
        batch, n_heads, n_queries, n_keys = self.pattern.shape
        shape = f"{n_heads} heads, {n_queries} queries x {n_keys} keys"
        return f"<AttentionRecord {self.site}: {batch} texts, {shape}>"

    @property
    def allowed(self) -> Tensor:
        """The mask in full: (B, Tq, Tk) bool."""
        batch, _, n_queries, n_keys = self.pattern.shape
        return mask_in_full(self.mask, batch, n_queries, n_keys)


def mask_in_full(mask: Tensor | None, batch: int, n_queries: int, n_keys: int) -> Tensor:
    """Expand a mask broadcastable to (B, 1, Tq, Tk) to (B, Tq, Tk) bool; None = all allowed."""
    if mask is None:
        return torch.ones(batch, n_queries, n_keys, dtype=torch.bool, device="cpu")
    mask = mask if mask.dim() == 4 else mask[None, None]
    return mask.expand(batch, 1, n_queries, n_keys)[:, 0]


@dataclass(slots=True, eq=False, repr=False)
class Trace:
    """A recorder for one forward pass; `trace[site]` is an AttentionRecord. A second pass with the
    same trace replaces what the first recorded.

    embed, pos_embed: by stack, (B, T, C): token embeddings (scaled, if the model scales them)
    and the positional encoding added to them.
    residuals: by stack, L + 1 times (B, T, C): the residual stream before the first layer and after
    each layer (before the final norm of a pre-norm stack).
    """

    point_names: ClassVar = ("pattern", "resid_pre", "resid_post", "pos_embed")
    records: MutableMapping[Site, AttentionRecord] = field(default_factory=dict)
    embed: dict[str, Tensor] = field(default_factory=dict)
    pos_embed: dict[str, Tensor] = field(default_factory=dict)
    residuals: dict[str, list[Tensor]] = field(default_factory=dict)

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """Record the value of a hook point; changes nothing."""
        if point.name == "pattern":
            heads = (context["q"], context["k"], context["v"])
            site = Site(point.stack, point.layer, point.kind)
            self.record_attention(site, context["scores"], value, context["mask"], heads)
        elif point.name == "resid_post" or (point.name == "resid_pre" and point.layer == 0):
            self.residuals.setdefault(point.stack, []).append(value.detach().float())
        elif point.name == "pos_embed":
            if point.stack in self.pos_embed:  # a second pass
                self._forget(point.stack)
            self.embed[point.stack] = context["embed"].detach().float()
            self.pos_embed[point.stack] = value.detach().float().expand_as(context["embed"])
        return value

    def _forget(self, stack: str) -> None:
        """Remove a stack's recordings."""
        self.residuals.pop(stack, None)
        for site in [site for site in self.records if site.stack == stack]:
            del self.records[site]

    def record_attention(
        self,
        site: Site,
        scores: Tensor,
        pattern: Tensor,
        mask: Tensor | None,
        heads: tuple[Tensor, Tensor, Tensor] | None = None,
    ) -> None:
        """Keep a detached copy. heads: q, k, v."""
        q, k, v = (x.detach().float() for x in heads) if heads else (None, None, None)
        self.records[site] = AttentionRecord(
            site=site,
            scores=scores.detach().float(),
            pattern=pattern.detach().float(),
            mask=None if mask is None else mask.detach(),
            q=q,
            k=k,
            v=v,
        )

    @property
    def sites(self) -> list[Site]:
        """Recorded sites, in the order of the data."""
        return list(self.records)

    def find(self, site: SiteLike) -> Site:
        """The recorded site with this name. A layer's number, with a stack or in the last one,
        means its self-attention. Raises ValueError that lists the recorded ones."""
        parts: Any = site
        if is_whole(site) and self.records:
            parts = (self.sites[-1].stack, site)
        if isinstance(parts, tuple) and len(parts) == 2:
            parts = (*parts, "self")
        try:
            key = Site.parse(site) if isinstance(site, str) else Site(*parts)
            key = key._replace(layer=operator.index(key.layer))
        except TypeError as error:
            raise ValueError(
                f"a site is (stack, layer, kind) or its name; got {shortened(site)}; recorded: "
                f"{_names(self.records)}"
            ) from error
        if key not in self.records:
            raise ValueError(f"no record of site {key}; recorded: {_names(self.records)}")
        return key

    def __getitem__(self, site: SiteLike) -> AttentionRecord:
        return self.records[self.find(site)]

    def __iter__(self) -> Iterator[AttentionRecord]:
        return iter(self.records.values())

    def __repr__(self) -> str:
        """One line: the recorded sites (first and last of many) and residual streams."""
        others = ", ".join(f"{stack} residual stream" for stack in self.residuals)
        few, sites = len(self.records) <= 3, self.sites
        names = _names(sites) if few else f"{sites[0]} to {sites[-1]}, {len(sites)} sites"
        return f"<Trace of {names}{'; ' if others else ''}{others}>"

    def kinds(self) -> list[tuple[str, str]]:
        """The (stack, kind) pairs recorded, e.g. [("encoder", "self"), ("decoder", "self")]."""
        return list(dict.fromkeys((site.stack, site.kind) for site in self.records))

    def weights(self, stack: str | None = None, kind: str = "self") -> Tensor:
        """All layers of one kind of attention: (L, B, H, Tq, Tk) float32, rows sum to 1.

        stack: None = the last.
        """
        return torch.stack([self.records[site].pattern for site in self._of(stack, kind)])

    def scores(self, stack: str | None = None, kind: str = "self") -> Tensor:
        """Scores before the mask, all layers of one kind: (L, B, H, Tq, Tk) float32."""
        return torch.stack([self.records[site].scores for site in self._of(stack, kind)])

    def _of(self, stack: str | None, kind: str) -> list[Site]:
        """Sites instead of records, so that a recomputed record is freed after use."""
        if stack is None and self.records:
            stack = self.sites[-1].stack
        sites = [site for site in self.records if (site.stack, site.kind) == (stack, kind)]
        if not sites:
            raise ValueError(
                f"no {stack} {kind}-attention was recorded; recorded: {_names(self.records)}"
            )
        return sites


def _names(sites: Iterable[Site]) -> str:
    return ", ".join(map(str, sites)) or "nothing"

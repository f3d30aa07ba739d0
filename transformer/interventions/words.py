"""Describe interventions in one sentence each, in the visitor's language."""

from __future__ import annotations

from collections.abc import Sequence

from transformer.messages import mark, say, say_n
from transformer.model.sites import Site
from transformer.network_words import attention_name, without_mask

_LAYERS = {"encoder": mark("encoder layer {layer}"), "decoder": mark("layer {layer}")}


def ablation_words(site: Site, heads: Sequence[int], by: str) -> str:
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


def mask_words(
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
        where = say("{attention} of layer {layer}", attention=where, layer=layer)
    said = [without_mask(name) for name in without]
    said += [say_n("{n} allowed", "{n} allowed", n_allowed)] if n_allowed else []
    said += [say_n("{n} forbidden", "{n} forbidden", n_forbidden)] if n_forbidden else []
    return say("mask of {where}: {said}", where=where, said=", ".join(said) or say("unchanged"))


def patch_words(
    stack: str, layer: int, part: str, heads: Sequence[int] | None, places: Sequence[int]
) -> str:
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


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) or say("none")

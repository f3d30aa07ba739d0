"""Check sites, heads and positions in interventions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformer.checks import check_choice, check_whole, shortened
from transformer.model.config import ModelConfig
from transformer.model.sites import KINDS, STACKS, Site, sites_of

MAX_CELLS = 4096


def check_site(site: Site, config: ModelConfig) -> None:
    """Raise ValueError, listing the sites, unless the network has this one."""
    sites = sites_of(config)
    if site not in sites:
        first = [other for other in sites if other.layer == 0]
        last = {other[::2]: other for other in sites}
        names = ", ".join(f"{other} to {last[other[::2]]}" for other in first)
        raise ValueError(f"this network has no site {site}; its sites: {names}")


def check_heads(heads: Sequence[int], config: ModelConfig) -> None:
    """Raise ValueError unless the network has each of these heads."""
    for head in heads:
        check_whole("heads", head, 0, config.n_heads - 1)


def check_names(stack: Any, layer: Any, kind: Any) -> None:
    """Raise ValueError unless these may name a site of some network."""
    check_choice("stack", stack, STACKS)
    check_choice("kind", kind, KINDS)
    check_whole("layer", layer, 0, 2**31 - 1)


def indices_of(name: str, got: Any) -> tuple[int, ...]:
    """Whole numbers from 0, sorted, without duplicates; else raise ValueError."""
    is_list = isinstance(got, Sequence) and not isinstance(got, str)
    if not is_list or len(got) > MAX_CELLS or not all(map(_is_position, got)):
        raise ValueError(
            f"{name} must be a list of at most {MAX_CELLS} whole numbers; got {shortened(got)}"
        )
    return tuple(sorted(set(got)))


def cells_of(name: str, got: Any) -> tuple[tuple[int | None, int | None], ...]:
    """(query, key) positions, None for a whole row or column; else raise ValueError."""
    is_list = isinstance(got, Sequence) and not isinstance(got, str)
    if not is_list or len(got) > MAX_CELLS or not all(map(_is_cell, got)):
        raise ValueError(
            f"{name} must be a list of at most {MAX_CELLS:,} pairs [query, key] of whole numbers "
            "from 0, one of which may be null for a whole row or column; got "
            f"{shortened(got)}"
        )
    return tuple((query, key) for query, key in got)


def _is_cell(got: Any) -> bool:
    if isinstance(got, str) or not isinstance(got, Sequence) or len(got) != 2:
        return False
    positions = [position for position in got if position is not None]
    return bool(positions) and all(map(_is_position, positions))


def _is_position(got: Any) -> bool:
    return isinstance(got, int) and not isinstance(got, bool) and 0 <= got < 2**31

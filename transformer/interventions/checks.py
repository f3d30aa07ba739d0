"""Check sites, heads and positions in interventions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.checks import check_choice, check_whole, shortened
from transformer.model.config import ModelConfig
from transformer.model.sites import KINDS, STACKS, Site, sites_of

MAX_CELLS = 4096
# Heads or positions as callers may write them; those of a description are tuples.
Indices = Sequence[int] | Tensor | NDArray[Any]


def check_site(site: Site, config: ModelConfig) -> None:
    """Raise ValueError, listing the sites, unless the network has this one."""
    sites = sites_of(config)
    if site not in sites:
        first = [other for other in sites if other.layer == 0]
        last = {other[::2]: other for other in sites}
        names = ", ".join(f"{other} to {last[other[::2]]}" for other in first)
        raise ValueError(f"this network has no site {site}; its sites: {names}")


def check_heads(heads: Indices, config: ModelConfig) -> None:
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
    return tuple(sorted(set(listed(name, got))))


def listed(name: str, got: Any) -> tuple[int, ...]:
    """Whole numbers from 0 in their order: a list, an array or a tensor; else raise ValueError."""
    numbers = [*map(_position, _items(got))]
    if not _is_list(got) or None in numbers:
        raise ValueError(
            f"{name} must be a list of at most {MAX_CELLS} whole numbers from 0; got "
            f"{shortened(got)}"
        )
    return tuple(number for number in numbers if number is not None)


def cells_of(name: str, got: Any) -> tuple[tuple[int | None, int | None], ...]:
    """(query, key) positions, None for a whole row or column; else raise ValueError."""
    cells = [*map(_cell, _items(got))]
    if not _is_list(got) or None in cells:
        raise ValueError(
            f"{name} must be a list of at most {MAX_CELLS:,} pairs [query, key] of whole numbers "
            "from 0, one of which may be null for a whole row or column; got "
            f"{shortened(got)}"
        )
    return tuple(cell for cell in cells if cell is not None)


def _is_list(got: Any) -> bool:
    """Whether it is a list, an array or a tensor of not too many items."""
    if isinstance(got, Tensor | np.ndarray):
        return got.ndim > 0 and len(got) <= MAX_CELLS
    return isinstance(got, Sequence) and not isinstance(got, str) and len(got) <= MAX_CELLS


def _items(got: Any) -> list[Any]:
    return list(got) if _is_list(got) else []


def _cell(got: Any) -> tuple[int | None, int | None] | None:
    if not _is_list(got) or len(got) != 2:
        return None
    query, key = (None if item is None else _position(item) for item in got)
    is_whole = all(
        at is not None or item is None for at, item in zip((query, key), got, strict=True)
    )
    return (query, key) if is_whole and (query, key) != (None, None) else None


def _position(got: Any) -> int | None:
    """A whole number from 0, NumPy's and tensors' included; None for anything else."""
    is_bool = isinstance(got, bool | np.bool_) or getattr(got, "dtype", None) == torch.bool
    try:
        number = -1 if is_bool or isinstance(got, str) else operator.index(got)
    except (TypeError, ValueError, RuntimeError):
        return None
    return number if 0 <= number < 2**31 else None

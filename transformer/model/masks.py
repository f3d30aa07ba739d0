"""Which query may read which key. Every mask is bool, True = may attend.

Padding and causal masks are different things: padding hides keys that are not text, whoever asks;
the causal mask hides keys that lie in the asking position's future. `combine` is their "and".
"""

from __future__ import annotations

import torch
from torch import Tensor


def padding_mask(is_text: Tensor | None) -> Tensor | None:
    """Hide padding keys from every query.

    is_text: (B, Tk) bool, False where a batch was padded, whatever id fills it; None = nowhere.
    Returns (B, 1, 1, Tk), or None.
    """
    if is_text is None:
        return None
    check_is_mask(is_text)
    return is_text[:, None, None, :]


def causal_mask(
    n_queries: int, n_keys: int, device: torch.device | None = None, window: int | None = None
) -> Tensor:
    """Hide the future: query i reads keys up to its own position.

    window: how many of them, its own the last; None = all.

    Returns (Tq, Tk). The last query stands at the last key, so with a cache of past keys
    (Tk > Tq) the first query may read all the past and itself.
    Raises ValueError for more queries than keys.
    """
    if n_queries > n_keys:
        raise ValueError(
            f"a causal mask needs at least as many keys as queries; got {n_queries} queries, "
            f"{n_keys} keys"
        )
    allowed = torch.ones(n_queries, n_keys, dtype=torch.bool, device=device)
    past = n_keys - n_queries
    allowed = allowed.tril(past)
    return allowed if window is None else allowed.triu(past - window + 1)


def combine(*masks: Tensor | None) -> Tensor | None:
    """The logical and of the given masks; None means "everything is allowed"."""
    given = [mask for mask in masks if mask is not None]
    if not given:
        return None
    result = given[0]
    for mask in given[1:]:
        result = result & mask
    return result


def given_mask(mask: Tensor, n_queries: int, n_keys: int) -> Tensor:
    """A caller's own mask, checked: bool, True = may attend.

    mask: (Tq, Tk), or (B, 1, Tq, Tk) with 1 for B or Tq where all rows or queries read the same.
    Returns it as it is. Raises ValueError for another type or shape.
    """
    check_is_mask(mask)
    shape = tuple(mask.shape)
    good = len(shape) in (2, 4) and shape[-1] == n_keys and shape[-2] in (1, n_queries)
    if not good or (len(shape) == 4 and shape[1] != 1):
        raise ValueError(
            f"a mask must be of shape ({n_queries}, {n_keys}) or (batch, 1, {n_queries} or 1, "
            f"{n_keys}); got {shape}"
        )
    return mask


def check_is_mask(mask: Tensor) -> None:
    """Raise ValueError for a mask of numbers: 0 and 1 mean one thing here and another there."""
    if mask.dtype is not torch.bool:
        raise ValueError(
            f"a mask must be bool, True = may attend; got {mask.dtype}; needed: mask == 1"
        )

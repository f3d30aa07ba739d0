"""Which query may read which key. Every mask is bool, True = may attend.

Padding and causal masks are different things: padding hides keys that are not text, whoever asks;
the causal mask hides keys that lie in the asking position's future. `combine` is their "and".
"""

from __future__ import annotations

import torch
from torch import Tensor


def padding_mask(ids: Tensor, padding_id: int | None) -> Tensor | None:
    """Hide padding keys from every query.

    ids: (B, Tk) int64. Returns (B, 1, 1, Tk), or None where the model has no padding id.
    """
    if padding_id is None:
        return None
    return (ids != padding_id)[:, None, None, :]


def causal_mask(n_queries: int, n_keys: int, device: torch.device | None = None) -> Tensor:
    """Hide the future: query i reads keys up to its own position.

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
    return allowed.tril(diagonal=n_keys - n_queries)


def combine(*masks: Tensor | None) -> Tensor | None:
    """What all of the given masks allow; None stands for "everything is allowed"."""
    given = [mask for mask in masks if mask is not None]
    if not given:
        return None
    result = given[0]
    for mask in given[1:]:
        result = result & mask
    return result

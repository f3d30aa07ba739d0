"""Scaled dot-product attention and its masks, as functions of tensors.

Every mask is bool, True = may attend. A padding mask hides keys that are not text from all
queries; a causal mask hides keys in a query's future. `combine` is their "and".
"""

from __future__ import annotations

import math
from functools import reduce
from operator import and_

import torch
import torch.nn.functional as F
from torch import Tensor


def on_device(x: Tensor, device: torch.device) -> Tensor:
    """x on a device. A CUDA device is not waited for: from pinned memory, a copy takes its turn."""
    if device.type == "cuda" and x.device.type == "cpu":
        return x.pin_memory().to(device, non_blocking=True)
    return x.to(device)


def attention_scores(q: Tensor, k: Tensor, size: float | None = None) -> Tensor:
    """q kT / sqrt(D): how well each query agrees with each key.

    q: (B, H, Tq, D); k: (B, H, Tk, D) -> (B, H, Tq, Tk).
    The divisor is the head's size D, not d_model: it keeps the scores' variance near 1. size: the
    number whose root is the divisor, for networks that differ.
    """
    return q @ k.transpose(-2, -1) / math.sqrt(size or q.shape[-1])


def soft_cap(x: Tensor, cap: float | None) -> Tensor:
    """cap · tanh(x / cap): nearly x where it is small, never beyond ±cap; x without a cap."""
    return x if cap is None else cap * torch.tanh(x / cap)


def masked_softmax(
    scores: Tensor, mask: Tensor | None = None, padding: Tensor | None = None
) -> Tensor:
    """Turn each row of scores into weights that sum to 1, with 0 where the mask forbids.

    scores: (B, H, Tq, Tk); mask: bool, True = may attend, broadcastable to the scores.
    padding: a mask of keys that are padding. A row with nothing allowed becomes uniform over the
    other keys (the fill is the dtype's lowest finite number, of them half of it).
    Raises ValueError for a mask of numbers.
    """
    if mask is not None:
        check_is_mask(mask)
        lowest = scores.new_full((), torch.finfo(scores.dtype).min)
        if padding is not None:
            lowest = torch.where(padding, lowest / 2, lowest)
        scores = torch.where(mask, scores, lowest)
    return scores.softmax(dim=-1)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Weigh values by query-key agreement: softmax(q kT / sqrt(D)) v.

    q: (B, H, Tq, D); k, v: (B, H, Tk, D); mask: bool, True = may attend, broadcastable to
    (B, H, Tq, Tk). Returns output (B, H, Tq, D) and weights (B, H, Tq, Tk).
    Raises ValueError if k and v differ in length, and for a mask of numbers.
    Source: Vaswani et al. 2017, equation 1. Departure: dropout is the caller's.
    """
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"keys and values must have one length; got {k.shape[-2]} keys, {v.shape[-2]} values"
        )
    weights = masked_softmax(attention_scores(q, k), mask)
    return weights @ v, weights


def fused_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    padding: Tensor | None,
    causal: bool,
    size: float,
    window: int | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """softmax(q kT / sqrt(size)) v by PyTorch's fused kernel, which keeps no weights.

    q: (B, H, Tq, D); k, v: (B, H, Tk, D). padding: bool, True = may attend, broadcastable to the
    scores. causal, window: as in `position_mask`. Returns (B, H, Tq, D).
    """
    n_queries, n_keys = q.shape[2], k.shape[2]
    slides = window is not None and n_keys > window
    plain = causal and padding is None and n_queries == n_keys and not slides
    mask = padding
    if slides or (causal and not plain and n_queries > 1):  # a single query sees all keys
        mask = combine(
            position_mask(n_queries, n_keys, q.device, causal=causal, window=window), padding
        )
    bias = None if mask is None else as_bias(mask, q.dtype)
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=bias, is_causal=plain, dropout_p=dropout, scale=size**-0.5
    )


def as_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask as numbers to add to scores, for kernels that do not take bool masks.

    Finite, so that a fully masked row is uniform as in `masked_softmax`. (In float16 such a row is
    finite but not uniform: its lowest number is not far enough below the scores.)
    """
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill(~mask, torch.finfo(dtype).min)


def padding_mask(is_text: Tensor | None) -> Tensor | None:
    """Hide padding keys from every query.

    is_text: (B, Tk) bool, False where a batch was padded; None = no padding.
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

    window: the number of keys it reads, its own included; None = all.

    Returns (Tq, Tk). The last query has the position of the last key, so with a cache of past keys
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


def window_mask(length: int, window: int, device: torch.device | None = None) -> Tensor:
    """Hide keys `window` tokens away or further, before and after each query: (T, T)."""
    allowed = torch.ones(length, length, dtype=torch.bool, device=device)
    return allowed.tril(window - 1).triu(1 - window)


def position_mask(
    n_queries: int,
    n_keys: int,
    device: torch.device | None = None,
    *,
    causal: bool,
    window: int | None,
) -> Tensor | None:
    """The mask by position: `causal_mask`, an encoder's `window_mask`, or None."""
    if causal:
        return causal_mask(n_queries, n_keys, device, window)
    return None if window is None else window_mask(n_keys, window, device)


def combine(*masks: Tensor | None) -> Tensor | None:
    """The logical and of the given masks; None means "everything is allowed"."""
    present = [mask for mask in masks if mask is not None]
    return reduce(and_, present) if present else None


def given_mask(mask: Tensor, n_queries: int, n_keys: int) -> Tensor:
    """Return a caller's mask unchanged; raise ValueError for another type or shape.

    mask: bool, True = may attend: (Tq, Tk), or (B, 1, Tq, Tk) with 1 for B or Tq where all rows or
    queries read the same.
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
    """Raise ValueError for a mask of numbers: libraries disagree on what 0 and 1 mean."""
    if mask.dtype is not torch.bool:
        raise ValueError(
            f"a mask must be bool, True = may attend; got {mask.dtype}; needed: mask == 1"
        )

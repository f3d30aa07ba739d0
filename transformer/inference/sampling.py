"""From logits to the next token: temperature, top-k, top-p, min-p. Pure functions, any batch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from transformer.runs.request import Sampling


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Divide logits by a temperature above 0: below 1 sharpens, above 1 flattens."""
    return logits / temperature


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """-inf for all but the k highest of each row (B, V); equals of the k-th stay too."""
    kth = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits < kth, -math.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """-inf outside the nucleus: the smallest set of likeliest tokens whose probabilities reach p.

    logits: (B, V). At least one token stays. Source: Holtzman et al. 2020.
    """
    if p >= 1:
        return logits  # rounding of the sum must not cut the tail
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    probabilities = ordered.softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # mass of the likelier tokens
    outside = before >= p
    outside[..., 0] = False
    return logits.masked_fill(outside.scatter(-1, order, outside), -math.inf)


def keep_min_p(logits: Tensor, p: float) -> Tensor:
    """-inf for tokens less likely than p times the likeliest (B, V). Source: Nguyen et al. 2024."""
    probabilities = logits.softmax(dim=-1)
    floor = p * probabilities.amax(dim=-1, keepdim=True)
    return logits.masked_fill(probabilities < floor, -math.inf)


def apply_sampling(logits: Tensor, sampling: Sampling) -> Tensor:
    """(B, V) -> (B, V), divided by the temperature, -inf where a filter cut."""
    logits = apply_temperature(logits, sampling.temperature)
    if sampling.top_k is not None:
        logits = keep_top_k(logits, sampling.top_k)
    if sampling.top_p is not None:
        logits = keep_top_p(logits, sampling.top_p)
    if sampling.min_p is not None:
        logits = keep_min_p(logits, sampling.min_p)
    return logits


def draw(probabilities: Tensor, generators: list[torch.Generator]) -> Tensor:
    """One token a row by inverting the cumulative distribution.

    probabilities: (B, V), rows sum to 1; one CPU generator a row, so that a row draws the same
    token whatever batch it stands in. Returns (B,) int64; never a token of probability 0.
    """
    uniform = torch.stack([torch.rand((), generator=g, dtype=torch.float64) for g in generators])
    cumulative = probabilities.cpu().double().cumsum(dim=-1)
    total = cumulative[:, -1:].contiguous()
    chosen = torch.searchsorted(cumulative, uniform[:, None] * total, right=True)
    last_possible = torch.searchsorted(cumulative, total)  # zeros at the row's end add nothing
    return torch.minimum(chosen, last_possible)[:, 0].to(probabilities.device)

"""A key-value cache, so that a growing text is not read again from its start."""

from __future__ import annotations

import torch
from torch import Tensor

from transformer.model.sites import Site


class KeyValueCache:
    """Keys and values already computed, by site, for one run.

    Self-attention sites grow with each call; cross-attention sites are filled once, since the
    encoder's output does not change.
    """

    def __init__(self) -> None:
        self.length = 0  # positions read so far
        self.key_mask: Tensor | None = None  # (B, 1, 1, length), True = no padding
        self._pairs: dict[Site, tuple[Tensor, Tensor]] = {}

    def extend(self, site: Site, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append (B, H, T, D) keys and values; returns all so far."""
        if site in self._pairs:
            past_k, past_v = self._pairs[site]
            k, v = torch.cat([past_k, k], dim=2), torch.cat([past_v, v], dim=2)
        self._pairs[site] = (k, v)
        return k, v

    def get(self, site: Site) -> tuple[Tensor, Tensor] | None:
        """The pair stored for a site, if any."""
        return self._pairs.get(site)

    def put(self, site: Site, k: Tensor, v: Tensor) -> None:
        """Store a pair that will not grow."""
        self._pairs[site] = (k, v)

    def select(self, rows: Tensor, *, crossing: bool) -> None:
        """Keep these rows of the batch, in this order; a row may be taken more than once.

        rows: (B',) int64. Beam search calls it when hypotheses end and branch. crossing=False
        keeps cross-attention unchanged, for when every row continues with the same memory.
        """
        for site, (k, v) in self._pairs.items():
            if crossing or site.kind != "cross":
                self._pairs[site] = (k.index_select(0, rows), v.index_select(0, rows))
        if self.key_mask is not None:
            self.key_mask = self.key_mask[rows]

    def extend_mask(self, mask: Tensor | None, n_new: int) -> Tensor | None:
        """Append the padding mask (B, 1, 1, n_new) of new keys, None = all are text.

        Returns the mask of all keys so far.
        """
        known = self.key_mask
        if known is None and mask is not None:
            known = mask.new_ones(len(mask), 1, 1, self.length)
        if known is not None and mask is None:
            mask = known.new_ones(len(known), 1, 1, n_new)
        if known is not None and mask is not None:
            mask = torch.cat([known, mask], dim=-1)
        self.key_mask = mask
        return mask

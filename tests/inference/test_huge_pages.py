"""Weights in large pages: where they lie and what they are stays."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch

from transformer.inference.engines.compiled import PAGE_BYTES, use_huge_pages


def test_weights_move_to_large_pages_with_their_numbers_and_addresses():
    weights = [torch.rand(2**20) for _ in range(4)]
    before, places = [one.clone() for one in weights], [one.data_ptr() for one in weights]
    pages = use_huge_pages(weights)
    assert [one.data_ptr() for one in weights] == places
    assert all(map(torch.equal, weights, before))
    if sys.platform.startswith("linux"):
        told = Path("/proc/self/smaps_rollup").read_text(encoding="utf-8")
        held = int(re.search(r"AnonHugePages:\s+(\d+) kB", told)[1])
        assert pages * PAGE_BYTES <= 1024 * held

"""Weights are in memory once, as they were stored, and compute as float32 does."""

import dataclasses
import gc
import re
import sys
import weakref
from pathlib import Path

import pytest
import torch

import transformer
from benchmarks import loading
from transformer import Model
from transformer.inference.engines.compiled import engine_of
from transformer.inference.engines.description import PAGE_BYTES, use_huge_pages
from transformer.server.http import process

ROOM = 10_000_000  # bytes besides the weights: the tokenizer, threads, the kernels that are timed


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, int]:
    """A Llama in bfloat16, and the bytes of its file."""
    folder = tmp_path_factory.mktemp("stored") / "llama"
    size = loading.write(folder, "llama", 2)
    return transformer.load(folder), size


@pytest.mark.slow
def test_loading_uses_little_more_memory_than_the_files():
    found = loading.measured("llama", 60)
    assert found["peak"] < loading.MOST + ROOM / found["megabytes"] / 1e6
    assert found["end"] > 0.9  # nothing is left to be read later


@pytest.mark.slow
def test_weights_stored_in_bfloat16_are_held_once_and_so(llama):
    model, size = llama
    assert model.engine is not None
    assert {x.dtype for x in model.network.parameters() if x.dim() == 2} == {torch.bfloat16}
    assert model.network.dtype == torch.float32
    assert size * 0.9 < model.weight_bytes < size * 1.1


@pytest.mark.slow
def test_weights_kept_small_give_what_they_give_in_float32(llama):
    model, _ = llama
    wide = model.network.__class__(model.config)
    wide.load_state_dict({k: v.float() for k, v in model.network.state_dict().items()})
    ids = torch.tensor([[5, 60, 31, 200, 17]])
    with torch.inference_mode():
        torch.testing.assert_close(model.network(ids), wide.eval()(ids), atol=1e-5, rtol=1e-5)
    whole = dataclasses.replace(model, network=wide, engine=None)
    said = whole.generate("a b", max_new_tokens=12).text
    for name in ("compiled", "network"):
        other = dataclasses.replace(model, engine=engine_of(model.network, name))
        assert other.generate("a b", max_new_tokens=12).text == said
    assert model.network.head.weight.dtype == torch.bfloat16


def test_weights_move_to_large_pages_with_their_numbers_and_addresses():
    weights = [torch.rand(2**20) for _ in range(4)]
    before, places = [one.clone() for one in weights], [one.data_ptr() for one in weights]
    pages = use_huge_pages(weights)
    assert [one.data_ptr() for one in weights] == places
    assert all(map(torch.equal, weights, before))
    if sys.platform.startswith("linux"):
        rollup = Path("/proc/self/smaps_rollup").read_text(encoding="utf-8")
        held = int(re.search(r"AnonHugePages:\s+(\d+) kB", rollup)[1])
        assert pages * PAGE_BYTES <= 1024 * held


@pytest.mark.slow
def test_a_cycle_that_is_left_later_is_freed_unasked():
    gc.disable()
    process.freeze_gc()
    left = torch.nn.Identity()
    left.itself, watch = left, weakref.ref(left)
    del left
    kept = [[] for _ in range(2 * gc.get_threshold()[0])]  # so many new ones that it looks
    assert kept
    assert watch() is None

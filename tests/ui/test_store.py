"""Kept runs: bounded, least recently used first, and never found by guessing."""

from __future__ import annotations

import time

import pytest

from transformer import Model
from transformer.ui.store import RunStore, on_cpu, size_of


def test_a_run_is_found_by_its_id_and_by_nothing_else(tiny_model: Model) -> None:
    store = RunStore()
    run = tiny_model.trace("Hello")
    key = store.put(run)
    assert store.run(key) is run
    for guess in ("", key[:-1], None, 0, ["x"]):
        with pytest.raises(ValueError, match="no longer keeps this run"):
            store.run(guess)


def test_ids_are_long_and_differ(tiny_model: Model) -> None:
    store = RunStore()
    run = tiny_model.trace("Hello")
    keys = {store.put(run) for _ in range(20)}
    assert len(keys) == 20
    assert min(map(len, keys)) >= 22  # 128 bits


def test_the_least_recently_used_run_goes_first(tiny_model: Model) -> None:
    store = RunStore(max_items=2)
    run = tiny_model.trace("Hello")
    first, second = store.put(run), store.put(run)
    store.run(first)
    third = store.put(run)
    assert store.run(first) is store.run(third) is run
    with pytest.raises(ValueError, match="no longer keeps"):
        store.run(second)


def test_bytes_are_bounded_but_the_newest_run_stays(tiny_model: Model) -> None:
    run = tiny_model.trace("Hello")
    store = RunStore(max_bytes=size_of(run) // 2)
    first = store.put(run)
    assert store.run(first) is run
    second = store.put(run)
    assert store.run(second) is run
    with pytest.raises(ValueError, match="no longer keeps"):
        store.run(first)


def test_old_runs_go_and_pinned_ones_stay(tiny_model: Model) -> None:
    store = RunStore(max_age_s=0.01)
    run = tiny_model.trace("Hello")
    pinned, other = store.pin(run), store.put(run)
    time.sleep(0.05)
    assert store.run(pinned) is run
    with pytest.raises(ValueError, match="no longer keeps"):
        store.run(other)


def test_a_batch_is_not_a_run(tiny_model: Model) -> None:
    store = RunStore()
    run, batch = store.put(tiny_model.trace("Hi")), store.put(tiny_model.trace(["Hi", "Hello"]))
    with pytest.raises(ValueError, match="belongs to a batch"):
        store.run(batch)
    with pytest.raises(ValueError, match="belongs to a run"):
        store.batch(run)


def test_moving_to_main_memory_changes_no_number(tiny_model: Model) -> None:
    run = tiny_model.generate("Hello", max_new_tokens=3)
    moved = on_cpu(run)
    assert moved.ids == run.ids
    for site in run.trace.sites:
        assert moved.trace[site].weights.equal(run.trace[site].weights)
        assert moved.trace[site].scores.equal(run.trace[site].scores)

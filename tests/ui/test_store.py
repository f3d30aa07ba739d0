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


def kept(store: RunStore, keys: dict[str, str]) -> set[str]:
    return {name for name, key in keys.items() if store.has(key)}


def test_room_is_made_by_runs_that_nobody_looks_at_any_more(tiny_model: Model) -> None:
    run, batch = tiny_model.trace("Hello"), tiny_model.trace(["Hi", "Hello"])
    for limits in ({"max_items": 6}, {"max_bytes": 5 * size_of(run) + size_of(batch)}):
        store = RunStore(**limits)
        keys = {name: store.put(run, "one") for name in ("one's first", "one's second")}
        keys["one's batch"] = store.put(batch, "one")
        keys["gone's"] = store.put(run, "gone")
        keys["two's first"] = store.put(run, "two")
        keys["two's second"] = store.put(run, "two")
        store.leave("gone")
        order = ["gone's", "one's first", "two's first", "one's second", "one's batch"]
        for place, name in enumerate(order):
            keys[f"new {place}"] = store.put(run, f"new visitor {place}")
            assert set(keys) - kept(store, keys) == set(order[: place + 1]), name


def test_what_a_visitor_went_back_to_stays_and_who_came_back_has_not_left(
    tiny_model: Model,
) -> None:
    store, run = RunStore(max_items=4), tiny_model.trace("Hello")
    keys = {name: store.put(run, name[0]) for name in ("a1", "a2", "b1", "b2")}
    store.leave("b")
    store.run(keys["a1"])
    store.run(keys["b2"])
    for name in ("c1", "d1"):
        keys[name] = store.put(run, name[0])
    assert kept(store, keys) == {"a1", "b2", "c1", "d1"}


def test_a_visitor_with_many_runs_pushes_out_nobody_elses(tiny_model: Model) -> None:
    run = tiny_model.trace("Hello")
    store = RunStore(max_bytes=10 * size_of(run))
    class_of_nine = [store.put(run, f"visitor {place}") for place in range(9)]
    for _ in range(30):
        newest = store.put(run, "busy")
    assert all(store.has(key) for key in (*class_of_nine, newest))


def test_only_what_visitors_look_at_may_take_all_the_room(tiny_model: Model) -> None:
    run = tiny_model.trace("Hello")
    store = RunStore(max_bytes=6 * size_of(run), old_bytes=3 * size_of(run))
    older = [store.put(run, "one"), store.put(run, "two")]
    newer = [store.put(run, visitor) for visitor in ("one", "two", "three", "four", "five", "six")]
    assert not any(store.has(key) for key in older)
    assert all(store.has(key) for key in newer)
    store.put(run, "seven")
    assert [store.has(key) for key in newer] == [False, True, True, True, True, True]


def test_all_runs_of_one_answer_stay_when_room_is_short(tiny_model: Model) -> None:
    """Twenty visitors' translations: nobody has used another run since."""
    run = tiny_model.trace("Hello")
    store = RunStore(old_bytes=size_of(run))
    answers = [store.put_all([run] * 4, f"visitor {place}") for place in range(20)]
    assert all(store.has(key) for keys in answers for key in keys)
    later = store.put_all([run] * 2, "visitor 0")
    assert all(store.has(key) for key in later)
    assert not any(store.has(key) for key in answers[0])


def test_an_answer_counts_into_the_share_of_its_visitor(tiny_model: Model) -> None:
    run = tiny_model.trace("Hello")
    store = RunStore(max_own=4)
    first, second, third = (store.put_all([run] * count, "me") for count in (2, 3, 6))
    assert not any(store.has(key) for key in (*first, *second))
    assert all(store.has(key) for key in third)
    assert store.has(store.put(run, "me"))
    assert sum(store.has(key) for key in third) == 3


def test_an_address_has_its_share_and_the_others_runs_stay(tiny_model: Model) -> None:
    run = tiny_model.trace("Hello")
    where = {"greedy 0": "a", "greedy 1": "a", "greedy 2": "a", "other": "b"}
    share = 2 * size_of(run)
    store = RunStore(address_bytes=share, address_of=lambda visitor: where.get(visitor, ""))
    other, nobody = store.put(run, "other"), store.put(run)
    keys = [store.put(run, f"greedy {place}") for place in range(3)]
    assert [store.has(key) for key in keys] == [False, True, True]
    assert store.has(other)
    assert store.has(nobody)
    large = store.put_all([run] * 3, "greedy 0")  # never what has just been made
    assert all(store.has(key) for key in (*large, other))
    assert not any(store.has(key) for key in keys)


def test_runs_of_callers_of_whom_nothing_is_known_take_one_visitors_share(
    tiny_model: Model,
) -> None:
    run = tiny_model.trace("Hello")
    store = RunStore(max_own=3, old_bytes=size_of(run), max_bytes=100 * size_of(run))
    seen = store.put(run, "me")
    keys = [store.put(run) for _ in range(6)]
    assert [store.has(key) for key in keys] == [False] * 3 + [True] * 3
    assert store.has(seen)

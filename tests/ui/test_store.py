"""Kept runs: found by their ids alone, in the server's memory budget."""

import pytest

from transformer import Model
from transformer.ui.errors import RunExpired
from transformer.ui.limits import KEPT, MAX_VISITOR_RUNS
from transformer.ui.memory_budget import ENTRY_BYTES, MemoryBudget
from transformer.ui.store import RunStore, size_of


def test_a_run_is_found_by_its_id_and_by_nothing_else(tiny_model: Model) -> None:
    store = RunStore()
    run = tiny_model.trace("Hello")
    key = store.put(run)
    assert store.run(key) is run
    assert min(len(key), len(store.put(run))) >= 22  # 128 bits
    assert store.put(run) != key
    for guess in ("", key[:-1], None, 0, ["x"]):
        with pytest.raises(RunExpired, match="no longer keeps this run"):
            store.run(guess)


def test_the_least_recently_used_run_is_evicted_unless_pinned(
    tiny_model: Model,
) -> None:
    run = tiny_model.trace("Hello")
    store = RunStore(MemoryBudget(2 * (size_of(run) + ENTRY_BYTES), KEPT))
    pinned, first, second = store.pin(run), store.put(run), store.put(run, "somebody")
    store.run(first)
    third = store.put(run)
    assert [store.has(key) for key in (pinned, first, second, third)] == [True, True, False, True]


def test_a_visitors_runs_are_limited_but_those_of_one_answer_stay(tiny_model: Model) -> None:
    run, store = tiny_model.trace("Hello"), RunStore()
    other, nobody = store.put(run, "other"), [store.put(run) for _ in range(MAX_VISITOR_RUNS + 1)]
    older = [store.put(run, "me") for _ in range(MAX_VISITOR_RUNS)]
    newer = [store.put(run, "me") for _ in range(MAX_VISITOR_RUNS - 1)]
    assert [store.has(key) for key in older] == [False] * (MAX_VISITOR_RUNS - 1) + [True]
    assert all(store.has(key) for key in (other, *nobody, *newer))


def test_a_batch_is_not_a_run(tiny_model: Model) -> None:
    store = RunStore()
    run, batch = store.put(tiny_model.trace("Hi")), store.put(tiny_model.trace(["Hi", "Hello"]))
    with pytest.raises(ValueError, match="belongs to a batch"):
        store.run(batch)
    with pytest.raises(ValueError, match="belongs to a run"):
        store.batch(run)

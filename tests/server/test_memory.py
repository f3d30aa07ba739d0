"""One budget in bytes: what was used least recently goes. Kept runs are found by their ids alone; a
failed allocation costs some of them, and not the answer."""

import time
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from kit import serving
from kit.client import called

from transformer import Model
from transformer.runs.memo import memoize_on_run
from transformer.server.http.errors import NO_MEMORY, Busy, RunExpired
from transformer.server.http.limits import LEFT_AGE_S, MAX_VISITOR_RUNS
from transformer.server.kept import store as stores
from transformer.server.kept.store import ENTRY_BYTES, RUNS, Limits, MemoryBudget, RunStore, size_of

TOO_MANY = 2**50  # bytes
KINDS: dict[str, Callable[[], object]] = {
    "Python": lambda: bytearray(TOO_MANY),
    "NumPy": lambda: np.empty(TOO_MANY, np.uint8),
    "PyTorch": lambda: torch.empty(TOO_MANY, dtype=torch.uint8),
}


def holding_one() -> MemoryBudget:
    budget = MemoryBudget()
    budget.put(RUNS, "kept", "a run", 1000)
    return budget


@pytest.mark.parametrize("allocate", KINDS.values(), ids=KINDS)
def test_kept_runs_are_evicted_when_an_allocation_fails(
    allocate: Callable[[], object],
) -> None:
    budget = holding_one()

    def work() -> str:
        if budget.has(RUNS, "kept"):
            allocate()
        return "done"

    assert budget.failures() == {"failed": 0, "seconds_ago": None}
    assert budget.attempt(work) == "done"
    assert budget.failures()["failed"] == 1
    assert budget.failures()["seconds_ago"] < 60
    with pytest.raises(Busy, match=str(NO_MEMORY)):
        budget.attempt(allocate)
    assert budget.failures()["failed"] == 3


def test_other_errors_are_not_mistaken_for_lack_of_memory() -> None:
    budget = holding_one()
    for error in (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ValueError("memory")):

        def work(error: Exception = error) -> None:
            raise error

        with pytest.raises(type(error), match=str(error)):
            budget.attempt(work)
    assert budget.has(RUNS, "kept")
    assert budget.failures()["failed"] == 0


@pytest.mark.slow
def test_a_server_with_little_memory_answers_after_the_longest_batches(tmp_path) -> None:
    """Its memory holds a few such batches, and not what it would keep of four."""
    lines = ["Once upon a time there was a dog. " * 30] * 8
    with (
        serving.Server(tmp_path / "log", ["stories"], "little_memory") as server,
        server.client(timeout=120) as client,
    ):
        for _ in range(4):
            assert "event: complete" in called(client, "batch", lines, "stories", None)
        assert "event: complete" in called(client, "trace", "The dog", "stories", None)
        health = client.get("health").json()
        assert health["allocations"]["failed"] > 0
        assert health["status"] == "ok"


SIZE = 10_000 - ENTRY_BYTES  # of an entry here; with it, 10,000 bytes


def budget(n_entries: int = 1_000, **kinds: Limits) -> MemoryBudget:
    """With room for so many entries."""
    return MemoryBudget(10_000 * n_entries, kinds or {"run": Limits()})


def fill(
    made: MemoryBudget, keys: Iterable[str], kind: str = "run", owner: str | None = None
) -> None:
    for key in keys:
        made.put(kind, key, key, SIZE, owner)


def kept(of: MemoryBudget, kind: str = "run") -> str:
    return "".join(sorted(map(str, of._entries[kind])))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = SimpleNamespace(now=1_000.0)
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    return made


def test_what_was_used_least_recently_makes_room_whatever_its_kind():
    made = budget(4, run=Limits(), number=Limits())
    for kind, key in (("run", "a"), ("number", "b"), ("run", "c"), ("number", "d")):
        made.put(kind, key, key.upper(), SIZE)
    assert made.get("run", "a") == "A"
    fill(made, "ef")
    assert (kept(made), kept(made, "number")) == ("aef", "d")
    assert made.held() == {
        "run": {"count": 3, "bytes": 30_000},
        "number": {"count": 1, "bytes": 10_000},
    }
    assert made.get("run", "c", "nothing") == "nothing"


def test_a_kind_with_reserved_bytes_uses_no_more_than_them():
    made = budget(4, run=Limits(), model=Limits(most_bytes=20_000))
    fill(made, "abc", "model")
    fill(made, "defg")
    assert (kept(made), kept(made, "model")) == ("fg", "bc")


def test_growth_evicts_others_and_the_newest_always_stays():
    made = budget(3)
    fill(made, "abc")
    made.resize("run", "b", SIZE + 5_000)
    assert kept(made) == "bc"
    made.put("run", "d", "d", 10**6)
    assert kept(made) == "d"
    made.resize("run", "a", 10**6)  # which is kept no longer
    made.discard("run", "d")
    assert made.held()["run"] == {"count": 0, "bytes": 0}


def test_an_owners_least_recently_used_entry_is_evicted_first():
    made = budget(run=Limits(most_own=2), model=Limits())
    fill(made, "x", owner="other")
    fill(made, "ab", owner="me")
    fill(made, "m", "model", "me")
    made.get("run", "a")
    fill(made, "c", owner="me")
    assert kept(made) == "acx"
    assert made.of("run", "me") == ["a", "c"]
    assert made.of("model", "me") == made.of("model") == ["m"]
    made.put("run", "c", "again", SIZE, "me")
    assert made.of("run", "me") == ["a", "again"]


def test_an_owner_that_is_silent_loses_each_kind_at_its_age(clock):
    made = budget(run=Limits(age_s=600), model=Limits(age_s=3600))
    fill(made, "ab", owner="me")
    fill(made, "c", owner="you")
    fill(made, "d")
    fill(made, "m", "model", "me")
    clock.now += 500
    made.get("model", "m")  # a sign of its owner
    assert made.has("run", "c")
    clock.now += 200
    made.sweep()
    assert kept(made) == "ab"
    clock.now += 500
    assert made.get("run", "a") is None
    made.sweep()
    assert (kept(made), kept(made, "model")) == ("", "m")
    clock.now += 3_000
    assert not made.has("model", "m")


def test_entries_of_a_visitor_who_left_expire_unless_used_again(clock):
    made = budget(run=Limits(age_s=600))
    for owner, keys in (("me", "ab"), ("back", "cd"), ("here", "e")):
        fill(made, keys, owner=owner)
    for owner in ("me", "back", "nobody"):
        made.leave(owner)
    clock.now += LEFT_AGE_S - 1
    made.get("run", "c")
    clock.now += 2
    assert kept(made) == "abcde"
    assert made.has_each("run", "abcde") == [False, False, True, True, True]
    assert made.of("run", "me") == []
    made.sweep()
    assert kept(made) == "cde"
    assert list(made._seen) == ["back", "here"]


class Counted(dict[Any, Any]):
    """Counts how many entries were walked over."""

    walked = 0

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            Counted.walked += 1
            yield each

    def values(self) -> Any:
        return (self[key] for key in self)

    def items(self) -> Any:
        return ((key, self[key]) for key in self)

    def move_to_end(self, key: Any) -> None:
        self[key] = self.pop(key)


def test_a_look_costs_the_same_however_many_entries_there_are():
    made = budget(400, run=Limits(), model=Limits())
    fill(made, (f"{place:03}" for place in range(300)), owner="me")
    made._entries["run"] = Counted(made._entries["run"])  # type: ignore[assignment]
    assert made.get("run", "000") == "000"
    assert made.has_each("run", ["001", "x"]) == [True, False]
    assert made.peek("run", "002") == "002"
    assert made.held()["run"]["count"] == 300
    fill(made, ["new"], owner="you")
    made.resize("run", "new", 1)
    made.leave("me")
    made.discard("run", "003")
    assert Counted.walked == 0


def test_the_lock_is_held_briefly_while_runs_are_measured(monkeypatch):
    made = MemoryBudget()
    for place in range(3):
        made.put(RUNS, place, place, 1)

    def measured(_: object) -> int:
        assert not made._lock.locked()
        return 7

    monkeypatch.setattr(stores, "size_of", measured)
    monkeypatch.setattr(stores, "memoized_bytes", measured)
    made.sweep()
    assert made.held()[RUNS] == {"count": 3, "bytes": 3 * (14 + ENTRY_BYTES)}


def test_what_is_memoized_on_runs_is_counted_at_the_next_sweep(tiny_model: Model) -> None:
    run, other, made = tiny_model.trace("Hello"), tiny_model.trace("Hello"), MemoryBudget()
    store = RunStore(made)
    first, second = store.put(run), store.put(other)
    made.most_bytes = made.held()[RUNS]["bytes"]
    memoize_on_run(run, "numbers", lambda: np.zeros(1000, np.uint8))
    assert store.has(first)
    made.sweep()
    assert [store.has(key) for key in (first, second)] == [False, True]


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
    store = RunStore(MemoryBudget(2 * (size_of(run) + ENTRY_BYTES)))
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

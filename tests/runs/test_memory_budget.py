"""One budget in bytes: what was used least recently goes, and each kind keeps its own share."""

from __future__ import annotations

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from transformer import with_lens
from transformer.runs import memory_budget
from transformer.runs.memory_budget import (
    ENTRY_BYTES,
    REMEMBERED,
    Limits,
    MemoryBudget,
    count_in,
    memoize_on_run,
)

SIZE = 10_000 - ENTRY_BYTES  # of an entry here; with it, 10,000 bytes


def budget(n_entries: int = 1_000, **kinds: Limits) -> MemoryBudget:
    """With room for so many entries."""
    return MemoryBudget(10_000 * n_entries, kinds or {"run": Limits()})


def fill(made: MemoryBudget, keys: str, kind: str = "run", owner: str | None = None) -> None:
    for key in keys:
        made.put(kind, key, key, SIZE, owner)


def kept(of: MemoryBudget, kind: str = "run") -> str:
    return "".join(sorted(of.keys(kind)))


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


def test_a_kind_with_bytes_of_its_own_keeps_them_and_takes_no_more():
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


def test_an_owner_has_so_many_and_its_own_least_recently_used_goes():
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
    fill(made, "ab", owner="me")
    fill(made, "c", owner="you")
    made.leave("me", 60)
    made.leave("me", 600)  # which is later
    made.leave("nobody", 60)
    clock.now += 59
    made.get("run", "a")
    clock.now += 2
    made.sweep()
    assert kept(made) == "ac"


# --- what is worked out of a run ---

KINDS = {REMEMBERED: Limits(most_own=3)}


def test_numbers_of_a_run_are_worked_out_once_and_only_the_latest_are_kept(tiny_model):
    run, made = tiny_model.trace("a"), []
    count_in(run, MemoryBudget(10**6, KINDS))

    def asked(key: str) -> None:  # None is an answer too
        return memoize_on_run(run, key, lambda: made.append(key))

    assert [asked(key) for key in "abacadab"] == [None] * 8
    assert "".join(made) == "abcdb"  # b went when d came


def test_of_concurrent_threads_only_one_computes_a_memoized_value(tiny_model, monkeypatch):
    run, made, begun, ready = tiny_model.trace("a"), [], threading.Event(), threading.Event()

    def make() -> int:
        made.append(threading.get_ident())
        begun.set()
        ready.wait(60)
        if len(made) == 1:
            raise ValueError("the first one has left")
        return 7

    with ThreadPoolExecutor(5) as threads:
        first = threads.submit(memoize_on_run, run, "number", make)
        assert begun.wait(60)
        others = [threads.submit(memoize_on_run, run, "number", make) for _ in range(3)]
        assert memoize_on_run(run, "other", lambda: 1) == 1  # does not wait
        ready.set()
        with pytest.raises(ValueError, match="has left"):
            first.result()
        assert [one.result() for one in others] == [7] * 3
    assert len(made) == 2
    monkeypatch.setattr(memory_budget, "TOGETHER_S", 0.01)
    begun.clear()
    ready.clear()
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(memoize_on_run, run, "slow", make)
        assert begun.wait(60)
        assert memoize_on_run(run, "slow", lambda: 8) == 8  # it waits no longer
        ready.set()
        assert slow.result() == 7


@pytest.mark.parametrize("large", [torch.zeros(250_000), [np.zeros((2, 62_500))[:, :1]]])
def test_memoized_values_count_are_evicted_and_go_with_their_run(tiny_model, large):
    """A view counts with all that it is a view of."""
    budget = MemoryBudget(3_200_000, {REMEMBERED: Limits()})
    runs = [tiny_model.trace("a") for _ in range(4)]
    for run in runs:
        count_in(run, budget)
        assert memoize_on_run(run, "large", lambda: large) is large
    held = budget.held()[REMEMBERED]
    assert held["count"] == 3
    assert 3_000_000 < held["bytes"] <= 3_200_000
    del run, runs[1:]
    gc.collect()
    assert budget.held()[REMEMBERED] == {"count": 0, "bytes": 0}  # the first one's made room
    assert memoize_on_run(runs[0], "large", lambda: "anew") == "anew"


def test_a_run_made_of_a_run_counts_once_and_in_the_same_budget(tiny_model):
    run = tiny_model.generate("The fox", max_new_tokens=9)
    budget = MemoryBudget(10**8, {REMEMBERED: Limits()})
    count_in(run, budget)
    lens = memoize_on_run(run, "lens", lambda: with_lens(tiny_model, run))
    assert budget.held()[REMEMBERED]["bytes"] < 50_000  # neither the trace nor the steps again
    memoize_on_run(lens, "more", lambda: torch.zeros(250_000))
    assert 1_000_000 < budget.held()[REMEMBERED]["bytes"] < 1_100_000
    assert not memory_budget.OUTSIDE.of(REMEMBERED, memory_budget.count_in(lens, budget)[1])

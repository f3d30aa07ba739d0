"""One budget in bytes: what was used least recently goes, and each kind keeps its own share."""

import time
from types import SimpleNamespace

import pytest

from transformer.ui.memory_budget import ENTRY_BYTES, Limits, MemoryBudget

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

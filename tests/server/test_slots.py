"""Turns by address and session; what runs long steps aside; results stay the same."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit import aio
from kit.serving import tiny_translator

from transformer.inference.deadline import Deadline, current
from transformer.inference.stream import Stream
from transformer.server.http import requests
from transformer.server.http.errors import Busy
from transformer.server.http.limits import AT_ONCE, MAX_VISITOR_WAITING
from transformer.server.http.requests import (
    STALLED_S,
    OpenRequests,
    address_of,
    set_caller,
    shares,
    stalled,
    taken,
    using,
)
from transformer.server.http.slots import Caller, Place, Slots
from transformer.server.kept.service import Service
from transformer.server.page import presses

WAIT_S = 30
A, B = Caller("a"), Caller("b")
ONE, TWO, THREE = Caller("a", "1"), Caller("a", "2"), Caller("b", "3")


def thread(work: Callable[[], object]) -> threading.Thread:
    started = threading.Thread(target=work, daemon=True)
    started.start()
    return started


Clock = SimpleNamespace


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """In place of time.monotonic: it says `now`."""
    made = SimpleNamespace(now=0.0)
    monkeypatch.setattr("transformer.server.http.slots.time.monotonic", lambda: made.now)
    return made


def served(slots: Slots, clock: Clock, places: list[Place]) -> list[Caller]:
    """Who runs, one after the other, each for a second, until all have."""
    order, left = [], list(places)
    while left:
        (running,) = (one for one in left if one.has)
        order.append(running.caller)
        clock.now += 1
        left.remove(running)
        running.leave()
    assert slots.counts() == {"running": 0, "waiting": 0}
    return order


SHARED: list[dict[str, Any]] = [
    {"at_once": 1, "begun": 2, "slice_s": 1.0},
    {"at_once": 2, "begun": 3, "of_address": 2, "slice_s": 1.0},
    {"at_once": 3, "waiting": 4},
]
CALLERS = st.sampled_from([ONE, TWO, THREE, Caller("c", "4")])
DONE = st.one_of(CALLERS, st.sampled_from(["leave", "aside"]))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(SHARED), st.lists(st.tuples(DONE, st.integers(0, 30)), max_size=40))
def test_slots_are_never_idle_nor_over_their_limits(clock, limits, events):
    slots, here = Slots(**limits), list[Place]()
    for what, number in events:
        clock.now += number / 10
        if isinstance(what, Caller):
            try:
                here.append(slots.join(what))
            except Busy:
                counts = Counter(one.caller.address for one in here if not one.began)
                assert counts.total() == slots.waiting
                assert counts[what.address] >= max(counts.values()) - 1
        elif here and what == "leave":
            here.pop(number % len(here)).leave()
        elif running := [one for one in here if one.has]:
            slots.step_aside(running[number % len(running)])
        here = [one for one in here if not one.refused]
        running = [one for one in here if one.has]
        begun = Counter(one.caller.address for one in here if one.began)
        room, share = slots.begun, slots.of_address
        assert slots.counts() == {"running": len(running), "waiting": len(here) - len(running)}
        assert len(running) <= slots.at_once
        assert begun.total() <= room
        assert max(begun.values(), default=0) <= share
        waiting = [one for one in here if not one.has]
        if len(running) < slots.at_once and waiting:
            assert not any(one.began for one in waiting)
            full = begun.total() == room
            assert full or all(begun[one.caller.address] == share for one in waiting)
    for place in here:
        place.leave()
    assert slots.counts() == {"running": 0, "waiting": 0}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 6), min_size=2, max_size=4))
def test_waiting_addresses_are_served_equally_however_much_they_ask(clock, counts):
    slots = Slots(1)
    callers = [Caller(f"address {place}") for place in range(len(counts))]
    places = [
        slots.join(one) for one, many in zip(callers, counts, strict=True) for _ in range(many)
    ]
    order = served(slots, clock, places)
    for count in range(1, min(counts) * len(counts) + 1):
        found = [order[:count].count(one) for one in callers]
        assert max(found) - min(found) <= 1


def test_nobody_is_served_twice_while_others_wait(clock):
    slots, new = Slots(1), Caller("c")
    places = [slots.join(caller) for caller in (A, A, A, B, B, ONE)]
    for _ in range(2):
        places.pop([one.has for one in places].index(True)).leave()
    assert slots.counts() == {"running": 1, "waiting": 3}
    places.append(slots.join(new))
    assert served(slots, clock, places) == [ONE, new, B, A, A]


def test_a_request_that_has_begun_yields_to_new_ones_and_goes_on_in_turn(clock):
    slots = Slots(1, begun=2, slice_s=0.5)
    begun, other, late = slots.join(A), slots.join(B), slots.join(A)
    assert not slots.step_aside(begun)  # its slice is not over
    clock.now += 0.5
    assert slots.step_aside(begun)
    assert (begun.has, other.has) == (False, True)
    other.leave()
    assert (begun.has, late.has) == (False, True)
    late.leave()
    assert begun.has


@pytest.mark.parametrize(("n_addresses", "begun"), [(14, (12, 6)), (1, (8, 4))])
def test_half_as_many_experiments_begin_two_thirds_of_one_address(clock, n_addresses, begun):
    for name, n_begun in zip(("model", "experiments"), begun, strict=True):
        slots = shares()[name]
        places = [slots.join(Caller(f"address {n % n_addresses}")) for n in range(14)]
        for _ in range(30):
            clock.now += slots.slice_s
            for place in [place for place in places if place.has]:
                slots.step_aside(place)
        assert sum(place.began for place in places) == n_begun


def test_a_line_that_does_not_move_while_requests_wait_is_noticed(clock):
    here = shares()
    slots = here["model"]
    places = [slots.join(A) for _ in range(AT_ONCE)]
    clock.now += 60
    assert stalled(here) == []  # nobody waits
    places.append(slots.join(B))
    clock.now += STALLED_S - 1
    assert stalled(here) == []
    clock.now += 1
    assert stalled(here) == ["model"]
    places[0].leave()  # the next one begins
    assert stalled(here) == []
    for line in ("trainings", "files"):
        for _ in range(4):
            here[line].join(A)
    clock.now += 60
    assert stalled(here) == []


@pytest.mark.parametrize(
    ("greedy", "other"), [(A, B), (Caller("a", "greedy"), Caller("a", "other"))]
)
def test_a_full_line_refuses_the_newest_request_of_the_busiest_caller(greedy, other):
    slots = Slots(1, waiting=5)
    places = [slots.join(greedy) for _ in range(6)]
    with pytest.raises(Busy, match="The server is busy"):
        slots.join(greedy)
    slots.join(other), slots.join(other)
    assert [place.refused for place in places] == [False] * 4 + [True] * 2
    with pytest.raises(Busy):  # it would have as many as the other
        slots.join(other)


def test_a_session_waits_with_so_many_and_an_address_alone_with_all():
    slots = Slots(1, waiting=60)
    for place in range(31):
        slots.join(Caller("a", f"student {place}"))
    for _ in range(MAX_VISITOR_WAITING):
        slots.join(ONE)
    with pytest.raises(Busy, match="Too many of your own requests"):
        slots.join(ONE)
    assert slots.counts() == {"running": 1, "waiting": 30 + MAX_VISITOR_WAITING}


def test_addresses_of_one_ipv6_network_are_one():
    for address in ("2001:db8:1:2::7", "2001:db8:1:2:ffff::1"):
        assert address_of(address) == "2001:db8:1:2::/64"
    assert address_of("127.0.0.2") == "127.0.0.2"
    assert address_of("") == ""


def test_a_cancelled_request_neither_waits_nor_keeps_its_slot():
    slots = Slots(1, begun=2, slice_s=0.0)
    place, none, other = slots.join(A), slots.join(A), slots.join(B)
    none.wait(lambda: False)
    assert slots.counts() == {"running": 1, "waiting": 1}
    place.yield_slot(lambda: False)
    assert (place.has, none.has, other.has) == (False, False, True)
    assert slots.counts() == {"running": 1, "waiting": 0}


def test_time_aside_is_not_counted():
    assert Deadline(0, None, lambda wanted: 0.0).is_over()
    assert not Deadline(0, None, lambda wanted: 60.0).is_over()


@pytest.mark.slow
def test_a_short_request_does_not_wait_for_the_end_of_long_ones(tiny_model, monkeypatch):
    """As many long ones as run at a time, of half a second at least; what they give is the same."""
    service = Service([tiny_model, tiny_translator()])
    monkeypatch.setattr(requests, "SLICE_S", 0.05)
    service.shares = shares()
    settings = {"max_new_tokens": 40, "temperature": 0.9, "seed": 3}
    alone = tiny_model.generate("The fox", **settings)
    quick_next = Stream.__next__
    monkeypatch.setattr(Stream, "__next__", lambda stream: time.sleep(0.015) or quick_next(stream))
    ended: dict[str, float] = {}
    labels: dict[str, list[str]] = {}

    def generate(visitor: str, **changed: int) -> None:
        set_caller(session=visitor)
        with taken(service.shares["model"]):
            answers = presses.generate(service, visitor, "tiny", "The fox", settings | changed)
            *_, last = answers
        labels[visitor] = last["tokens"]["labels"]
        ended[visitor] = time.monotonic()

    long = [thread(lambda name=f"long {n}": generate(name)) for n in range(AT_ONCE)]
    aio.wait_until(lambda: service.shares["model"].counts()["running"] == AT_ONCE)
    thread(lambda: generate("short", max_new_tokens=2)).join(WAIT_S)
    for each in long:
        each.join(WAIT_S)
    assert ended["short"] < min(ended["long 0"], ended["long 1"])
    assert labels["long 0"] == labels["long 1"] == list(alone.labels)
    assert labels["short"] == list(alone.labels[: alone.n_prompt + 2])


def test_holding_one_slot_forbids_waiting_for_another():
    """Two who did so, and one the other way round, would wait for each other for ever."""
    here, before = shares(), current()
    for first, second in (("model", "experiments"), ("experiments", "model")):
        refused = pytest.raises(AssertionError, match="holds a place elsewhere")
        with taken(here[first]), refused, taken(here[second]):
            pass
        with using(here[first].join(A)), refused, taken(here[second]):
            pass
        with taken(here[second]):
            pass
    assert current() is before


def test_the_page_says_that_the_time_limit_was_reached(
    tiny_model, tiny_encoder_decoder, monkeypatch
):
    monkeypatch.setattr(requests.OpenRequests.open.__wrapped__, "__defaults__", (0.0,))
    service, options = Service([tiny_model, tiny_encoder_decoder]), {"max_new_tokens": 12}
    for model, wanted in ((tiny_model, options), (tiny_encoder_decoder, options | {"beams": 3})):
        *_, last = presses.generate(service, "visitor", model.name, "The fox", wanted)
        facts, status = last["tokens"], last["status"]
        assert (facts["stopped"], facts["state"], last["running"]) == ("time", "done", False)
        one_step = model.generate("The fox", **wanted | {"max_new_tokens": 1})
        assert facts["labels"] == list(one_step.labels)  # of a search, the hypotheses so far
        assert "It reached the 20 s that one request may take." in status["text"]


def test_leaving_or_stopping_ends_only_the_visitors_own_requests():
    left: list[str] = []
    here = OpenRequests(left.append)
    for end in (here.leave, here.stop):
        with here.open("a") as mine, here.open("b") as other:
            end("a")
            assert (mine.is_over(), other.is_over()) == (True, False)
    assert left == ["a"]
    here.leave("unknown")
    with here.open("") as patience:  # a tool's call, of no session
        here.leave("")
        assert not patience.is_over()
    assert here._open == []  # no name stays of who has left

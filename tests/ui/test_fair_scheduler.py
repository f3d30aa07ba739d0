"""Fair shares by address and session; what runs long steps aside; results stay the same."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest
from serving import tiny_translator

from transformer import Model
from transformer.inference import generation
from transformer.inference.deadline import Deadline, renewed, until
from transformer.inference.stream import Stream
from transformer.ui import handlers
from transformer.ui.fair_scheduler import Asker, Busy, FairScheduler, Line, Place, Resource
from transformer.ui.limits import AT_ONCE, MAX_VISITOR_WAITING
from transformer.ui.service import Service
from transformer.ui.sessions import address_of, shares

WAIT_S = 30
A, B, C = (Asker(name) for name in "abc")


def wanted() -> bool:
    return True


def thread(work: Callable[[], object]) -> threading.Thread:
    started = threading.Thread(target=work, daemon=True)
    started.start()
    return started


def until_true(asked: Callable[[], object]) -> None:
    give_up = time.monotonic() + WAIT_S
    while not asked():
        assert time.monotonic() < give_up
        time.sleep(0.002)


class Clock:
    """In place of time.monotonic."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("transformer.ui.fair_scheduler.time.monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def served(line: Line, clock: Clock, places: list[Place]) -> list[Asker]:
    """Who runs, one after the other, each for a second, until all have."""
    order, left = [], list(places)
    while left:
        (running,) = (one for one in left if one.has)
        order.append(running.asker)
        clock.now += 1
        left.remove(running)
        running.leave()
    assert line.counts() == {"running": 0, "waiting": 0}
    return order


def test_addresses_and_then_their_sessions_are_served_in_turn(clock: Clock) -> None:
    line = Line(Resource(1))
    one, two, three = Asker("a", "1"), Asker("a", "2"), Asker("b", "3")
    places = [line.join(asker) for asker in (one, one, one, two, two, three, three)]
    assert served(line, clock, places) == [one, three, two, three, one, two, one]


def test_who_used_more_waits_for_who_used_less_but_not_for_who_was_away(clock: Clock) -> None:
    line = Line(Resource(1))
    for _ in range(1000):
        assert served(line, clock, [line.join(A)]) == [A]
    places = [line.join(asker) for asker in (C, A, A, B, B, B)]
    order = served(line, clock, places)
    assert order[:2] == [C, B]
    assert A in order[2:4]  # and not after 1000 s


def test_a_full_line_refuses_the_newest_of_the_address_that_has_most() -> None:
    line = Line(Resource(1, waiting=4))
    told: list[Place] = []
    running = line.join(A)
    places = [line.join(A, told.append) for _ in range(4)]
    with pytest.raises(Busy, match="The server is busy"):
        line.join(A)
    first, second = line.join(B), line.join(B)
    assert told == [places[3], places[2]]
    assert all(place.refused for place in told)
    with pytest.raises(Busy):  # two of each
        line.join(B)
    third = line.join(C)
    assert Counter(place.refused for place in (*places, first, second, third))[True] == 3
    running.leave()
    assert sum(place.has for place in (*places, first, second, third)) == 1


def test_a_full_line_of_one_address_makes_room_for_its_other_sessions() -> None:
    line = Line(Resource(1, waiting=4))
    greedy, other = Asker("a", "greedy"), Asker("a", "other")
    places = [line.join(greedy) for _ in range(5)]
    line.join(other)
    assert [place.refused for place in places] == [False] * 4 + [True]


def test_a_session_waits_with_so_many_and_an_address_alone_with_all() -> None:
    line = Line(Resource(1, waiting=60))
    line.join(Asker("a", "class"))
    for place in range(30):
        line.join(Asker("a", f"student {place}"))
    greedy = Asker("a", "greedy")
    for _ in range(MAX_VISITOR_WAITING):
        line.join(greedy)
    with pytest.raises(Busy, match="Too many of your own requests"):
        line.join(greedy)
    assert line.counts() == {"running": 1, "waiting": 30 + MAX_VISITOR_WAITING}


def test_one_address_does_not_begin_all_that_may_have_begun() -> None:
    line = Line(Resource(3, begun=3, address=2))
    many, other = [line.join(A) for _ in range(3)], line.join(B)
    assert [place.has for place in (*many, other)] == [True, True, False, True]


def test_addresses_of_one_ipv6_network_are_one() -> None:
    for address in ("2001:db8:1:2::7", "2001:db8:1:2:ffff::1"):
        assert address_of(address) == "2001:db8:1:2::/64"
    assert address_of("127.0.0.2") == "127.0.0.2"
    assert address_of("") == ""


def test_who_has_run_long_steps_aside_for_a_new_one_and_then_goes_on(clock: Clock) -> None:
    share = FairScheduler({"one": Resource(1, begun=2, slice_s=0.05)})
    order: list[str] = []

    def short() -> None:
        with share.taken("one", A):
            order.append("short")

    with share.taken("one", A) as place:
        other = thread(short)
        until_true(lambda: share["one"].counts()["waiting"])
        assert place.step_aside(wanted) == 0.0  # its slice is not over
        assert not order
        clock.now += 0.06
        place.step_aside(wanted)
        assert place.has
        order.append("long")
        other.join(WAIT_S)
        clock.now += 0.06
        assert place.step_aside(wanted) == 0.0  # nobody waits
    assert order == ["short", "long"]


def test_who_is_no_longer_wanted_does_not_wait_and_leaves_its_place() -> None:
    share = FairScheduler({"one": Resource(1, begun=2, slice_s=0.0)})
    gone, found = threading.Event(), []

    def unwanted() -> None:
        with share.taken("one", A, lambda: False) as none:
            found.append(none.has)

    with share.taken("one", A) as place:
        thread(unwanted).join(WAIT_S)
        assert found == [False]
        assert place.has
        taken = share.taken("one", B)
        taker = thread(taken.__enter__)
        until_true(lambda: share["one"].counts()["waiting"])
        thread(lambda: (time.sleep(0.05), gone.set()))
        assert place.step_aside(lambda: not gone.is_set()) > 0.04
        assert not place.has
        taker.join(WAIT_S)
    assert share.counts() == {"one": {"running": 1, "waiting": 0}}


def test_a_request_uses_the_place_that_it_came_with() -> None:
    share = FairScheduler({"one": Resource(1), "two": Resource(1)})
    place = share["one"].join(A)
    with share.lent(place), share.taken("one", A) as same, share.taken("two", A) as other:
        assert same is place
        assert other.has
    assert share["one"].counts() == {"running": 0, "waiting": 0}


def test_time_aside_is_not_counted_and_is_asked_for_by_the_innermost() -> None:
    deadline = Deadline(0.05, None, lambda wanted: time.sleep(0.03) or 0.03)
    for _ in range(3):
        assert not deadline.is_over()
    named = Deadline(60, None, lambda wanted: 7.0)
    with until(named), renewed(60) as inherited, renewed(60, lambda wanted: 9.0) as own:
        assert inherited.step_aside is named.step_aside
        assert own.step_aside is not named.step_aside


def test_a_short_request_does_not_wait_for_the_end_of_long_ones(
    tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many long ones as run at a time, of a second each at least; what they give is the same."""
    service = Service([tiny_model, tiny_translator()])
    service.shares = shares(slice_s=0.1)
    settings = {"max_new_tokens": 40, "temperature": 0.9, "seed": 3}
    alone = tiny_model.generate("The fox", **settings)
    quick_next = Stream.__next__

    def slow_next(stream: Stream) -> generation.GenerationStep:
        time.sleep(0.03)
        return quick_next(stream)

    monkeypatch.setattr(Stream, "__next__", slow_next)
    ended: dict[str, float] = {}
    labels: dict[str, list[str]] = {}

    def generate(visitor: str, **changed: int) -> None:
        *_, (facts, status, _) = handlers.generate(
            service, visitor, "tiny", "The fox", settings | changed
        )
        assert facts is not None, status
        labels[visitor] = facts["labels"]
        ended[visitor] = time.monotonic()

    long = [thread(lambda name=f"long {n}": generate(name)) for n in range(AT_ONCE)]
    until_true(lambda: service.shares["model"].counts()["running"] == AT_ONCE)
    asked = time.monotonic()
    generate("short", max_new_tokens=2)
    for each in long:
        each.join(WAIT_S)
    assert ended["short"] - asked < 0.6
    assert ended["short"] < min(ended["long 0"], ended["long 1"])
    assert labels["long 0"] == labels["long 1"] == list(alone.labels)
    assert labels["short"] == list(alone.labels[: alone.n_prompt + 2])


def test_who_holds_a_place_of_the_network_waits_for_no_other_line() -> None:
    """Two who did so, and one the other way round, would wait for each other for ever."""
    here = shares()
    for first, second in (("model", "experiments"), ("experiments", "model")):
        refused = pytest.raises(AssertionError, match=f"waits for {second}")
        with here.taken(first, A), refused, here.taken(second, A):
            pass
        lent = here.lent(here[first].join(A, kind="thread"))
        with lent, pytest.raises(AssertionError), here.taken(second, A):
            pass
        with here.taken(second, A):
            pass

"""What takes long steps aside for others, who do not wait for its end; results stay the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from serving import tiny_translator

from transformer import Model
from transformer.inference import generation
from transformer.inference.deadline import Deadline, renewed, until
from transformer.inference.stream import Stream
from transformer.ui import handlers, turns
from transformer.ui.limits import AT_ONCE, MAX_BEGUN
from transformer.ui.service import Service
from transformer.ui.turns import Turns

WAIT_S = 30


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


def test_who_has_run_long_steps_aside_for_a_new_one_and_then_goes_on() -> None:
    one = Turns(1, most=4, slice_s=0.05)
    order: list[str] = []

    def short() -> None:
        with one.taken(wanted):
            order.append("short")

    with one.taken(wanted) as turn:
        other = thread(short)
        until_true(lambda: len(one._waiting) == 1)
        assert turn.step_aside(wanted) == 0.0  # its slice is not over
        assert not order
        time.sleep(0.06)
        assert turn.step_aside(wanted) > 0.0
        assert turn.has
        order.append("long")
        other.join(WAIT_S)
        assert turn.step_aside(wanted) == 0.0  # nobody waits
    assert order == ["short", "long"]


def test_new_ones_go_first_but_who_stepped_aside_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "PATIENCE_S", 0.3)
    one = Turns(1, most=4, slice_s=0.01)
    order: list[str] = []

    def run(name: str) -> None:
        with one.taken(wanted) as turn:
            order.append(name)
            if name == "old":
                until_true(lambda: one._waiting)
                time.sleep(0.02)
                turn.step_aside(wanted)
                order.append("old again")
            else:
                time.sleep(0.1)

    threads = [thread(lambda: run("old"))]
    until_true(lambda: order)
    for place in range(8):
        threads.append(thread(lambda place=place: run(f"new {place}")))
        time.sleep(0.06)
    for each in threads:
        each.join(WAIT_S)
    place = order.index("old again")
    assert 2 < place < 8
    assert [name for name in order if name.startswith("new")] == [f"new {n}" for n in range(8)]


def test_who_is_no_longer_wanted_does_not_wait_and_leaves_its_place() -> None:
    one = Turns(1, most=4, slice_s=0.0)
    gone = threading.Event()
    with one.taken(wanted) as turn:
        with one.taken(lambda: False) as none:
            assert not none.has
        assert turn.has
        taken = one.taken(wanted)
        taker = thread(taken.__enter__)
        until_true(lambda: one._waiting)
        thread(lambda: (time.sleep(0.05), gone.set()))
        assert turn.step_aside(lambda: not gone.is_set()) > 0.04
        assert not turn.has
        taker.join(WAIT_S)
    assert (one._free, one._waiting) == (0, [])


def test_there_is_room_for_new_ones_beside_those_that_ran_long() -> None:
    two = Turns(2, most=3, slice_s=0.02)
    assert two.room() == 2
    with two.taken(wanted), two.taken(wanted):
        assert two.room() == 2
        time.sleep(0.03)
        assert two.room() == 3  # not 4: `most`
    assert two.room() == 2


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
    monkeypatch.setattr(turns, "SLICE_S", 0.1)
    service = Service([tiny_model, tiny_translator()])
    service.turns["model"] = Turns(AT_ONCE, MAX_BEGUN, 0.1)
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
    until_true(lambda: service.turns["model"].room() > AT_ONCE)
    asked = time.monotonic()
    generate("short", max_new_tokens=2)
    for each in long:
        each.join(WAIT_S)
    assert ended["short"] - asked < 0.5
    assert ended["short"] < min(ended["long 0"], ended["long 1"])
    assert labels["long 0"] == labels["long 1"] == list(alone.labels)
    assert labels["short"] == list(alone.labels[: alone.n_prompt + 2])

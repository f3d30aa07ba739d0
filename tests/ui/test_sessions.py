"""A request ends when its time is up, when it is stopped, and when its visitor leaves."""

from __future__ import annotations

import dataclasses
import threading
from contextvars import copy_context

import pytest
from serving import tiny_translator

from transformer import Model
from transformer.inference.deadline import Deadline, is_over, until
from transformer.ui import handlers, sessions
from transformer.ui.page_data import outcome
from transformer.ui.service import Service
from transformer.ui.sessions import Sessions

SEARCH = {"beams": 3, "length_penalty": 1.0, "max_new_tokens": 20}


@pytest.fixture(scope="module")
def service(tiny_model: Model) -> Service:
    return Service([tiny_model, tiny_translator()])


def test_deadline_tells_time_from_a_raised_flag_and_keeps_the_first_reason() -> None:
    flag = threading.Event()
    deadline = Deadline(3600, flag)
    assert not deadline.is_over()
    flag.set()
    assert (deadline.is_over(), deadline.why) == (True, "cancelled")
    late = Deadline(0, flag := threading.Event())
    assert (late.is_over(), late.why) == (True, "time")
    flag.set()
    assert (late.is_over(), late.why) == (True, "time")


def test_deadline_holds_for_its_own_thread_and_its_own_block_only() -> None:
    seen: list[bool] = []
    with until(Deadline(0)):
        assert is_over()
        other = threading.Thread(target=lambda: seen.append(is_over()))
        other.start()
        other.join()
    assert seen == [False]
    assert not is_over()


def test_a_generation_whose_time_is_up_gives_what_there_is(tiny_model: Model) -> None:
    whole = tiny_model.generate_batch(["The fox", "Hello"], max_new_tokens=9)
    with until(Deadline(0)):
        cut = tiny_model.generate_batch(["The fox", "Hello"], max_new_tokens=9)
    assert all(run.steps for run in whole)
    assert [len(run.steps) for run in cut] == [0, 0]
    assert [run.labels for run in cut] == [run.labels[: run.n_prompt] for run in whole]


def test_a_search_whose_time_is_up_gives_the_hypotheses_so_far(service: Service) -> None:
    model = service.model("tiny-translator")
    with until(Deadline(0)):
        run = model.generate("The fox", **SEARCH)
    assert run.search is not None
    assert len(run.search.tree) == 1
    assert max(len(found.ids) for found in run.search.hypotheses) == 1
    one_step = model.generate("The fox", **{**SEARCH, "max_new_tokens": 1})
    assert run.ids == one_step.ids


def test_the_page_says_that_the_time_was_up(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions.Sessions.request.__wrapped__, "__defaults__", (None, 0.0))
    settings = {"max_new_tokens": 12}
    *_, last = handlers.generate(service, "visitor", "tiny", "The fox", settings)
    facts, status, running = last
    assert facts is not None
    assert (facts["stopped"], facts["state"], running) == ("time", "done", False)
    assert len(facts["labels"]) == facts["n_prompt"] + 1
    assert "It reached the 20 s that one request may take." in status["text"]
    *_, (facts, _, _) = handlers.generate(service, "visitor", "tiny-translator", "The fox", SEARCH)
    assert facts is not None
    assert facts["stopped"] == "time"


def test_stop_ends_what_one_visitor_has_under_way_and_nothing_else(service: Service) -> None:
    settings = {"max_new_tokens": 25}
    mine, other, closed = (
        handlers.generate(service, name, "tiny", "The fox", settings) for name in "abc"
    )

    def asked() -> None:
        next(mine), next(other)
        assert service.sessions.under_way() == 2
        service.sessions.stop("a")
        *_, (facts, status, _) = mine
        assert facts is not None
        assert facts["stopped"] == "cancelled"
        assert "You stopped it." in status["text"]
        *_, (facts, _, _) = other
        assert facts is not None
        assert len(facts["probabilities"]) == 25
        next(closed)
        closed.close()

    copy_context().run(asked)  # two generators of one context end in the order in which they began
    assert service.sessions.under_way() == 0


def test_who_leaves_is_told_to_all_who_must_know() -> None:
    told: list[str] = []
    here = Sessions(told.append)
    with here.request("a") as mine, here.request("b") as other:
        here.leave("a")
        assert mine.is_over()
        assert not other.is_over()
    assert told == ["a"]
    here.leave("unknown")
    with here.request("") as patience:  # a tool's call, of no session
        here.leave("")
        assert not patience.is_over()
    assert here.under_way() == 0


def test_every_reason_for_an_end_has_its_words(tiny_model: Model) -> None:
    run = tiny_model.trace("Hello")
    assert not isinstance(run, list)
    for why in ("end", "length", "cancelled", "time", "read"):
        assert outcome(dataclasses.replace(run, stopped=why), 1.0).endswith(".")

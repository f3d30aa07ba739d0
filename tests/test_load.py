"""The long benchmarks' short forms: visitors at once, of whom each gets its own result, and odd
requests of every kind."""

from __future__ import annotations

import asyncio

import psutil
import pytest
from kit import aio, serving

import transformer
from benchmarks.fuzz import fuzz
from benchmarks.load import load, tasks_for

pytestmark = pytest.mark.slow


def test_visitors_at_once_each_get_what_they_get_alone() -> None:
    server = serving.running()
    tasks = tasks_for([transformer.load("stories"), server.translator], 6)
    report = aio.run(load(server.url, tasks, visitors=6, seconds=4, server=None))
    assert report.failures() == []
    figures = report.figures()
    assert figures["pages_opened"] == 6
    assert figures["generations"] >= 6
    assert figures["clicks"] >= 6
    assert psutil.Process(server.process.pid).memory_info().rss < 1_500_000_000


def test_a_mixed_up_result_is_a_fault() -> None:
    server = serving.running()
    one, other = tasks_for([transformer.load("stories")], 2)
    (mixed,) = [type(one)(chosen=one.chosen, alone=other.alone)]
    report = aio.run(load(server.url, [mixed], visitors=1, seconds=0.2, server=None))
    assert any("other tokens than alone" in fault for fault in report.failures())


def test_odd_requests_from_callers_who_leave_do_the_server_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, sleep = serving.running(), asyncio.sleep
    # Memory, before which it waits long at the end, is judged over many more.
    monkeypatch.setattr(asyncio, "sleep", lambda seconds, *more: sleep(min(seconds, 1), *more))
    found = aio.run(fuzz(server.url, 120, psutil.Process(server.process.pid)))
    faults = [fault for fault in found.faults if not fault.startswith("memory grew")]
    assert faults == []
    assert sum(found.answers.values()) > 55

"""The load benchmark's short form: visitors at once, of whom each gets its own result."""

from __future__ import annotations

import psutil
import pytest
from kit import aio, serving

import transformer
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

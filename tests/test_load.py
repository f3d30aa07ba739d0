"""The load test's short form: a few visitors at once, each gets its own result, none waits long."""

from __future__ import annotations

import httpx
import loops
import psutil
import pytest
import serving

import transformer
from benchmarks import results
from benchmarks.load import load, tasks_for
from benchmarks.load_report import Report
from benchmarks.visitor import page_inputs

pytestmark = pytest.mark.slow


def test_visitors_at_once_each_get_what_they_get_alone() -> None:
    server = serving.running()
    tasks = tasks_for([transformer.load("stories"), server.translator], 6)
    report = loops.run(load(server.url, tasks, visitors=6, seconds=4, server=None))
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
    report = loops.run(load(server.url, [mixed], visitors=1, seconds=0.2, server=None))
    assert any("other tokens than alone" in fault for fault in report.failures())


def test_slow_clicks_and_growing_memory_are_failures() -> None:
    report = Report(visitors=1, seconds=1, clicked=[0.1] * 9 + [3.0] * 2)
    report.memory_settled, report.memory_end = 100_000_000, 122_000_000
    report.kept_settled, report.kept_bytes = 30_000_000, 40_000_000
    assert report.failures() == [
        "95 % of clicks took up to 3.00 s",
        "memory grew from 100 to 122 MB, 10 MB of it kept for visits",
    ]
    assert Report(visitors=1, seconds=1).failures() == ["no visitor came as far as choosing a head"]


def test_a_control_that_the_page_does_not_have_is_an_error() -> None:
    config = httpx.get(f"{serving.running().url}config").json()
    with pytest.raises(ValueError, match="the page has no control 'guess'"):
        page_inputs(config, {"guess": 1})


def test_kept_results_hold_what_was_promised() -> None:
    """The long forms' figures, as `make load` and `make soak` wrote them."""
    kept = results.load()
    every = [(name, figures) for name in ("load", "soak") for figures in kept[name].values()]
    assert every
    for name, figures in every:
        assert figures["faults"] == 0, name
        assert figures["visitors"] >= 60, name
        assert figures["click_p95_s"] < 1, name
        kept = figures["kept_bytes"] - figures.get("kept_settled_bytes", figures["kept_bytes"])
        room = figures["memory_settled_bytes"] + kept
        assert figures["memory_end_bytes"] <= 1.1 * room, name
        assert figures["memory_end_bytes"] < 1_500_000_000, name
        assert figures["start_s"] < 60, name

"""The long benchmark's short form: odd requests of every kind to a server that is busy."""

from __future__ import annotations

import loops
import psutil
import pytest
import serving

from benchmarks.fuzz import fuzz

pytestmark = pytest.mark.slow


def test_odd_requests_from_callers_who_leave_do_the_server_no_harm() -> None:
    server = serving.running()
    found = loops.run(fuzz(server.url, 40, psutil.Process(server.process.pid)))
    faults = [fault for fault in found.faults if not fault.startswith("memory grew")]
    assert faults == []  # memory is judged over many more
    assert sum(found.answers.values()) > 27

"""Messages of the process that trains: each comes as it was sent, and nothing is pickled."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from transformer.learning.plan import Plan
from transformer.learning.record import Report, watched
from transformer.learning.worker import Job, receive, send

LEARNING = Path(__file__).resolve().parents[2] / "transformer" / "learning"
JOB = Job(plan=Plan(task="copy", n_steps=20), question="ab", seconds=2.5, language="xx")


def through(message):
    """What is received of it, of which another message follows and half of a third."""
    file = io.BytesIO()
    send(file, message)
    send(file, ("next", "stop", None))
    whole = file.getvalue()
    file = io.BytesIO(whole + whole[:-1])
    found = receive(file)
    assert receive(file) == ("next", "stop", None)
    receive(file)
    with pytest.raises(EOFError):
        receive(file)
    return found


def test_a_message_comes_as_it_was_sent_and_half_of_one_is_the_end():
    for message in (("a", "begin", JOB), ("b", "ask", "é‹"), ("d", "go", None)):
        assert through(message) == message


def test_reports_come_with_every_number_with_and_without_the_network():
    reports = list(watched(JOB.plan))
    assert [one.weights is not None for one in reports] == [True, True, True]
    sent = reports[-1]
    bare = Report(**{name: getattr(sent, name) for name in sent.__slots__ if name != "weights"})
    for report in (sent, bare):
        key, what, found = through(("k", "report", report))
        assert (key, what) == ("k", "report")
        for name in ("step", "losses", "measurement", "answer"):
            assert getattr(found, name) == getattr(report, name)
        assert found.pictures.keys() == report.pictures.keys()
        for kind, small in report.pictures.items():
            np.testing.assert_array_equal(found.pictures[kind].pixels, small.pixels)
            np.testing.assert_array_equal(found.pictures[kind].masked, small.masked)
        assert (found.weights is None) == (report.weights is None)
        for name, array in (report.weights or {}).items():
            assert found.weights[name].dtype == np.float16
            np.testing.assert_array_equal(found.weights[name], array)


def test_nothing_is_unpickled():
    for path in LEARNING.parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "import pickle" not in text, path
        assert "allow_pickle=True" not in text, path

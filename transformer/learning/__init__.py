"""Watching a small network learn: its recorded states, and the process that trains."""

from transformer.learning.plan import Plan
from transformer.learning.record import Measurement, Record, Snapshot
from transformer.learning.watch import Report, watched

__all__ = ["Measurement", "Plan", "Record", "Report", "Snapshot", "watched"]

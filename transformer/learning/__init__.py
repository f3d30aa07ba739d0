"""Watching a small network learn: its recorded states, and the process that trains."""

from transformer.learning.plan import Plan
from transformer.learning.record import Measurement, Record, Report, Snapshot, watched

__all__ = ["Measurement", "Plan", "Record", "Report", "Snapshot", "watched"]

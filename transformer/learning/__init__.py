"""Watching a small network learn: exercises, stepwise trainings, records, the worker process."""

from transformer.learning.stepwise import Plan, Step, steps
from transformer.learning.training_record import Measurement, Record, Report, Snapshot, watched

__all__ = ["Measurement", "Plan", "Record", "Report", "Snapshot", "Step", "steps", "watched"]

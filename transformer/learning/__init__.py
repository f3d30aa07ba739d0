"""Watching a small network learn: exercises, trainings, records, the worker process."""

from transformer.learning.training import Measurement, Plan, Record, train

__all__ = ["Measurement", "Plan", "Record", "train"]

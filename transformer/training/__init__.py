"""Trainings: recipes for whole models, and exercises that a small network learns in seconds."""

from transformer.training.stepwise import Step, steps

__all__ = ["Step", "steps"]

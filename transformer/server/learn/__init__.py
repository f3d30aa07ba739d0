"""Lessons and trainings, as requests of the tab Learn."""

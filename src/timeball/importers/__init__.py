"""Schedules as people already have them, read and never executed."""

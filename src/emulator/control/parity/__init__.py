"""Counts of production's verdicts so far."""

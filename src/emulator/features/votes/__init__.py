"""Polls: votes, statistics, logs and definitions (rulings P1 to P5)."""

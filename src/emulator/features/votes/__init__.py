"""Polls: one vote per user, statistics, logs, and definitions (rulings P1 to P5)."""

"""Reward codes: reads, validates and uploads sets of codes, and marks winners."""

"""Compares what the sandbox answers with what production would."""

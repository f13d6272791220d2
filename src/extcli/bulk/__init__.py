"""Sending many lines of input: reading, ordering, retrying, reporting and resuming."""

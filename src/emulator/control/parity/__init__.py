"""Counts, by rule, of the requests that production would have handled differently."""

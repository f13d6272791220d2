"""Faults on purpose: delays, refusals, lost answers and lost broadcasts, for tests of an extension."""

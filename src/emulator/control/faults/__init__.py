"""Faults on purpose: delays, refusals, lost responses and lost broadcasts, for tests of an extension."""

"""Pools, the lists that they hand out from, and rosters, on SQLite."""

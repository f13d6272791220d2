"""Registers the contract's modules, which are not named `test_…`, for pytest's assertion messages."""

from __future__ import annotations

import pytest

TOPICS = (
    "assignments",
    "ballots",
    "documents",
    "dump",
    "dump_property",
    "engine",
    "entries",
    "holdings",
    "listing",
    "logs",
    "notes",
    "pools",
    "pools_property",
    "property",
    "purge",
    "relay",
    "rosters",
    "tally",
    "terms",
)

pytest.register_assert_rewrite(*(f"engines.contract_{topic}" for topic in TOPICS))

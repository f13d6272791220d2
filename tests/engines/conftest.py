"""The contract's modules are not named `test_…`, so their assertions are registered here to explain themselves."""

from __future__ import annotations

import pytest

TOPICS = (
    "ballots",
    "documents",
    "engine",
    "entries",
    "holdings",
    "logs",
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

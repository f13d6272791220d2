"""How many random examples a property test tries."""

from __future__ import annotations

import os

ALL = os.environ.get("TEST_EXAMPLES") == "all"
"""Whether this is the part of `make test-all` that tries all examples."""


def examples(number: int) -> int:
    """Return this number in `make test-all`, and a quarter of it otherwise."""
    return number if ALL else max(1, number // 4)

"""How many examples a test tries: random ones of a property, and the rows of a table."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

ALL = os.environ.get("TEST_EXAMPLES") == "all"
"""Whether this is the part of `make test-all` that tries all examples."""


def examples(number: int, *, part: int = 4) -> int:
    """Return this number in `make test-all`, and a quarter (or another `part`) of it otherwise."""
    return number if ALL else max(1, number // part)


def spread(values: Iterable[Any], every: int) -> list[Any]:
    """Leave the first and each `every`th further of these parameters in `make test`, and mark the others as long."""
    parameters = [each if isinstance(each, tuple) else (each,) for each in values]
    return [
        pytest.param(*each, marks=() if at % every == 0 else pytest.mark.long) for at, each in enumerate(parameters)
    ]

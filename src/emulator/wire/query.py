"""Query strings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_plus

from emulator.wire.refusals import too_many_parameters

MAX_PARAMETERS: Final = 1_000
_MAX_CACHED_LENGTH: Final = 256


def query_of(raw: bytes) -> Mapping[str, str]:
    """Parse a query string. The first of a repeated name wins; invalid UTF-8 is replaced.

    Raises `BadRequest` for over 1,000 parameters.
    """
    return _cached(raw) if len(raw) <= _MAX_CACHED_LENGTH else _parsed(raw)


def _parsed(raw: bytes) -> Mapping[str, str]:
    query: dict[str, str] = {}
    if raw:
        parts = raw.decode("latin-1").split("&")
        if len(parts) > MAX_PARAMETERS:
            raise too_many_parameters(count=len(parts), limit=MAX_PARAMETERS)
        for part in parts:
            name, _, value = part.partition("=")
            if "%" in part or "+" in part:
                name, value = unquote_plus(name), unquote_plus(value)
            query.setdefault(name, value)
    return query


_cached: Final = lru_cache(maxsize=1024)(_parsed)
"""A crowd sends the same few queries."""

"""Query strings."""

from __future__ import annotations

from urllib.parse import unquote_plus


def query_of(raw: bytes) -> dict[str, str]:
    """Parse a query string. The first of a repeated name wins; invalid UTF-8 is replaced."""
    query: dict[str, str] = {}
    if raw:
        for part in raw.decode("latin-1").split("&"):
            name, _, value = part.partition("=")
            if "%" in part or "+" in part:
                name, value = unquote_plus(name), unquote_plus(value)
            query.setdefault(name, value)
    return query

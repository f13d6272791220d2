"""Instants as people write them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from emulator.errors import invalid_member


def instant_of(given: int | str) -> int:
    """Return an instant in Unix ms: a number as it is, or a date and time in ISO 8601, in UTC without an offset.

    Raises `BadRequest`.
    """
    if isinstance(given, int):
        return given
    if given.lstrip("-").isdecimal() and given.isascii() and len(given) < 20:
        return int(given)
    try:
        instant = datetime.fromisoformat(given)
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=UTC)
        return round(instant.timestamp() * 1_000)
    except (ValueError, OverflowError):
        detail = f"{given[:40]!r} is not Unix ms, a time such as 2030-01-31T18:00:00Z, or system"
        raise invalid_member("set", detail) from None

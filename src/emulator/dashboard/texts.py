"""Filters of the templates: times, sizes and names as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from shlex import quote
from typing import Any, Final

from markupsafe import Markup, escape

from emulator.clock import DAY, HOUR, MINUTE, SECOND
from emulator.engines.base import NEVER

_UNITS: Final = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))
_LONGEST: Final = 200


def duration(ms: int) -> str:
    """Return a duration with its largest two units, such as `3 h 20 min`."""
    for (unit, name), (smaller, smaller_name) in pairwise(_UNITS):
        if abs(ms) >= unit:
            count, rest = divmod(abs(ms), unit)
            return f"{count} {name} {rest // smaller} {smaller_name}" if rest >= smaller else f"{count} {name}"
    return f"{abs(ms) // SECOND} s"


def ago(at: int, now: int) -> str:
    """Return how long before `now` an instant (Unix ms) was, or how long after."""
    return f"in {duration(at - now)}" if at > now else f"{duration(now - at)} ago"


def until(at: int, now: int) -> str:
    """Return the time until something expires, or `never`."""
    return "never" if at >= NEVER else "expired" if at <= now else f"in {duration(at - now)}"


def instant(at: int) -> str:
    """Return an instant (Unix ms) in UTC, with milliseconds."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{at % 1000:03d} UTC"


def size(count: int) -> str:
    """Return a number of bytes, such as `3.5 KiB`."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def number(count: int) -> str:
    """Return an integer with separators."""
    return f"{count:,}"


def text(value: Any, most: int = _LONGEST) -> Markup:
    """Return a text of a client, isolated from the direction of the text around it, and cut at `most` characters."""
    shown = str(value)
    end = "…" if len(shown) > most else ""
    return Markup("<bdi>{}</bdi>").format(escape(shown[:most] + end))


FILTERS: Final = {
    "duration": duration,
    "ago": ago,
    "until": until,
    "instant": instant,
    "size": size,
    "number": number,
    "text": text,
    "quoted": quote,
}

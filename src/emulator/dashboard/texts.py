"""Filters of the templates: times, sizes and names as people read them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from typing import Any

import msgspec
from markupsafe import Markup, escape

from emulator.contract.parity import outcome_of, rule_of
from emulator.core.clock import DAY, END_OF_TIME, HOUR, MINUTE, SECOND
from emulator.core.keys import NEVER
from emulator.dashboard.json_text import escape_reordering

_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))
_MAX_CHARACTERS = 200
_BRACKETS = re.compile(r"[\[\]{}]")
_NUMBER_ARRAY = re.compile(r"\[\n\s*-?[\d.eE+-]+(?:,\n\s*-?[\d.eE+-]+)*\n\s*\]")
"""An array of numbers with a line for each; JSON has no line breaks in texts."""
_JSON_TOKENS = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|-?\d[\d.eE+-]*|true|false|null')
_MAX_COLOURED = 20_000
_MAX_DEPTH = 40
"""Levels of JSON that are indented: the space before a line grows with each."""


def duration(ms: int) -> str:
    """Return a duration with its largest two units, such as `3 h 20 min`."""
    for (unit, name), (smaller, smaller_name) in pairwise(_UNITS):
        if abs(ms) >= unit:
            count, rest = divmod(abs(ms), unit)
            return f"{count} {name} {rest // smaller} {smaller_name}" if rest >= smaller else f"{count} {name}"
    return f"{abs(ms) // SECOND} s"


def ago(at: int, now: int) -> str:
    """Return how long before `now` something happened (Unix ms). The clock may have been set back since."""
    return f"{duration(at - now)} ahead of the clock" if at > now else f"{duration(now - at)} ago"


def until(at: int, now: int) -> str:
    """Return the time until something expires, or `never`."""
    return "never" if at >= NEVER else "expired" if at <= now else f"in {duration(at - now)}"


def countdown(ms: int) -> str:
    """Return the time that is left, such as `23:17`; `dashboard.js` counts it down."""
    return duration(ms) if ms >= DAY else instant(max(0, ms))[11:19].removeprefix("00:")


def instant(at: int) -> str:
    """Return an instant (Unix ms) in UTC, with milliseconds. The calendar ends with the year 9999."""
    if at >= END_OF_TIME:
        return "after the year 9999"
    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{at % 1000:03d} UTC"


def size(count: int) -> str:
    """Return a number of bytes, such as `3.5 KiB`."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def text(value: Any, most: int = _MAX_CHARACTERS) -> Markup:
    """Return a text of a client, isolated from the direction of the text around it, and cut at `most` characters."""
    shown = str(value)
    end = "…" if len(shown) > most else ""
    return Markup(f"<bdi>{escape(shown[:most] + end)}</bdi>")


def prose(value: str, most: int = 2_000) -> Markup:
    """Return a text of the documentation, with the parts between backticks as code, cut at `most` characters.

    It may quote a client, so characters that reorder text are escaped.
    """
    parts = escape_reordering(value if len(value) <= most else f"{value[:most]}…").split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)
    )


def pretty(content: str) -> str:
    """Return JSON with line breaks and indents; other text, and JSON that is nested too deeply, unchanged.

    Characters that reorder text are escaped.
    """
    content = escape_reordering(content)
    depths = accumulate(1 if each in "[{" else -1 for each in _BRACKETS.findall(content))
    if not content.startswith(("{", "[")) or max(depths, default=0) > _MAX_DEPTH:
        return content
    try:
        return _NUMBER_ARRAY.sub(_on_one_line, msgspec.json.format(content, indent=2))
    except (msgspec.DecodeError, RecursionError):
        return content


def _on_one_line(numbers: re.Match[str]) -> str:
    line = " ".join(numbers[0].split())
    return line.replace("[ ", "[").replace(" ]", "]")


def coloured(content: str) -> Markup:
    """Return JSON with its names, texts and other values in elements of their own; a long text as it is."""
    if len(content) > _MAX_COLOURED:
        return escape(content)
    shown, end = Markup(), 0
    for found in _JSON_TOKENS.finditer(content):
        kind = "n" if found[1] is None else "k" if found[2] else "s"
        shown += escape(content[end : found.start()])
        shown += Markup('<span class="{}">{}</span>').format(kind, found[0])
        end = found.end()
    return shown + escape(content[end:])


def offset(ms: int) -> str:
    """Return how far the service's clock is ahead of or behind the system's, in words."""
    return "none" if abs(ms) < SECOND else f"{duration(ms)} {'ahead' if ms > 0 else 'behind'}"


def verdict(production: str) -> str:
    """Return production's verdict in words; the argument is the header `X-Emulator-Production`."""
    outcome, rule = outcome_of(production), rule_of(production)
    words = {"refuse": "production refuses this", "unknown": "production: unknown", "differ": "production differs"}
    said = words.get(outcome, outcome)
    return f"{said}: {rule}" if rule else said


def select_options(values: Iterable[str]) -> list[tuple[str, str]]:
    """Return the options of a select element as value and label."""
    return [(value, value) for value in values]


FILTERS = {
    each.__name__: each
    for each in (
        offset, verdict, select_options, prose, pretty, duration, ago, coloured, until, countdown, instant, size,
        text,
    )
} | {"number": "{:,}".format}  # fmt: skip

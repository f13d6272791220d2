"""Parses and formats durations (`5m`, `1h30m`) and instants (`2026-11-20T20:15`).

Values are integer milliseconds. Nothing here reads the clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from extcli.errors import UsageError, shortened

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION_FORMS = "write it like 500ms, 30s, 5m, 1h30m, 8d or 2w"
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")
_FIRST_MILLISECONDS = 1e11
_DATE_OF_DIGITS = re.compile(r"(19|20|21)\d\d((0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])((\d\d){2,3})?)?")
"""A year, a date or a time in digits alone, such as 20261224: as Unix time it is hardly ever meant."""
FORMS = 'RFC 3339, local time ("2026-11-22 18:00"), a duration from now, or Unix time'
"""What `parse_instant` accepts, for the help of options."""
FORMS_AGO = 'RFC 3339, local time ("2026-11-22 18:00"), a duration such as 2h (that long ago), or Unix time'
"""The same for an option that looks back."""
_LONGEST_DURATION = 3_652_500 * _UNITS["d"]
"""The longest duration: ten thousand years, in ms. Clocks end with the year 9999."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_duration(text: str, *, bare: str | None = None) -> int:
    """Parse `500ms`, `5m`, `1h30m`, `8d` to ms. A number without a unit is in the unit `bare`, or is an error.

    Raises `UsageError`, also above `_LONGEST_DURATION`.
    """
    compact = text.strip().lower()
    if bare and re.fullmatch(r"\d+(\.\d+)?", compact):
        compact += bare
    if not compact or _PART.sub("", compact):
        raise UsageError(f"{shortened(text)!r} is not a duration", fix=_DURATION_FORMS)
    length = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(compact))
    if length > _LONGEST_DURATION:
        raise UsageError(
            f"the duration {shortened(text, 40)!r} is longer than 3652500d, ten thousand years", fix=_DURATION_FORMS
        )
    return round(length)


def parse_instant(text: str, now: Callable[[], int], *, ago: bool = False) -> int:
    """Parse RFC 3339, a duration from now, or Unix time (seconds below 1e11, otherwise ms) to Unix ms.

    A time without a zone is local time. `now` is called only for a duration, which may have a sign; without one, an
    option that looks back takes it as `ago`.
    """
    compact = text.strip().upper()
    if _DATE_OF_DIGITS.fullmatch(compact):
        raise UsageError(
            f"{compact} may be a date or Unix time", fix=f"write a date like 2026-12-24, and Unix time as {compact}.0"
        )
    try:
        if re.fullmatch(r"-?[0-9]{1,20}(\.[0-9]+)?", compact):
            number = float(compact)
            return int(number if abs(number) >= _FIRST_MILLISECONDS else round(number * 1000))
        if compact[-1:] in ("S", "M", "H", "D", "W"):
            back = compact[0] == "-" if compact[0] in "+-" else ago
            length = parse_duration(compact[1:] if compact[0] in "+-" else compact)
            return now() - length if back else now() + length
        return (datetime.fromisoformat(compact).astimezone() - _EPOCH) // timedelta(milliseconds=1)
    except (UsageError, ValueError, OverflowError):
        raise UsageError(
            f"{shortened(text)!r} is not a point in time",
            fix='write local time ("2026-11-22 18:00"), RFC 3339 (2026-11-22T18:00:00Z), a duration (5m) or Unix time',
        ) from None


def utc_text(milliseconds: int) -> str:
    """Format an instant in UTC: `2026-11-20 20:15:00.250Z`. A fraction of zero is left out."""
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return moment.strftime("%Y-%m-%d %H:%M:%S") + (f".{milliseconds % 1000:03d}Z" if milliseconds % 1000 else "Z")


def time_of_day(milliseconds: int) -> str:
    """Format the time of day of an instant, in UTC and always to the millisecond: `20:15:00.000`."""
    try:
        return (_EPOCH + timedelta(milliseconds=milliseconds)).time().isoformat("milliseconds")
    except OverflowError:
        return str(milliseconds)


def duration_text(milliseconds: int) -> str:
    """Format a duration by its two largest units: `8d`, `1h 30m`, `250ms`."""
    rest, parts = abs(milliseconds), []
    if rest >= 60_000:
        rest = round(rest, -3)
    for unit in ("d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"


def clock_offset_text(offset: int) -> str:
    """Say how far a clock is from the real time: `8d ahead`, `5m behind`; empty if it is not."""
    return f"{duration_text(offset)} {'ahead' if offset > 0 else 'behind'}" if offset else ""


def claim_instant(claim: object) -> int | None:
    """Return a JWT claim in Unix seconds, as ms; `None` if it is not a plausible time."""
    if isinstance(claim, bool) or not isinstance(claim, int | float) or not abs(claim) < 1e15:
        return None
    return int(claim * 1000)

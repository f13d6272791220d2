"""What CSV files have in common: their delimiter, and lines of headings."""

from __future__ import annotations

import re
from collections.abc import Iterable

HEADINGS = {
    *("code", "codes", "user", "users", "user_id", "user_ids", "userid", "identifier", "id"),
    *("viewer", "viewers", "viewer_id", "voter", "voters", "opaque_id", "opaque_user_id"),
}
"""Usual headings of columns with codes or users, in small letters."""
_DELIMITER = re.compile('"(?:[^"]|"")*"|([,;\t])')


def delimiter_of(line: str) -> str:
    """Return the delimiter of a file with this first line: the first comma, semicolon or tab outside of quotes."""
    return next((found[1] for found in _DELIMITER.finditer(line) if found[1]), ",")


def is_heading(cell: str) -> bool:
    """Return whether a cell or line in the first line of a file is a usual heading, in any spelling."""
    return cell.strip().casefold().replace(" ", "_") in HEADINGS


def may_be_headings(row: Iterable[str]) -> bool:
    """Return whether the first row of a file may be headings: it has a usual one, or no digit, unlike ids."""
    return any(map(is_heading, row)) or not any(map(str.isdigit, "".join(row)))

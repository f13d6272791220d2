"""Writes docs/decisions/README.md, the list of all decisions: `make docs`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "decisions"
PAGE = FOLDER / "README.md"

HEAD = """\
# Decisions

Why the unusual parts are as they are. A decision that another one replaces stays, and says which.

| Decision | Status |
|---|---|
"""


def page() -> str:
    """Return the list. Raises `ValueError` for a decision without number, title, status or date."""
    return HEAD + "".join(f"{row}\n" for row in _rows())


def _rows() -> Iterator[str]:
    for number, path in enumerate(sorted(FOLDER.glob("[0-9]*.md")), start=1):
        head = rf"# {number:04} (.+)\n\n\*(Accepted|Replaced by \d{{4}}) (\d{{4}}-\d\d-\d\d)\.\*\n\n"
        found = re.match(head, path.read_text())
        if found is None or not path.name.startswith(f"{number:04}-"):
            raise ValueError(f"{path.name} does not begin with number {number:04}, title, status and date")
        title, status, day = found.groups()
        yield f"| [{number:04} {title}]({path.name}) | {status}, {day} |"


if __name__ == "__main__":
    PAGE.write_text(page())

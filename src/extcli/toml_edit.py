"""Edits TOML files and keeps their layout and comments."""

from __future__ import annotations

from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError

from extcli import atomic_file
from extcli.errors import UsageError


def parse(path: Path, text: str) -> tomlkit.TOMLDocument:
    """Parse the text of a file for editing. Raises `UsageError`."""
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise UsageError(f"{path} is not TOML: {str(error).splitlines()[0]}") from None


def append(text: str, tables: tomlkit.TOMLDocument) -> str:
    """Return the text of a file with these tables appended after a blank line."""
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}{tomlkit.dumps(tables)}"


def save(path: Path, text: str, *, table: str, as_intended: bool, unchanged: bool) -> None:
    """Replace the file with an edited text.

    Raises `UsageError` if that fails, or if one of the caller's two checks is false.
    `as_intended`: the text parses to the intended content; tomlkit cannot edit every layout.
    `unchanged`: the file is still as it was before the edit.
    """
    if not as_intended:
        raise UsageError(f"{path}: cannot edit the layout of {table}", fix=f"write one table [{table}.NAME] per entry")
    if not unchanged:
        raise UsageError(f"{path} was changed by another program", fix="run the command again")
    atomic_file.save(path, text)

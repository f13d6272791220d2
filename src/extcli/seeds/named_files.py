"""The files that a seed names: where they may be, and which may be replaced."""

from __future__ import annotations

import re
from pathlib import Path

from extcli.reading import user_files

_TOKEN = re.compile(rb"\s*(?:[\w-]+\.[\w-]+\.[\w-]*)?\s*")


class Place:
    """The folder of a seed. A seed of another author must not reach the files outside."""

    def __init__(self, folder: Path, *, trusted: bool) -> None:
        """A `trusted` seed may name any file."""
        self._folder = folder
        self._trusted = trusted

    def path(self, name: str) -> Path:
        """Return the path of a file that the seed names."""
        return self._folder / name

    def problem_of(self, name: str) -> str:
        """Return why the seed may not name this file; empty if it may."""
        if self._trusted or user_files.is_inside(name, self._folder):
            return ""
        return (
            f"{self.path(name)} is outside the folder of the seed, or behind a symbolic link; --trust-seed allows that"
        )


def problem_of_reading(file: Path) -> str:
    """Return why a file cannot be read; empty if it can. A device or a pipe might never end."""
    try:
        user_files.opened(file).close()
    except OSError as error:
        return f"cannot read {file}; {error.strerror}"
    return ""


def problem_of_replacing(file: Path) -> str:
    """Return why a file must not be replaced by a token: it holds something else. Empty if it may."""
    if not file.exists():
        return ""
    try:
        is_token = _TOKEN.fullmatch(user_files.content(file, user_files.SECRET)) is not None
    except OSError as error:
        return f"{file} exists, and cannot be replaced: {error.strerror}"
    return "" if is_token else f"{file} exists and holds no token, so it is not replaced; delete it first"

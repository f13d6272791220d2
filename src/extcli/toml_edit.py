"""Edits TOML files and keeps their layout and comments."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import filelock
import tomlkit
from tomlkit.exceptions import TOMLKitError

from extcli import atomic_file
from extcli.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")
_LOCK_SECONDS = 30.0


def in_turn(edit: Callable[Concatenate[Path, P], T]) -> Callable[Concatenate[Path, P], T]:
    """Let one process at a time run an edit of a file, from reading it to replacing it, so that no change is lost.

    The file is the first argument. The lock is a hidden file next to it, which the edit deletes at its end.
    """

    @wraps(edit)
    def run(path: Path, /, *args: P.args, **options: P.kwargs) -> T:
        target = path.resolve()
        if not target.parent.is_dir():  # the edit says so
            return edit(path, *args, **options)
        lock = filelock.FileLock(target.with_name(f".{target.name}.lock"), timeout=_LOCK_SECONDS)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise UsageError(
                f"{path} has been locked for {_LOCK_SECONDS:g} s", fix="wait for the other extcli to end, or end it"
            ) from None
        except OSError as error:
            raise atomic_file.cannot_be_written(path, error) from None
        try:
            return edit(path, *args, **options)
        finally:
            with suppress(OSError):  # Windows deletes no open file
                os.unlink(lock.lock_file)  # while it is locked: another process that waits for it opens a new one
            lock.release()

    return run


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


def save(path: Path, text: str, *, table: str, as_intended: bool) -> None:
    """Replace the file with an edited text.

    Raises `UsageError` if that fails, or unless the text parses `as_intended`: tomlkit cannot edit every layout.
    """
    if not as_intended:
        raise UsageError(f"{path}: cannot edit the layout of {table}", fix=f"write one table [{table}.NAME] per entry")
    atomic_file.save(path, text)

"""Backs up a database file while a service uses it."""

from __future__ import annotations

import json
import os
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from emulator.engines.sqlite.connection import FAILURES, explain
from emulator.engines.sqlite.files.copying import (
    LOGS,
    DamagedCopy,
    check_exists,
    check_regular,
    copied,
    open_read_only,
    put,
    remove_parts,
)
from emulator.engines.sqlite.files.facts import Facts, facts_of
from emulator.errors import EngineError

_ABANDONED: Final = 3_600_000
"""In ms. A backup writes to its copy all the time, so one that is this old is of a backup that was killed."""


class Backup(NamedTuple):
    """A finished backup."""

    target: Path
    facts: Facts


def back_up(path: str, target: Path, *, now: int, replace: bool) -> Backup:
    """Copy the database to a new file, checked and on the disk. Raises `EngineError`; then there is no new file.

    The copy has everything that was committed when this began. An existing file is only replaced with `replace`.
    """
    check_exists(path)
    check_regular(target)
    is_there = os.path.exists(target)
    if is_there and not replace:
        raise EngineError(f"{target} exists already; give another name, or --force to replace it")
    if is_there and os.path.samefile(path, target):
        raise EngineError(f"{target} is the data itself; give another name")
    for log in [f"{target}{end}" for end in LOGS]:
        if os.path.exists(log) and os.path.getsize(log):  # it would be applied to the copy
            raise EngineError(f"{log} exists: a program uses {target}, or was killed; give another name")
    remove_parts(target, before=(now - _ABANDONED) / 1_000)
    try:
        with copied(path, target) as copy:
            with closing(open_read_only(str(copy))) as connection:
                facts = facts_of(connection, str(copy))
            put(copy, target, replace=replace)
    except DamagedCopy as error:
        raise EngineError(f"cannot back up {path}: it is corrupt ({error}); run extcli data verify {path}") from None
    except FAILURES as error:
        raise EngineError(f"cannot back up {path}: {explain(error, path)}") from error
    except OSError as error:
        raise EngineError(f"cannot write {target}: {error.strerror}") from error
    _note(path, target, now)
    return Backup(target, facts)


def note_path(path: str) -> str:
    """Return the file that names the latest backup."""
    return f"{os.path.abspath(path)}-backup"


def latest_backup(path: str) -> dict[str, Any] | None:
    """Return the `file` of the latest backup and when it was made (`at`, Unix ms); `None` if that is unknown."""
    try:
        with open(note_path(path), "rb") as file:
            note = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    match note:
        case {"at": int(at), "file": str(name)}:
            return {"at": at, "file": name}
    return None


def _note(path: str, target: Path, now: int) -> None:
    """Remember the backup beside the data, where that is possible: it is for people only."""
    with suppress(OSError), open(note_path(path), "w", encoding="utf-8") as file:
        json.dump({"at": now, "file": os.path.abspath(target)}, file)

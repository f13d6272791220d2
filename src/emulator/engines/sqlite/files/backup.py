"""Backs up a database file while a service uses it."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from emulator.engines.sqlite.connection import FAILURES, explain
from emulator.engines.sqlite.files.copying import (
    LOGS,
    check_exists,
    check_regular,
    copied,
    put,
    remove_parts,
)
from emulator.engines.sqlite.files.facts import Facts
from emulator.engines.sqlite.files.verification import Verified, verify
from emulator.engines.sqlite.schema import UnusableDatabase
from emulator.errors import EngineError

_ABANDONED: Final = 3_600_000
"""In ms. Where there are no locks, a copy that was not written to for so long is of a backup that was killed."""


class Backup(NamedTuple):
    """A finished backup."""

    target: Path
    facts: Facts


def back_up(path: str, target: Path, *, now: int, replace: bool) -> Backup:
    """Copy the database to a new file, verified and on the disk. Raises `EngineError`; then there is no new file.

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
        with copied(path, target, checked=False) as copy:
            verified = verify(str(copy))
            if verified.facts is None:
                raise _corrupt(path, verified)
            put(copy, target, replace=replace)
    except UnusableDatabase as error:
        raise EngineError(f"cannot back up {path}: {error}") from None
    except FAILURES as error:
        raise EngineError(f"cannot back up {path}: {explain(error, path)}") from error
    except OSError as error:
        raise EngineError(f"cannot write {target}: {error.strerror}") from error
    _note(path, target, now)
    return Backup(target, verified.facts)


def _corrupt(path: str, verified: Verified) -> EngineError:
    count = len(verified.findings)
    found = next(" ".join(each for each in finding if each) for finding in verified.findings)
    more = f", and {count - 1} more" if count > 1 else ""
    return EngineError(f"cannot back up {path}: it is corrupt ({found}{more}); run extcli data verify {path}")


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

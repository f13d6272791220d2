"""Backs up a database file while a service uses it, and replaces one with a backup; the former file is kept."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkstemp
from typing import NamedTuple, TypedDict

import msgspec

from emulator.core.errors import EngineError
from emulator.storage.sqlite.connection import FAILURES, file_errors, is_busy
from emulator.storage.sqlite.locks import service_lock
from emulator.storage.sqlite.verification import (
    FileFacts,
    check_exists,
    check_regular,
    describe_file,
    open_read_only,
    verify_file,
)

_LOG_ENDINGS = ("-wal", "-journal")
"""The endings of the names of the files that a database has next to it until it is closed.

They belong to its content, unlike `-shm`, which is only an index of `-wal`.
"""
_PART_ENDING = ".extcli-part"
"""How the name of an unfinished copy ends. No other program's files do."""
_ABANDONED_AFTER = 3_600_000
"""In ms. A copy that was not written to for so long is of a command that was killed."""


def back_up(path: str, target: Path, *, now: int, replace: bool) -> FileFacts:
    """Copy the database to a new file, verified and on the disk. Raises `EngineError`; then there is no new file.

    The copy has everything that was committed when this began. An existing file is only replaced with `replace`.
    """
    check_exists(path)
    check_regular(target)
    if os.path.lexists(target) and not replace:
        raise EngineError(f"{target} exists already; choose another name, or replace it with --force")
    if os.path.exists(target) and os.path.samefile(path, target):
        raise EngineError(f"{target} is the data file itself; choose another name")
    for log in [f"{target}{end}" for end in _LOG_ENDINGS]:
        if os.path.exists(log) and os.path.getsize(log):  # it would be applied to the copy
            raise EngineError(f"{log} exists, so a program uses {target} or was killed; choose another name")
    with file_errors(f"cannot back up {path} to {target}", path), _new_copy(path, target, now) as copy:
        if findings := verify_file(copy):
            raise EngineError(f"cannot back up {path}: it is corrupt ({findings[0]}); run extcli data verify {path}")
        facts = describe_file(copy)
        os.replace(copy, target)
        _sync_folder(target.parent)
    _note_backup(path, target, now)
    return facts


@contextmanager
def _new_copy(source: str, target: Path, now: int) -> Iterator[str]:
    """Copy a database to a new file next to `target`, on the disk; yield its path. Writers are not blocked.

    The copy has all data that was committed when this began, and is one file without a log. The file is deleted at the
    end of the block unless it was moved.
    """
    for part in target.parent.glob(f".*{_PART_ENDING}*"):
        with suppress(OSError):
            if part.stat().st_mtime * 1_000 < now - _ABANDONED_AFTER:
                part.unlink()
    descriptor, name = mkstemp(prefix=f".{target.name}-", suffix=_PART_ENDING, dir=target.parent)
    os.close(descriptor)
    try:
        with closing(open_read_only(source)) as reading, closing(sqlite3.connect(name, isolation_level=None)) as copy:
            reading.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
        yield name
    finally:
        _remove_files(name, "", *_LOG_ENDINGS, "-shm")


def _remove_files(path: str | Path, *ends: str) -> None:
    for end in ends:
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{end}")


def _sync_folder(folder: Path) -> None:
    """Have the disk write the names in a directory. Windows does this by itself."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _note_path(path: str) -> str:
    """Return the file that names the latest backup."""
    return f"{os.path.abspath(path)}-backup"


class Backup(TypedDict):
    """The latest backup of a file."""

    at: int
    """In Unix ms."""
    file: str


def latest_backup(path: str) -> Backup | None:
    """Return the latest backup; `None` if it is unknown."""
    with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(Path(_note_path(path)).read_bytes(), type=Backup)
    return None


def _note_backup(path: str, target: Path, now: int) -> None:
    """Write the name of the backup into a file next to the data, for people to read. A failure is ignored.

    A link in the place of that file is replaced, not followed.
    """
    with suppress(OSError):
        _remove_files(_note_path(path), "")
        with open(_note_path(path), "x", encoding="utf-8") as file:
            json.dump({"at": now, "file": os.path.abspath(target)}, file)


class RestoreResult(NamedTuple):
    """The result of a restore."""

    facts: FileFacts | None = None
    former: Path | None = None
    """The former file, if there was one."""
    findings: Sequence[str] = ()
    """What is wrong with the backup; then nothing was changed."""


def restore(source: str, path: str, *, now: int) -> RestoreResult:
    """Replace the file at `path` with a copy of `source`, whose pages and format are checked first.

    At any instant a complete file is in place: the former or the new one. If the former file is too corrupt to absorb
    its log, it is without the log for an instant. Raises `EngineError`, and changes nothing, if a service or another
    program uses the file, or if `source` is not a database that this version can use.
    """
    target = Path(os.path.realpath(path))
    check_exists(source)
    check_regular(target)
    if os.path.exists(target) and os.path.samefile(source, target):
        raise EngineError(f"{source} is the data file itself; name a backup of it")
    if not target.parent.is_dir():
        raise EngineError(f"cannot open {path}: there is no directory {target.parent}")
    with service_lock(path), file_errors(f"cannot restore {source} to {path}", path):
        if findings := verify_file(source):
            return RestoreResult(findings=findings)
        with _new_copy(source, target, now) as copy:
            facts = describe_file(copy)
            former = _keep_former(target, now) if target.exists() else None
            if sys.platform != "win32" and os.geteuid() == 0:  # the user of the service must be able to open it
                owned_like = (former or target.parent).stat()
                os.chown(copy, owned_like.st_uid, owned_like.st_gid)
            if former is not None:
                os.chmod(copy, former.stat().st_mode & 0o777)
            _remove_files(target, *_LOG_ENDINGS, "-shm")  # of a deleted or corrupt file: the copy would apply them
            os.replace(copy, target)
            _sync_folder(target.parent)
    return RestoreResult(facts, former)


def _keep_former(target: Path, now: int) -> Path:
    """Give the file a second name, which is returned, after its log was copied into it. A corrupt file keeps its log.

    Raises `EngineError` if another program uses the file.
    """
    with closing(sqlite3.connect(target, isolation_level=None, timeout=0)) as connection:
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
        except FAILURES as error:
            if is_busy(error):
                raise EngineError(f"cannot open {target}: another program uses it; end that program first") from None
    time_of_restore = datetime.fromtimestamp(now / 1_000, UTC).strftime("%Y%m%dT%H%M%SZ")
    name = first = f"{target}.before-restore-{time_of_restore}"
    number = 1
    while os.path.lexists(name):
        number += 1
        name = f"{first}-{number}"
    for end in _LOG_ENDINGS:  # copied: a log with two names would not be opened
        with suppress(FileNotFoundError):
            shutil.copy2(f"{target}{end}", f"{name}{end}")
    try:
        os.link(target, name)
    except OSError:  # the disk has no links
        shutil.copy2(target, name)
    _sync_folder(target.parent)
    return Path(name)


def delete_documents(path: str, kind: str) -> int:
    """Delete the documents of a kind in all namespaces, and return how many there were. Raises as `restore` does."""
    describe_file(path)  # it is a database that this version can use
    file = os.path.realpath(path)
    with (
        service_lock(path),
        file_errors(f"cannot write {path}", path),
        closing(sqlite3.connect(file, isolation_level=None)) as connection,
    ):
        return connection.execute("DELETE FROM documents WHERE kind = ?", (kind,)).rowcount

"""Backs up a database file while a service uses it, and replaces one with a backup; the former file is kept."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from emulator.engines.sqlite.connection import FAILURES, describe, explain, is_busy, is_corruption
from emulator.engines.sqlite.corruption import mark_interrupted, marker_path
from emulator.engines.sqlite.files.copying import (
    LOGS,
    check_exists,
    check_regular,
    copied,
    free_name,
    link,
    move_into_place,
    open_read_only,
    remove_parts,
    sync,
    timestamp,
)
from emulator.engines.sqlite.files.locks import service_lock
from emulator.engines.sqlite.files.verification import Facts, Verified, cut_end, facts_of_file, verify
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
            move_into_place(copy, target, replace=replace)
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
    """Write the name of the backup into a file next to the data, for people to read. A failure is ignored."""
    with suppress(OSError), open(note_path(path), "w", encoding="utf-8") as file:
        json.dump({"at": now, "file": os.path.abspath(target)}, file)


class Restored(NamedTuple):
    """The result of a restore."""

    former: Path | None
    """The former file, if there was one."""
    facts: Facts | None
    damage: Verified | None = None
    """The findings if the backup is damaged; then nothing was changed."""


def restore(source: str, path: str, *, environments: Sequence[str], now: int) -> Restored:
    """Replace the file at `path` with a checked copy of `source`.

    At any instant a complete file is in place: the former or the new one. If the former file is too corrupt to absorb
    its log, it is without the log for an instant; no service can open it then. Raises `EngineError`, and changes
    nothing, if a service of one of these environments or another program uses the file, or if `source` is not a
    database that this version can use.
    """
    target = Path(os.path.realpath(path))
    check_exists(source)
    check_regular(target)
    if os.path.exists(target) and os.path.samefile(source, target):
        raise EngineError(f"{source} is the data file itself; name a backup of it")
    if not target.parent.is_dir():
        raise EngineError(f"cannot open {path}: there is no directory {target.parent}")
    with ExitStack() as stack:
        for environment in environments:
            stack.enter_context(service_lock(path, environment, advice="stop it first"))
        remove_parts(target)
        try:
            copy = stack.enter_context(copied(source, target, checked=False))
            verified = verify(str(copy))
            with closing(open_read_only(source)) as reading:  # the copy has zeros where the source is too short
                findings = [*cut_end(reading, source), *verified.findings]
            if findings:
                return Restored(None, None, verified._replace(facts=None, findings=findings))
            return Restored(_replace(copy, target, now), verified.facts)
        except UnusableDatabase as error:
            raise EngineError(f"cannot restore {source}: {error}") from None
        except FAILURES as error:
            advice = "; nothing was changed; use an older backup" if is_corruption(error) else ""
            raise EngineError(f"cannot restore {source}: {describe(error)}{advice}") from error
        except OSError as error:
            raise EngineError(f"cannot write {target}: {error.strerror}; nothing was replaced") from error


def forget(path: str, kind: str, *, environments: Sequence[str]) -> int:
    """Delete the documents of a kind in all namespaces, and return how many there were. Raises as `restore` does."""
    target = Path(os.path.realpath(path))
    facts_of_file(path)  # it is a database that this version can use
    with ExitStack() as stack:
        for environment in environments:
            stack.enter_context(service_lock(path, environment, advice="stop it first"))
        try:
            connection = stack.enter_context(closing(sqlite3.connect(target, isolation_level=None)))
            return connection.execute("DELETE FROM documents WHERE shelf = ?", (kind,)).rowcount
        except FAILURES as error:
            raise EngineError(f"cannot write {path}: {explain(error, path)}") from error


def _replace(copy: Path, target: Path, now: int) -> Path | None:
    """Put the copy in place; return the new name of the former file, `None` if there was none."""
    if not target.exists():
        _keep_owner(copy, target.parent)
        _remove_logs(target)  # of a file that was deleted: they would be applied to the copy
        os.rename(copy, target)
        sync(target.parent)
        return None
    former = free_name(target.with_name(f"{target.name}.before-restore-{timestamp(now)}"))
    _keep_owner(copy, target)
    os.chmod(copy, target.stat().st_mode & 0o777)
    with _locked_exclusively(target) as is_whole:
        link(target, former)
        if not is_whole:  # a corrupt file keeps its log, which must not be applied to the copy
            for end in LOGS:
                with suppress(FileNotFoundError):
                    link(Path(f"{target}{end}"), Path(f"{former}{end}"))
        sync(target.parent)
        if not is_whole:  # two files cannot be replaced in one step
            mark_interrupted(str(target), f"restore it again; the former data is in {former}")
            _remove_logs(target)
        if sys.platform != "win32":
            os.replace(copy, target)
            sync(target.parent)
    if sys.platform == "win32":  # it replaces no open file; the lock of the service still keeps services off
        try:
            os.replace(copy, target)
        except OSError:
            if is_whole:  # else the marker says that the former data is there
                former.unlink()
            raise
    marker = marker_path(str(target))
    with suppress(FileNotFoundError):
        os.replace(marker, marker_path(str(former))) if is_whole else os.unlink(marker)
    return former


@contextmanager
def _locked_exclusively(target: Path) -> Iterator[bool]:
    """Lock the database file against other programs, and copy its log into it; yield whether that was possible.

    Raises `EngineError` if another program uses the file.
    """
    with closing(sqlite3.connect(target, isolation_level=None, timeout=0)) as connection:
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
            is_whole = True
        except FAILURES as error:
            if is_busy(error):
                raise EngineError(f"cannot open {target}: another program uses it; end that program first") from None
            is_whole = False
        yield is_whole


def _remove_logs(target: Path) -> None:
    for end in (*LOGS, "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(f"{target}{end}")


def _keep_owner(copy: Path, owned_like: Path) -> None:
    """Give the copy the owner of another file, if this process is root.

    The service's user must be able to open the copy.
    """
    if sys.platform != "win32" and os.geteuid() == 0:
        found = owned_like.stat()
        os.chown(copy, found.st_uid, found.st_gid)

"""Creates the tables of a new file, and raises a file of an older format, after a backup beside it."""

from __future__ import annotations

import logging
import os
import sqlite3
from importlib.metadata import version
from pathlib import Path

from emulator.engines.sqlite.schema import VERSION, UnusableDatabase, create_or_raise, format_of, set_options
from emulator.engines.upgrades import Upgrades

_log = logging.getLogger("emulator.engines")


class BeingRaised(Exception):
    """Another process holds the lock on a file of an older format; usually it raises the format."""


def prepare(connection: sqlite3.Connection, path: str | None, upgrades: Upgrades) -> None:
    """Create missing tables, raise an older format, and set the options of the connection.

    Raises `UnusableDatabase`, `BeingRaised`, or a busy `OperationalError` while another process creates the file.
    """
    found = format_of(connection)
    if 0 < found < VERSION and not upgrades.allowed:
        raise UnusableDatabase(
            f"its data has format {found}, this version needs format {VERSION}, and --no-upgrade is set; without it, "
            "extcli serve backs the file up and raises the format"
        )
    set_options(connection)
    if found == VERSION:
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if found and error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise BeingRaised from error
        raise
    try:
        found = format_of(connection)  # another process may have been faster
        if found < VERSION:
            backup = _backed_up(path, found, upgrades.now) if path is not None and found else None
            create_or_raise(connection, found, version("extcli") if path is not None else "")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    if 0 < found < VERSION:
        message = "%s: raised from format %s to %s; the former file is kept as %s%s"
        _log.info(message, path, found, VERSION, backup, upgrades.note)


def _backed_up(path: str, found: int, now: int) -> Path:
    """Copy the file, which no other process writes to, to a file beside it that is named after its format."""
    from emulator.engines.sqlite.files.copying import DamagedCopy, copied, free_name, put, remove_parts, timestamp

    beside = Path(f"{os.path.abspath(path)}.format-{found}")
    remove_parts(beside)
    target = free_name(Path(f"{beside}-{timestamp(now)}"))
    try:
        with copied(path, beside) as copy:
            put(copy, target, replace=False)
    except DamagedCopy as error:
        raise UnusableDatabase(f"its format is not raised, because it is corrupt ({error})") from None
    except OSError as error:
        raise UnusableDatabase(
            f"its format is not raised, because no backup can be written to {target}: {error.strerror}"
        ) from None
    return target

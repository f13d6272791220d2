"""SIGKILL at each step of an upgrade and of a restore leaves the old file or the new one, and loses nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.engines.opening import open_engine
from emulator.engines.shapes import NEVER, CastRequest, Key
from emulator.engines.sqlite.files.backup import restore
from emulator.engines.sqlite.files.verification import facts_of_file, verify_file
from emulator.engines.sqlite.schema import VERSION
from emulator.errors import EngineError
from engines.aged_files import unpack
from faults import dying_process

pytestmark = pytest.mark.slow
OLDER = 3
WRITES = 25


def die_at_each_step(task: str, folder: Path) -> int:
    """Run a task until it dies at its first step, its second and so on; return how often it died."""
    command = [sys.executable, dying_process.__file__, task, str(folder)]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout) - 1


@pytest.mark.long
def test_an_upgrade_that_is_killed_leaves_the_old_format_or_the_new(tmp_path: Path):
    (tmp_path / "start").mkdir()
    unpack(OLDER, tmp_path / "start" / "data.db")
    counts = facts_of_file(str(tmp_path / "start" / "data.db")).environments

    deaths = die_at_each_step("upgrade", tmp_path)

    found = set()
    for step in range(1, deaths + 1):
        file = tmp_path / str(step) / "data.db"
        verified = verify_file(str(file))
        assert [] == verified.findings, step
        found.add(verified.format)
        for kept in file.parent.glob("data.db.format-*"):
            assert (OLDER, []) == verify_file(str(kept))[::2], step
        dying_process.upgrade(file.parent)
        assert (VERSION, []) == verify_file(str(file))[::2], step
        assert counts == facts_of_file(str(file)).environments, step
        assert not list(file.parent.glob(".*.part")), step
    assert (True, {OLDER, VERSION}) == (deaths > 50, found)


def make_file_with_a_log(folder: Path) -> None:
    """Write in a process that is killed, so that some of the data is only in the log next to the file."""
    child = os.fork()
    if not child:
        asyncio.run(_write_and_die(folder / "data.db"))
    os.waitpid(child, 0)
    (folder / "data.db-shm").unlink()
    assert (folder / "data.db-wal").stat().st_size


async def _write_and_die(path: Path) -> None:
    async with open_engine(f"sqlite://{path}", namespace="sandbox") as engine:
        for number in range(WRITES):
            key = Key("poll", "my-extension", f"late-{number}")
            await engine.ballots.cast(key, CastRequest("U1", "a"), now=1, expires_at=NEVER)
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
def test_a_restore_that_is_killed_leaves_the_old_file_or_the_backup(tmp_path: Path):
    start = tmp_path / "start"
    start.mkdir()
    unpack(VERSION, start / "backup.db")
    unpack(VERSION, start / "data.db")
    new = facts_of_file(str(start / "backup.db")).environments["sandbox"]["poll"]
    make_file_with_a_log(start)

    deaths = die_at_each_step("restore", tmp_path)

    found = set()
    for step in range(1, deaths + 1):
        file = tmp_path / str(step) / "data.db"
        verified = verify_file(str(file))
        assert [] == verified.findings, step
        polls = facts_of_file(str(file)).environments["sandbox"]["poll"]
        found.add(polls)
        if polls == new:
            kept = file.with_name("data.db.before-restore-19700101T000000Z")
            assert new + WRITES == facts_of_file(str(kept)).environments["sandbox"]["poll"], step
        restore(str(file.parent / "backup.db"), str(file), environments=("sandbox",), now=2_000)
        assert new == facts_of_file(str(file)).environments["sandbox"]["poll"], step
        assert not list(file.parent.glob(".*.part")), step
    assert (True, {new, new + WRITES}) == (deaths > 50, found)


@pytest.mark.long
def test_a_killed_restore_over_a_corrupt_file_loses_no_log(tmp_path: Path):
    start = tmp_path / "start"
    start.mkdir()
    unpack(VERSION, start / "backup.db")
    unpack(VERSION, start / "data.db")
    make_file_with_a_log(start)
    corrupt_schema(start / "data.db")
    former = contents(start / "data.db", "", "-wal")

    deaths = die_at_each_step("restore", tmp_path)

    found = dict[tuple[bytes | None, ...], str]()
    for step in range(1, deaths + 1):
        file = tmp_path / str(step) / "data.db"
        kept = file.with_name("data.db.before-restore-19700101T000000Z")
        files = contents(file, "", "-wal", "-damaged")
        is_new = files not in found
        if is_new:
            found[files] = outcome(file)
        assert former == (files[:2] if found[files] == "corrupt" else contents(kept, "", "-wal")), step
        if is_new:
            restore(str(file.parent / "backup.db"), str(file), environments=("sandbox",), now=2_000)
            assert "restored" == outcome(file), step
    assert (True, {"corrupt", "interrupted", "restored"}) == (deaths > 50, set(found.values()))


def corrupt_schema(file: Path) -> None:
    """Commit a schema that cannot be read to the log, in a process that is killed. The file below is intact."""
    child = os.fork()
    if not child:
        connection = sqlite3.connect(file, isolation_level=None)
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = 'damaged' WHERE type = 'table'")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    file.with_name(f"{file.name}-shm").unlink()


def contents(file: Path, *ends: str) -> tuple[bytes | None, ...]:
    """The bytes of the files next to this one with these endings, `None` for one that does not exist."""
    files = [file.with_name(f"{file.name}{end}") for end in ends]
    return tuple(each.read_bytes() if each.exists() else None for each in files)


def outcome(file: Path) -> str:
    """What a start finds; it works on a copy."""
    copy = file.parent / "copy"
    copy.mkdir()
    for each in ("data.db", "data.db-wal", "data.db-damaged"):
        if file.with_name(each).exists():
            shutil.copy(file.with_name(each), copy)
    try:
        dying_process.upgrade(copy)
    except EngineError as error:
        return "interrupted" if "restore it again; the former data is in" in str(error) else "corrupt"
    finally:
        shutil.rmtree(copy)
    return "restored"

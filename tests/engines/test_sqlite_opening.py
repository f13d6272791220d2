"""Opening files: paths, files that are refused, modes, and what the first opening after a kill removes (ruling A5)."""

from __future__ import annotations

import ast
import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from emulator.core.errors import EngineError
from emulator.storage.opening import open_engine
from emulator.storage.records import Record
from emulator.storage.sqlite import SqliteEngine
from emulator.storage.sqlite.tables import FORMAT
from engines.contract_dump import dumped, fill_all
from engines.database_files import opened
from engines.shorthand import cast, counts


def use(url: str | Path, casts: int = 1) -> None:
    """Open an engine on a URL or a path, cast, and close it."""

    async def work() -> None:
        async with open_engine(str(url) if "://" in str(url) else f"sqlite://{url}", namespace="main") as engine:
            await engine.check()
            await asyncio.gather(*(cast(engine, f"U{number}", "a") for number in range(casts)))

    asyncio.run(work())


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        for statement in statements:
            file.execute(statement)


def test_a_missing_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"^cannot open .*/none/data.db: there is no directory .*/none$"):
        use(tmp_path / "none" / "data.db")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=f"^cannot open {tmp_path}: .*$"):
        use(tmp_path)


def diary(path: Path) -> None:
    path.write_bytes(b"Dear diary, " * 500)


def other_program(path: Path) -> None:
    change(path, "CREATE TABLE diary (day)")


def other_program_of_format_1(path: Path) -> None:
    change(path, "CREATE TABLE diary (day)", "PRAGMA user_version = 1")


def newer_format(path: Path) -> None:
    use(path)
    change(path, f"PRAGMA user_version = {FORMAT + 1}", "PRAGMA application_id = 0x45020301")


def no_format(path: Path) -> None:
    use(path)
    change(path, "PRAGMA user_version = 0")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (diary, "file is not a database$"),
        (other_program, "it is the database of another program$"),
        (other_program_of_format_1, "it is the database of another program$"),
        (newer_format, rf"its data has format {FORMAT + 1}, and this version reads format {FORMAT}; .*\(2\.3\.1\)"),
        (no_format, rf"its data has format 0, and this version reads format {FORMAT}; use the version of extcli that"),
    ],
)
def test_an_unusable_file_is_refused_and_stays_unchanged(path: Path, make, reason: str) -> None:  # type: ignore[no-untyped-def]
    make(path)
    before = path.read_bytes()

    with pytest.raises(EngineError, match=f"^cannot open {path}: {reason}"):
        use(path)

    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_database(path: Path) -> None:
    path.touch()

    use(path)

    assert path.stat().st_size


def test_a_corrupt_file_raises_an_error_of_one_line(path: Path) -> None:
    use(path, casts=2000)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))

    with pytest.raises(EngineError, match=rf"^cannot open {path}: [^\n]*$"):
        use(path)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("sqlite:///./data.db", "data.db"),
        ("sqlite://./data.db", "data.db"),
        ("sqlite:///../here/data.db", "data.db"),
        ("sqlite://./:memory:", ":memory:"),  # a path with a special meaning to SQLite
    ],
)
def test_a_path_may_be_relative(tmp_path: Path, url: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)

    use(url)

    assert (here / name).exists()


def test_a_path_may_be_a_link(path: Path) -> None:
    path.symlink_to("real.db")

    for _ in range(2):
        use(path)

    assert path.is_symlink()
    assert path.with_name("real.db").is_file()


@pytest.mark.parametrize(("query", "level"), [("", 1), ("?synchronous=normal", 1), ("?synchronous=full", 2)])
async def test_the_url_sets_whether_a_commit_waits_for_the_disk(path: Path, query: str, level: int) -> None:
    async with open_engine(f"sqlite://{path}{query}", namespace="main") as engine:
        assert isinstance(engine, SqliteEngine)
        assert (level,) == engine.group_commit.connection.execute("PRAGMA synchronous").fetchone()
        assert (await cast(engine, "U1", "a")).refused is None

    assert ["data.db"] == [each.name for each in path.parent.iterdir()]


@pytest.fixture(params=[0o022, 0o000], ids=["umask 022", "umask 000"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def warnings_and_modes(path: Path) -> tuple[list[str], dict[str, int]]:
    """Open the database and write to it; return the engine's warnings, and the modes of the files while it is open."""

    async def work() -> tuple[list[str], dict[str, int]]:
        async with opened(path) as engine:
            await cast(engine, "U1", "a")
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.glob(f"{path.name}*")}
            return list(engine.warnings), modes

    return asyncio.run(work())


def test_a_new_database_is_readable_by_its_owner_alone(path: Path, umask: None) -> None:
    warnings, modes = warnings_and_modes(path)

    assert {"data.db": 0o600, "data.db-wal": 0o600, "data.db-shm": 0o600} == modes
    assert [] == warnings


@pytest.mark.parametrize(("mode", "is_risky"), [(0o644, True), (0o604, True), (0o602, True), (0o640, False)])
def test_a_database_that_other_users_can_open_causes_a_warning(path: Path, mode: int, is_risky: bool) -> None:
    warnings_and_modes(path)
    path.chmod(mode)

    warnings, modes = warnings_and_modes(path)

    assert (
        is_risky
        * [
            f"{path}{suffix}: holds the key that signs tokens, but any user of this machine can open it; run chmod 600"
            for suffix in ("", "-wal")
        ]
        == warnings
    )
    assert mode == modes["data.db"]


async def leave_as_killed(path: Path, killed: Path) -> None:
    """Copy an open database to another path, as a kill would leave it."""
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", f"{killed}{end}")


def names(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT namespace FROM spaces")}


async def test_an_opening_removes_the_half_copies_of_its_own_namespaces_only(path: Path) -> None:
    async with opened(path) as engine:
        await fill_all(engine)
        records = await dumped(engine)
    killed, is_stuck = path.with_name("killed.db"), asyncio.Event()

    async def pages() -> AsyncIterator[Sequence[Record]]:
        yield records
        is_stuck.set()
        await asyncio.Event().wait()

    async with opened(path, "main/fork") as engine:
        loading = asyncio.create_task(engine.load(pages(), replace=True))
        await is_stuck.wait()
        await leave_as_killed(path, killed)
        loading.cancel()
        await asyncio.gather(loading, return_exceptions=True)

    async with opened(killed, "other"), opened(killed, "mai"):
        assert "main/fork//loading" in names(killed)
    async with opened(killed) as engine:
        assert "main/fork//loading" not in names(killed)
        await engine.tidy()
        assert records == await dumped(engine)


async def test_an_opening_removes_what_a_killed_process_had_set_aside(path: Path) -> None:
    killed = path.with_name("killed.db")
    async with opened(path, "main/x") as engine:
        await fill_all(engine)
        await engine.set_aside()
        await leave_as_killed(path, killed)

    async with opened(killed):
        assert {"main", "main/x"} == names(killed)


IN_MEMORY = """
import asyncio, os, signal, sys
from emulator.storage.opening import open_engine

async def main():
    async with open_engine("sqlite://", namespace="main") as engine:
        await engine.check()
        print([f"{each.stat().st_mode & 0o777:o}" for each in os.scandir(sys.argv[1])], flush=True)
        if sys.argv[2:]:
            os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def run_in_memory(folder: Path, *kill: str) -> list[str]:
    """Open an engine in memory in another process; return the modes of the temporary files, and maybe kill it."""
    command = [sys.executable, "-c", IN_MEMORY, str(folder), *kill]
    return ast.literal_eval(
        subprocess.run(command, env={**os.environ, "TMPDIR": str(folder)}, stdout=-1).stdout.decode()
    )


def test_data_in_memory_is_a_private_file_that_ends_with_the_process(tmp_path: Path) -> None:
    files = ["600"] * 4

    assert files == run_in_memory(tmp_path)
    assert [] == list(tmp_path.iterdir())
    assert files == run_in_memory(tmp_path, "kill")
    assert len(files) == len(list(tmp_path.iterdir()))
    assert files == run_in_memory(tmp_path)  # it has deleted the others
    assert [] == list(tmp_path.iterdir())


async def test_data_in_memory_is_not_shared(tmp_path: Path) -> None:
    async with open_engine("sqlite://", namespace="a") as one, open_engine("sqlite://", namespace="a") as other:
        await cast(one, "U1", "a")

        assert [] == await counts(other)

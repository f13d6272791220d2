"""Files of an open database that are deleted or replaced."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from emulator.engines.sqlite.corruption import FileWatch
from emulator.errors import EngineError
from engines.database_files import opened
from engines.shorthand import cast, counts


async def test_a_write_after_the_file_was_replaced_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    async with opened(path) as engine:
        await cast(engine, "U1", "a")
        path.rename(tmp_path / "away.db")
        path.write_bytes(b"")

        with pytest.raises(EngineError, match="nothing was written: the database file was deleted or replaced"):
            await cast(engine, "U2", "a")
        with pytest.raises(EngineError, match="was replaced by another file while the service was using it"):
            await engine.check()


def delete(file: Path) -> None:
    file.unlink()


def move(file: Path) -> None:
    file.rename(file.with_name("away"))


def replace(file: Path) -> None:
    file.with_name("new").write_bytes(file.read_bytes())
    file.with_name("new").rename(file)


def move_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("elsewhere"))
    file.parent.symlink_to(file.parent.with_name("elsewhere-too"))


def delete_folder(file: Path) -> None:
    shutil.rmtree(file.parent)


@pytest.mark.parametrize("name", ["data.db", "data.db-wal"])
@pytest.mark.parametrize("lose", [delete, move, replace, move_folder, delete_folder])
def test_a_lost_file_is_never_certainly_in_place(tmp_path: Path, lose: Callable[[Path], None], name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for each in ("data.db", "data.db-wal"):
        (folder / each).touch()
    watch = FileWatch(str(folder / "data.db"))
    watch.note_files()
    try:
        assert (sys.platform == "linux", None) == (watch.is_in_place(), watch.lost_file())
        lose(folder / name)

        assert not watch.is_in_place()
        assert f"{folder / name} was" in str(watch.lost_file()) or not folder.exists()
    finally:
        watch.close_handles()


def test_a_path_with_a_link_is_never_certainly_in_place(tmp_path: Path) -> None:
    (tmp_path / "real.db").touch()
    (tmp_path / "data.db").symlink_to("real.db")
    watch = FileWatch(str(tmp_path / "data.db"))
    watch.note_files()

    assert (False, None) == (watch.is_in_place(), watch.lost_file())


def test_letting_go_of_the_files_keeps_the_locks_of_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE votes (value)")
        watch = FileWatch(str(path))
        watch.note_files()
        connection.execute("BEGIN IMMEDIATE")
        watch.close_handles()
        write = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('INSERT INTO votes VALUES (1)')"
        other = subprocess.run([sys.executable, "-c", write], capture_output=True, text=True, check=False)

    assert "database is locked" in other.stderr


async def test_no_rescued_copy_overwrites_another(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    earlier = tmp_path / "data.db.rescued"
    earlier.write_text("earlier")
    async with opened(path) as engine:
        await cast(engine, "U1", "a")
        path.unlink()

    rescued = tmp_path / "data.db.rescued-2"
    assert ("earlier", 0o600) == (earlier.read_text(), stat.S_IMODE(rescued.stat().st_mode))
    async with opened(rescued) as engine:
        assert await counts(engine) == [("a", 1)]


async def test_a_folder_that_cannot_be_searched_does_not_count_as_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: str) -> os.stat_result:
        raise PermissionError(13, "Permission denied", file)

    async with opened(tmp_path / "data.db") as engine:
        with monkeypatch.context() as patch:
            patch.setattr("emulator.engines.sqlite.corruption.os.stat", refuse)
            await cast(engine, "U1", "a")

        assert await counts(engine) == [("a", 1)]

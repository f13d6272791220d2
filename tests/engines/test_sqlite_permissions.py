"""Only the service's user may read a database: it holds the key that signs the service's tokens (ruling A5)."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.database_files import opened
from engines.shorthand import cast


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


@pytest.mark.ruling("A5")
def test_a_new_database_is_readable_by_its_owner_alone(tmp_path: Path, umask: None) -> None:
    warnings, modes = warnings_and_modes(tmp_path / "data.db")

    assert {"data.db": 0o600, "data.db-wal": 0o600, "data.db-shm": 0o600} == modes
    assert [] == warnings


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602])
def test_a_database_that_other_users_can_open_causes_a_warning(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "data.db"
    warnings_and_modes(path)
    path.chmod(mode)

    warnings, modes = warnings_and_modes(path)

    assert [
        f"{path}{suffix}: holds the key that signs tokens, but every user of this machine can open it: chmod 600"
        for suffix in ("", "-wal")
    ] == warnings
    assert mode == modes["data.db"]


def test_a_database_of_a_group_causes_no_warning(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    warnings_and_modes(path)
    path.chmod(0o640)

    assert [] == warnings_and_modes(path)[0]

"""Files of an open database that are deleted or replaced."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

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

"""Opening files: paths, files that are refused, and corruption found at the start."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import stat
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from emulator.engines.engine import Upgrades
from emulator.engines.opening import open_engine
from emulator.engines.sqlite import SqliteEngine, corruption
from emulator.engines.sqlite.corruption import marker_path
from emulator.engines.sqlite.files.copying import timestamp
from emulator.engines.sqlite.files.verification import facts_of_file
from emulator.engines.sqlite.schema import VERSION
from emulator.errors import EngineError
from engines.database_files import opened
from engines.shorthand import cast


def use(url: str | Path, casts: int = 1) -> None:
    """Open an engine on a URL or a path, cast, and close it."""

    async def work() -> None:
        async with open_engine(str(url) if "://" in str(url) else f"sqlite://{url}", namespace="main") as engine:
            await engine.check()
            await asyncio.gather(*(cast(engine, f"U{number}", "a") for number in range(casts)))

    asyncio.run(work())


async def test_a_file_of_the_current_format_opens_without_upgrades(path: Path) -> None:
    for _ in range(2):
        async with open_engine(f"sqlite://{path}", namespace="main", upgrades=Upgrades(allowed=False)) as engine:
            await engine.check()


def test_a_file_names_the_version_that_wrote_it(path: Path) -> None:
    use(path)

    assert version("extcli") == facts_of_file(str(path)).version


def test_the_names_of_files_have_the_time_in_utc() -> None:
    assert "20261122T222306Z" == timestamp(1_795_386_186_999)


def test_a_missing_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"^cannot open .*/none/data.db: there is no directory .*/none$"):
        use(tmp_path / "none" / "data.db")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=f"^cannot open {tmp_path}: .*$"):
        use(tmp_path)


def test_a_file_that_is_not_a_database_stays_unchanged(path: Path) -> None:
    path.write_bytes(b"Dear diary, " * 500)

    with pytest.raises(EngineError, match=r"^cannot open .*/data.db: file is not a database$"):
        use(path)

    assert path.read_bytes() == b"Dear diary, " * 500


def test_the_database_of_another_program_stays_unchanged(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE diary (day)")
    other.close()
    before = path.read_bytes()

    with pytest.raises(EngineError, match=r"^cannot open .*/data.db: .*another program$"):
        use(path)

    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("loss", "missing"),
    [
        ("DROP TABLE spaces", "spaces"),
        ("DROP INDEX ballots_by_key", "ballots_by_key"),
        ("DELETE FROM numbers", "the row of numbers"),
    ],
)
def test_a_partly_recovered_file_stays_unchanged(path: Path, loss: str, missing: str) -> None:
    use(path)
    file = sqlite3.connect(path)
    file.execute(loss)
    file.commit()
    file.close()
    before = path.read_bytes()

    message = rf"^cannot open .*/data.db: it is an incomplete extcli database: {missing} is missing; was it"
    with pytest.raises(EngineError, match=message):
        use(path)

    assert path.read_bytes() == before


def test_a_file_of_a_newer_format_is_refused(path: Path) -> None:
    use(path)
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 99")
    newer.close()

    with pytest.raises(EngineError, match=r"^cannot open .*/data.db: .*newer version.*99.*$"):
        use(path)


@pytest.mark.parametrize("version", range(VERSION))
def test_a_file_whose_format_number_was_lowered_stays_unchanged(path: Path, version: int) -> None:
    use(path)
    lowered = sqlite3.connect(path)
    lowered.execute(f"PRAGMA user_version = {version}")
    lowered.close()
    before = path.read_bytes()

    message = rf"^cannot open .*/data.db: its user_version is {version}, but its tables are of format {VERSION}; was"
    with pytest.raises(EngineError, match=message):
        use(path)

    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_database(path: Path) -> None:
    path.touch()

    use(path)

    assert path.stat().st_size


def test_a_corrupt_file_raises_an_engine_error(path: Path) -> None:
    use(path, casts=2000)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))

    with pytest.raises(EngineError):
        use(path)


def test_a_marked_file_opens_again_after_it_was_restored(path: Path) -> None:
    use(path, casts=2000)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] + os.urandom(1024) + whole[len(whole) // 2 + 1024 :])
    Path(marker_path(str(path))).write_text("malformed")

    with pytest.raises(EngineError, match=r"^cannot open [^\n]*/data.db: it is corrupt [^\n]*$"):
        use(path)

    path.write_bytes(whole)
    use(path)

    assert not Path(marker_path(str(path))).exists()


@pytest.mark.parametrize("is_marked", [False, True])
def test_corruption_anywhere_gives_at_most_one_line(path: Path, is_marked: bool) -> None:
    use(path, casts=500)
    whole, chance = path.read_bytes(), random.Random(4)
    errors = []
    for _ in range(40):
        at = chance.choice([chance.randrange(4096), chance.randrange(len(whole) - 64)])
        path.write_bytes(whole[:at] + chance.randbytes(64) + whole[at + 64 :])
        for beside in path.parent.glob("data.db-*"):
            beside.unlink()
        if is_marked:
            Path(marker_path(str(path))).touch()
        try:
            use(path, casts=500)
        except EngineError as error:
            errors.append(str(error))

    assert errors
    assert [] == [each for each in errors if "\n" in each]


def test_a_file_that_is_too_large_is_not_checked_but_a_warning_is_logged(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    use(path, casts=500)
    other = sqlite3.connect(path)
    other.execute("UPDATE numbers SET next = next + 1")
    other.commit()
    for beside in path.parent.glob("data.db*"):
        beside.with_name(beside.name.replace("data", "crashed")).write_bytes(beside.read_bytes())
    other.close()
    monkeypatch.setattr(corruption, "MAX_CHECKED_SIZE", 1000)

    use(path.with_name("crashed.db"))

    assert "crashed.db was not closed cleanly and is too large to check" in caplog.text


async def test_a_check_fails_if_the_directory_of_the_file_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    async with opened(folder / "data.db") as engine:
        folder.rename(tmp_path / "moved")
        with pytest.raises(EngineError, match=r"cannot find the disk of .*: No such file or directory"):
            await engine.check()
        (tmp_path / "moved").rename(folder)
        await engine.check()


async def test_a_marked_file_that_child_process_has_open_is_refused(path: Path) -> None:
    marker = Path(marker_path(str(path)))
    async with opened(path):
        await asyncio.to_thread(marker.write_text, "malformed")

        with pytest.raises(EngineError, match="it is corrupt"):
            async with opened(path):
                pass


@pytest.mark.parametrize("form", ["sqlite:///{path}", "sqlite://{path}", "sqlite:////{path}"])
def test_slashes_before_an_absolute_path_collapse(path: Path, form: str) -> None:
    use(form.format(path=path))

    assert path.exists()


@pytest.mark.parametrize("url", ["sqlite:///./data.db", "sqlite://./data.db", "sqlite:///../here/data.db"])
def test_a_path_may_be_relative(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)

    use(url)

    assert (here / "data.db").exists()


def test_a_path_with_a_special_meaning_to_sqlite_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    use("sqlite://./:memory:")

    assert (tmp_path / ":memory:").exists()


@pytest.mark.parametrize(("query", "level"), [("", 1), ("?synchronous=normal", 1), ("?synchronous=full", 2)])
async def test_the_url_sets_whether_a_commit_waits_for_the_disk(path: Path, query: str, level: int) -> None:
    async with open_engine(f"sqlite://{path}{query}", namespace="main") as engine:
        assert isinstance(engine, SqliteEngine)
        assert (level,) == engine._group_commit.connection.execute("PRAGMA synchronous").fetchone()
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

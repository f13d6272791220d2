"""SIGKILL during a fork, load, backup or restore: the file has the old content or the new, and so do its backups."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from emulator.core.keys import NEVER, Key
from emulator.storage.opening import open_engine
from emulator.storage.records import Record
from emulator.storage.shapes import CastRequest
from emulator.storage.sqlite.backup import back_up, restore
from emulator.storage.sqlite.verification import verify_file
from engines.filled_file import write_filled_file
from faults import dying_process
from faults.dying_process import FORKED, TASKS
from faults.rounds import KILLS

VOTES = 200
OTHER_VOTES = 100
FORK = f"sandbox/{FORKED}"

pytestmark = [pytest.mark.slow, pytest.mark.long]

Content = Mapping[str, Sequence[Record]]


@pytest.mark.long
def test_the_data_and_each_backup_of_it_survive_kills_of_what_works_on_the_file(tmp_path: Path):
    """One test for all kinds, because they share the files to begin with."""
    for task in TASKS:
        folder = tmp_path / task
        allowed = prepare(folder, task)
        subprocess.run([sys.executable, dying_process.__file__, task, str(folder), str(KILLS)], check=True)
        killed = sorted((each for each in folder.iterdir() if each.name.isdigit()), key=lambda each: int(each.name))
        found = [check(each, allowed) for each in killed]
        counts = {name: found.count(name) for name in allowed}
        print(f"\n{len(found)} kills of {task}: {counts}")  # noqa: T201 - seen with -s only
        assert (KILLS, KILLS) == (len(killed), sum(counts.values())), task


def prepare(folder: Path, task: str) -> Mapping[str, Content]:
    """Write the files with which each attempt begins, and return the contents that a kill may leave."""
    start = folder / "start"
    (start / "copies").mkdir(parents=True)
    data = write_filled_file(start / "data.db")
    asyncio.run(cast(data, VOTES, dies=True))
    (folder / "whole").mkdir()
    old = contents(copied(data, folder / "whole"))
    if task == "fork":
        return {"old": old, "new": {**old, FORK: old["sandbox"]}}
    if task in ("load", "restore"):
        other = start / "backup.db"
        asyncio.run(cast(other, OTHER_VOTES))
        new = contents(other)
        if task == "load":
            (start / "snapshot.json").write_bytes(asyncio.run(snapshot(other)))
            new = {**old, "sandbox": new["sandbox"]}
        return {"old": old, "new": new}
    return {"old": old}


def check(folder: Path, allowed: Mapping[str, Content]) -> str:
    """Check the file, a backup of it and the restored backup; return the name of its content, empty if unknown."""
    data, copy, other = folder / "data.db", folder / "copies" / "checked.db", folder / "other.db"
    assert [] == verify_file(str(data)), folder
    for each in copy.parent.glob(".*"):  # of the killed backup, an hour later
        os.utime(each, (0, 0))
    back_up(str(data), copy, now=1_800_000_000_000, replace=False)
    assert not list(copy.parent.glob(".*")), folder
    assert () == restore(str(copy), str(other), now=1).findings, folder
    found = [contents(each) for each in (other, data)]
    assert found[0] == found[1], folder
    name = next((name for name, content in allowed.items() if content == found[0]), "")
    for former in folder.glob("data.db.before-restore-*Z"):
        assert allowed["old"] == contents(copied(former, folder / "copies")), folder
    return name


def copied(file: Path, to: Path) -> Path:
    """Copy a database, with its log if there is one."""
    for end in ("", "-wal"):
        if Path(f"{file}{end}").exists():
            shutil.copy(f"{file}{end}", to)
    return to / file.name


def contents(file: Path) -> Content:
    """Open a file as a start of the service does, tidy it, and return what its namespaces hold, without their keys."""

    async def read() -> Content:
        content = {}
        for name in ("sandbox", FORK):
            async with open_engine(f"sqlite://{file}", namespace=name) as engine:
                await engine.tidy()
                pages = [page async for page in engine.dump(now=0)]
                records = [each for page in pages for each in page if each[0].kind != "signing_key"]
                if records:
                    content[name] = records
        return content

    return asyncio.run(read())


async def cast(file: Path, votes: int, *, dies: bool = False) -> None:
    """Cast votes. If it `dies`, leave the file and its log as a kill would."""
    key = Key("poll", "my-extension", "crowd", "777")
    async with open_engine(f"sqlite://{file}", namespace="sandbox") as engine:
        requests = [CastRequest(f"U{number}", str(number % 3)) for number in range(votes)]
        casts = (engine.ballots.cast(key, each, now=1_700_000_000_000, expires_at=NEVER) for each in requests)
        await asyncio.gather(*casts)
        if dies:
            (beside := file.with_name("dead")).mkdir()
            copied(file, beside)
    if dies:
        copied(beside / file.name, file.parent)
        shutil.rmtree(beside)


async def snapshot(file: Path) -> bytes:
    from emulator.core.settings import Settings
    from emulator.process.opening import open_app

    async with open_app(Settings(data=f"sqlite://{file}")) as (_, service):
        return b"".join([chunk async for chunk in service.snapshots.save(keys=True)])

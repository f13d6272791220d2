"""Kills a process at some of its steps: `dying_process.py TASK FOLDER MOST`.

`FOLDER/start` has the files with which each attempt begins. The attempt that dies at step 7 works in `FOLDER/7`. A step
is a line of the modules that change files or copy data. It dies at `MOST` steps, from the first to the last and as far
from each other as possible.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

from emulator.core.settings import Settings
from emulator.process.opening import open_app
from emulator.storage.sqlite import backup, dump, namespace, verification
from emulator.storage.sqlite import load as load_module

_MODULES = {backup.__file__, verification.__file__}
_COPYING = {namespace.__file__, load_module.__file__, dump.__file__}
FORKED = "forked"


def replace(folder: Path) -> None:
    backup.restore(str(folder / "backup.db"), str(folder / "data.db"), now=1)


def back_it_up(folder: Path) -> None:
    backup.back_up(str(folder / "data.db"), folder / "copies" / f"{folder.name}.db", now=1, replace=False)


def fork(folder: Path) -> None:
    async def fork_namespace() -> None:
        async with open_app(Settings(data=f"sqlite://{folder}/data.db")) as (_, service):
            assert service.namespaces is not None
            await service.namespaces.create(FORKED, "default")

    asyncio.run(fork_namespace())


def load(folder: Path) -> None:
    async def load_snapshot() -> None:
        async with open_app(Settings(data=f"sqlite://{folder}/data.db")) as (_, service):
            await service.snapshots.load(_chunks((folder / "snapshot.json").read_bytes()))

    asyncio.run(load_snapshot())


async def _chunks(document: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(document), 10_000):
        yield document[start : start + 10_000]


TASKS: dict[str, Callable[[Path], None]] = {
    "restore": replace,
    "backup": back_it_up,
    "fork": fork,
    "load": load,
}


def die_at(step: int, task: str) -> Iterator[int]:
    """Kill this process at this step. Returns the counter of the steps; its next number is the next step."""
    steps = count(1)
    modules = _MODULES | (_COPYING if task in ("fork", "load") else set())

    def each_line(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return each_line

    def each_call(frame: FrameType, event: str, argument: Any) -> Any:
        return each_line if frame.f_code.co_filename in modules else None

    sys.settrace(each_call)
    return steps


def steps_of(task: str, folder: Path) -> int:
    """Return how many steps a task takes that does not die."""
    shutil.copytree(folder / "start", folder / "counted")
    child = os.fork()
    if not child:
        steps = die_at(0, task)
        TASKS[task](folder / "counted")
        sys.settrace(None)
        (folder / "steps").write_text(str(next(steps) - 1))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    shutil.rmtree(folder / "counted")
    return int((folder / "steps").read_text())


def main(task: str, folder: Path, most: int) -> None:
    total = steps_of(task, folder)
    for step in (1 + each * (total - 1) // max(1, most - 1) for each in range(most)):
        shutil.copytree(folder / "start", folder / str(step))
        child = os.fork()
        if not child:
            die_at(step, task)
            TASKS[task](folder / str(step))
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))

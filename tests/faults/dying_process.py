"""Kills a process at each of its steps: `dying_process.py TASK FOLDER`.

`FOLDER/start` has the files with which each attempt begins. The attempt that dies at step 7 works in `FOLDER/7`. The
last one reaches its end, and its number is printed. A step is a line of the modules that change files.
"""

# ruff: noqa: T201 - it talks to the test by printing

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import emulator.engines.sqlite.files as files
from emulator.engines import open_engine
from emulator.engines.sqlite.files.restore import restore
from emulator.engines.sqlite.schema import create_or_raise
from emulator.engines.upgrades import Upgrades

_FOLDER = str(Path(files.__file__).parent)
_MODULES = {f"{_FOLDER}/{name}.py" for name in ("copying", "restore", "upgrade")}


def upgrade(folder: Path) -> None:
    async def open_and_close() -> None:
        async with open_engine(f"sqlite://{folder}/data.db", namespace="sandbox", upgrades=Upgrades(now=1)):
            pass

    asyncio.run(open_and_close())


def replace(folder: Path) -> None:
    restore(str(folder / "backup.db"), str(folder / "data.db"), environments=("sandbox", "production"), now=1)


TASKS: dict[str, Callable[[Path], None]] = {"upgrade": upgrade, "restore": replace}


def die_at(step: int) -> None:
    """Kill this process at this step."""
    steps = count(1)

    def each_line(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return each_line

    def each_call(frame: FrameType, event: str, argument: Any) -> Any:
        is_step = frame.f_code.co_filename in _MODULES or frame.f_code is create_or_raise.__code__
        return each_line if is_step else None

    sys.settrace(each_call)


def main(task: str, folder: Path) -> None:
    for step in count(1):
        shutil.copytree(folder / "start", folder / str(step))
        child = os.fork()
        if not child:
            die_at(step)
            TASKS[task](folder / str(step))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            print(step)
            return


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

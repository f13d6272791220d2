"""Snapshots of a large poll: `python benchmarks/snapshots.py [VOTES]`.

Loads a snapshot with a poll into a service, saves it, and loads it again, with the data in a file and in memory. For
each step it prints the time, the processor time of the service, how much its memory grew at most, and the latency of
votes meanwhile. `pause` is the longest time that a small request had to wait. In memory, loading also adds the data.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import uvloop
from audience import ballots
from codes import measure_during, peak_memory
from common import CLIENT_ID, Address, argument, pin_to_core, processor_time
from load import load

PROGRAM = str(Path(sys.executable).with_name("extcli"))


def write_snapshot(path: Path, votes: int) -> None:
    """Write a snapshot with a poll of this many votes."""
    now = time.time_ns() // 1_000_000
    key = f'"key":["poll","{CLIENT_ID}","large","1"]'
    choices = min(votes, 10)
    counts = f'{{"ballot":1,"choice":{choices},"entry":{votes}}}'
    header = f'{{"extcli_snapshot":1,"version":"","environment":"sandbox","clock":{{}},"keys":false,"counts":{counts}'
    with path.open("w") as file:
        file.write(header + ',"records":[\n')
        file.write(f'{{"type":"ballot",{key},"expires_at":{now + 86_400_000}}}')
        for choice in range(choices):
            file.write(f',\n{{"type":"choice",{key},"choice":"{choice}"}}')
        for number in range(votes):
            note = f'{{"identifier":"v{number}","opaque":"Uv{number}","value":{number % 10},"timestamp":{now}}}'
            file.write(
                f',\n{{"type":"entry",{key},"voter":"Uv{number}","choice":"{number % 10}","cast_at":{now},'
                f'"note":{note},"whole":true}}'
            )
        file.write("\n]}\n")


def start_service(stack: ExitStack, data: str) -> tuple[Address, int]:
    """Start a sandbox until the stack closes; return its address and process id."""
    command = [PROGRAM, "serve", "--port", "0", "--data", data]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    stack.callback(process.wait, 60)
    stack.callback(process.terminate)
    assert process.stdout is not None
    found = re.search(r"//(.*):(\d+)", process.stdout.readline())
    assert found, "the service did not start"
    return (found[1], int(found[2])), process.pid


async def run(address: Address, *args: str) -> None:
    """Run `extcli snapshot` in another process, so that this one keeps measuring."""
    environment = {**os.environ, "EXTCLI_URL": f"http://{address[0]}:{address[1]}"}
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "snapshot", *args, stdout=asyncio.subprocess.DEVNULL, env=environment
    )
    assert await process.wait() == 0


def resident(process: int) -> int:
    """Return the memory of a process in bytes, and make it the peak from now on."""
    Path(f"/proc/{process}/clear_refs").write_text("5")
    return peak_memory(process)


async def measure(data: str, folder: Path, source: Path) -> None:
    votes = ballots()
    with ExitStack() as stack:
        address, process = start_service(stack, data)
        before = await load(*address, votes, connections=8, seconds=3)
        print(f"{'in memory' if data == 'sqlite://' else 'in a file'}: votes before: p99 {before.p99 * 1e3:.1f} ms")

        async def report(name: str, work: Callable[[], Awaitable[Any]]) -> None:
            idle, used = resident(process), processor_time(process)
            elapsed, pause, measured, _ = await measure_during(address, votes, work)
            used = processor_time(process) - used
            p99 = max(each.p99 for each in measured)
            print(
                f"  {name:12} {elapsed:7.2f} s   cpu with votes {used:6.2f} s   "
                f"+{(peak_memory(process) - idle) / 2**20:4.0f} MiB   "
                f"votes p99 {p99 * 1e3:5.1f} ms ({p99 / before.p99:.1f} x)   pause {pause * 1e3:5.1f} ms   "
                f"failed {sum(each.failed for each in measured)}"
            )

        async def report_alone(name: str, *args: str) -> None:
            idle, used, started = resident(process), processor_time(process), time.perf_counter()
            await run(address, *args)
            elapsed, used = time.perf_counter() - started, processor_time(process) - used
            grown = (peak_memory(process) - idle) / 2**20
            print(f"  {name:12} {elapsed:7.2f} s   cpu {used:6.2f} s   +{grown:4.0f} MiB")

        saved = str(folder / "saved.json")
        await report_alone("load, alone", "load", str(source))
        await report_alone("save, alone", "save", saved)
        await report("save", lambda: run(address, "save", saved))
        await report("load", lambda: run(address, "load", str(source)))


async def main() -> None:
    votes = int(argument(1, 1_000_000))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "source.json"
        write_snapshot(source, votes)
        print(f"a poll of {votes:,} votes, {source.stat().st_size / 1e6:.0f} MB")
        await measure(f"sqlite://{folder}/data.db", folder, source)
        await measure("sqlite://", folder, source)


if __name__ == "__main__":
    pin_to_core(1)
    uvloop.run(main())

"""Snapshots of a large poll: `python benchmarks/snapshots.py [VOTES]`.

Loads a snapshot with a poll into a service, saves it, and loads it again, with the data in a file and in memory. For
each step it prints the time, the processor time of the service, how much its memory grew at most, and the latency of
votes meanwhile. `pause` is the longest time that a small request had to wait. In memory, loading also adds the data.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Awaitable
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import uvloop
from audience import ballots
from codes import report_step, voting
from common import CLIENT_ID, PROGRAM, Started, argument, processor_time, start_extcli
from load import load
from report import Row, ratios
from rounds import laboratory


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


async def run(server: Started, *args: str) -> None:
    """Run `extcli snapshot` in another process, so that this one keeps measuring."""
    environment = {**os.environ, "EXTCLI_URL": server.url}
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "snapshot", *args, stdout=asyncio.subprocess.DEVNULL, env=environment
    )
    assert await process.wait() == 0


async def rounds_of(rounds: int, seconds: float, votes_in_poll: int) -> dict[str, list[float]]:
    """Return the 99th percentile of votes in ms in each round: before, and in the worst second of a save and a load."""
    votes, found = ballots(), {name: [] for name in ("before", "save", "load", "before again")}

    async def tail(work: Awaitable[None] | None = None) -> float:
        if work is None:
            return (await load([server.address], votes, connections=8, seconds=seconds)).p99 * 1e3
        done = asyncio.Event()
        meanwhile = asyncio.create_task(voting(server, votes, done))
        await work
        done.set()
        return max(each.p99 for each in await meanwhile) * 1e3

    with laboratory() as (stack, folder):
        source = folder / "source.json"
        write_snapshot(source, votes_in_poll)
        server = start_extcli(stack, "--data", f"sqlite://{folder}/data.db", stderr=subprocess.DEVNULL)
        await run(server, "load", str(source))
        for _ in range(rounds):
            found["before"].append(await tail())
            found["save"].append(await tail(run(server, "save", str(folder / "saved.json"))))
            found["load"].append(await tail(run(server, "load", str(source))))
            found["before again"].append(await tail())
    return found


def rows(rounds: int, seconds: float, votes: int = 1_000_000) -> list[Row]:
    """Measure goal 15, with the data in a file."""
    found = uvloop.run(rounds_of(rounds, seconds, votes))
    before = [(one + two) / 2 for one, two in zip(found["before"], found["before again"], strict=True)]
    noise = ratios(found["before again"], found["before"])
    return [
        Row(
            "15",
            f"p99 of votes while a snapshot of {votes:,} votes is {done} / before",
            ratios(found[name], before),
            noise,
            5.0,
            2.0,
            higher_is_better=False,
            figures={f"{each} p99 ms": median(found[each]) for each in (name, "before")},
        )
        for name, done in (("save", "saved"), ("load", "loaded"))
    ]


async def measure(data: str, folder: Path, source: Path) -> None:
    votes, saved = ballots(), str(folder / "saved.json")
    with ExitStack() as stack:
        server = start_extcli(stack, "--data", data, stderr=subprocess.DEVNULL)
        before = await load([server.address], votes, connections=8, seconds=3)
        print(f"{'in memory' if data == 'sqlite://' else 'in a file'}: votes before: p99 {before.p99 * 1e3:.1f} ms")
        for name, path in (("load", str(source)), ("save", saved)):
            used, started = processor_time(server.process), time.perf_counter()
            await run(server, name, path)
            elapsed, used = time.perf_counter() - started, processor_time(server.process) - used
            print(f"{name + ', alone':20} {elapsed:7.2f} s   cpu {used:6.2f} s")
        await report_step("save", server, votes, lambda: run(server, "save", saved))
        await report_step("load", server, votes, lambda: run(server, "load", str(source)))


async def main() -> None:
    votes = int(argument(1, 1_000_000))
    with laboratory() as (_, folder):
        source = folder / "source.json"
        write_snapshot(source, votes)
        print(f"a poll of {votes:,} votes, {source.stat().st_size / 1e6:.0f} MB")
        for data in (f"sqlite://{folder}/data.db", "sqlite://"):
            await measure(data, folder, source)


if __name__ == "__main__":
    uvloop.run(main())

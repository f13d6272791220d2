"""Snapshots of a large poll: `python benchmarks/snapshots.py [VOTES]`.

Loads a snapshot with a poll into a service, saves it, and loads it again, with the data in a file and in memory. For
each step it prints the time, the processor time of the service, how much its memory grew at most, and the latency of
votes meanwhile. `pause` is the longest time that a small request had to wait. In memory, loading also adds the data.
`rows` measures goal 15.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Awaitable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

import uvloop
from audience import ballots
from codes import report_step, voting
from common import CLIENT_ID, PROGRAM, Started, argument, pin_to_core, processor_time, start_extcli
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


def start(stack: ExitStack, data: str) -> Started:
    """Start a service on a core of its own: else it would share one with the load."""
    return start_extcli(stack, "--data", data, stderr=subprocess.DEVNULL, preexec_fn=partial(pin_to_core, 0))


async def run(server: Started, *args: str) -> None:
    """Run `extcli snapshot` in another process, so that this one keeps measuring. It yields the core to the load."""
    environment = {**os.environ, "EXTCLI_URL": server.url}
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "snapshot", *args, stdout=asyncio.subprocess.DEVNULL, env=environment, preexec_fn=partial(os.nice, 19)
    )
    assert await process.wait() == 0


MEDIA = {"a file": "sqlite://{folder}/data.db", "memory": "sqlite://"}
Tails = dict[str, list[float]]
"""The 99th percentile of votes in ms in each round: before, and in the worst second of a load and a save."""


async def rounds_of(rounds: int, seconds: float, votes_in_poll: int) -> dict[str, Tails]:
    """Measure each medium in turn in each round, which loads and saves once."""
    votes = ballots()
    found: dict[str, Tails] = {
        medium: {name: [] for name in ("before", "load", "save", "before again")} for medium in MEDIA
    }

    async def tail(server: Started, work: Awaitable[None] | None = None) -> float:
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
        servers = {medium: start(stack, url.format(folder=folder)) for medium, url in MEDIA.items()}
        for _ in range(rounds):
            for medium, server in servers.items():
                tails = found[medium]
                tails["before"].append(await tail(server))
                tails["load"].append(await tail(server, run(server, "load", str(source))))
                tails["save"].append(await tail(server, run(server, "save", str(folder / "saved.json"))))
                tails["before again"].append(await tail(server))
    return found


def rows(rounds: int, seconds: float, votes: int = 1_000_000) -> list[Row]:
    """Measure goal 15."""
    found = uvloop.run(rounds_of(rounds, seconds, votes))
    return [row for medium, tails in found.items() for row in _rows_of(medium, tails, votes)]


def _rows_of(medium: str, tails: Tails, votes: int) -> list[Row]:
    before = [(one + two) / 2 for one, two in zip(tails["before"], tails["before again"], strict=True)]
    noise = ratios(tails["before again"], tails["before"])
    return [
        Row(
            "15",
            f"p99 of votes while a snapshot of {votes:,} votes is {done}, data in {medium} / before",
            ratios(tails[name], before),
            noise,
            5.0,
            2.0,
            higher_is_better=False,
            figures={f"{each} p99 ms": median(tails[each]) for each in (name, "before")},
        )
        for name, done in (("save", "saved"), ("load", "loaded"))
    ]


async def measure(data: str, folder: Path, source: Path) -> None:
    votes, saved = ballots(), str(folder / "saved.json")
    with ExitStack() as stack:
        server = start(stack, data)
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
        for url in MEDIA.values():
            await measure(url.format(folder=folder), folder, source)


if __name__ == "__main__":
    uvloop.run(main())

"""A process on the same file as the test's, run as a script: `child_process.py TASK FILE NAME COUNT`.

It prints `ready`, waits for a line on standard input, and does its task.
"""

# ruff: noqa: T201 - it talks to the test by printing

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping

from emulator.engines.engine import Engine
from emulator.engines.opening import open_engine
from emulator.engines.shapes import NEVER, CastRequest, Key

POLL, COUNTER = Key("kind", "client", "poll"), Key("kind", "client", "counter")
AT_ONCE = 20


async def cast(engine: Engine, voter: str, choice: str) -> None:
    await engine.ballots.cast(POLL, CastRequest(voter, choice), now=0, expires_at=NEVER, tally=True)


async def count(engine: Engine) -> None:
    await engine.documents.update([COUNTER], _one_more, now=0, expires_at=NEVER)


def _one_more(live: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
    return {COUNTER: b"%d" % (int(live.get(COUNTER, b"0")) + 1)}


async def share(engine: Engine, name: str, times: int) -> None:
    """Cast with voters of its own and with voters that all processes share, and increment the counter."""
    for first in range(0, times, AT_ONCE):
        numbers = range(first, first + AT_ONCE)
        await asyncio.gather(*(cast(engine, f"{name}{number}", name) for number in numbers))
        await asyncio.gather(*(cast(engine, f"both{number}", name) for number in numbers))
        await asyncio.gather(*(count(engine) for _ in numbers))


async def acknowledge(engine: Engine, name: str, times: int) -> None:
    """Write a cast, a document and a log entry for each number, and print it when they are acknowledged."""
    for first in range(0, times, AT_ONCE):
        await asyncio.gather(*(_acknowledge(engine, name, number) for number in range(first, first + AT_ONCE)))


async def _acknowledge(engine: Engine, name: str, number: int) -> None:
    document = COUNTER._replace(user=str(number))
    await cast(engine, f"{name}{number}", str(number % 5))
    await engine.documents.update([document], lambda _: {document: b"1"}, now=0, expires_at=NEVER)
    await engine.logs.append(POLL, b"%d" % number, now=0, expires_at=NEVER)
    print(number, flush=True)


async def publish(engine: Engine, name: str, times: int) -> None:
    """Publish each number as a message."""
    for number in range(times):
        await engine.relay.publish(POLL, f"{name}{number}".encode())


async def listen(engine: Engine, name: str, times: int) -> None:
    """Print `listening`, then this many messages of other processes."""
    received: asyncio.Queue[bytes] = asyncio.Queue()
    engine.relay.listen(lambda topic, message: received.put_nowait(message))
    print("listening", flush=True)
    for _ in range(times):
        print((await received.get()).decode(), flush=True)


async def draw(engine: Engine, name: str, times: int) -> None:
    """Draw with users of its own, and print each user and item when the draw is acknowledged."""
    for first in range(0, times, AT_ONCE):
        users = [f"{name}{number}" for number in range(first, first + AT_ONCE)]
        await asyncio.gather(*(_draw(engine, user) for user in users))


async def _draw(engine: Engine, user: str) -> None:
    item = (await engine.pools.draw(POLL, user, limit=lambda _: 1, now=0)).item
    print(user, item, flush=True)


TASKS = {"share": share, "acknowledge": acknowledge, "publish": publish, "listen": listen, "draw": draw}


async def main(task: str, path: str, name: str, times: str) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    async with open_engine(f"sqlite://{path}", namespace="main") as engine:
        await TASKS[task](engine, name, int(times))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

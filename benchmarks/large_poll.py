"""A poll of a million voters: `python benchmarks/large_poll.py [VOTERS]`.

Prints votes per second divided by those of a poll of a thousand; the time of `vote_logs` over HTTP divided by one
msgspec encode of its rows; and the 99th percentile of the latency of votes while a log is read, divided by that before.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec
import uvloop
from audience import ballots, headers
from common import argument, pin_to_core, start_server
from load import CONNECTIONS, load, request
from report import spread

from emulator.engines import open_engine
from emulator.engines.base import CastRequest, Key

ROUNDS = 5


async def fill(file: Path, voters: int) -> None:
    """Cast votes directly into the engine, for the poll `large` of channel 1."""
    now = time.time_ns() // 1_000_000
    expires_at = now + 86_400_000
    async with open_engine(f"sqlite://{file}", namespace="production") as engine:
        key = Key("poll", "bench", "large", "1")
        for first in range(0, voters, 1_000):
            casts = [
                CastRequest(
                    f"voter-{number}",
                    str(number % 10),
                    b'{"identifier":"voter-%d","opaque":"Uvoter-%d"' % (number, number),
                )
                for number in range(first, min(first + 1_000, voters))
            ]
            await asyncio.gather(*(engine.ballots.cast(key, cast, now=now, expires_at=expires_at) for cast in casts))


async def read_log(host: str, port: int, header: str, poll: str = "large") -> tuple[float, bytes]:
    """Read the whole log as it arrives, so that the load in this process continues; return seconds and response."""
    started = time.perf_counter()
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
    head = request("GET", f"/v1/e/vote_logs?id={poll}", header)
    writer.write(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    pieces = []
    while piece := await reader.read(1 << 16):
        pieces.append(piece)
    writer.close()
    return time.perf_counter() - started, b"".join(pieces)


def rows_of(response: bytes) -> list[dict[str, object]]:
    """Return the entries of a chunked response."""
    body = bytearray()
    rest = response.partition(b"\r\n\r\n")[2]
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return msgspec.json.decode(body)["result"]


async def main() -> None:
    voters = int(argument(1, 1_000_000))
    small = ballots()
    large = [each.replace(b"id=poll", b"id=large") for each in small]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder) / "data.db"
        started = time.perf_counter()
        await fill(file, voters)
        print(f"filled {voters:,} votes in {time.perf_counter() - started:.0f} s")
        (host, port), _ = start_server(stack, "file", file)
        rates = []
        for number in range(ROUNDS + 1):
            one = await load(host, port, small, connections=CONNECTIONS, seconds=1)
            other = await load(host, port, large, connections=CONNECTIONS, seconds=1)
            rates += [other.per_second / one.per_second] if number else []
        print(f"votes/s at {voters:,} / 1,000 voters: {spread(rates)}")

        (backend,) = headers("backend", users=1)
        logs = [await read_log(host, port, backend) for _ in range(3)]
        rows = rows_of(logs[0][1])
        started = time.perf_counter()
        msgspec.json.encode(rows)
        encode = time.perf_counter() - started
        elapsed = statistics.median(seconds for seconds, _ in logs)
        print(f"vote_logs: {len(rows):,} rows in {elapsed:.2f} s, {elapsed / encode:.1f} times one encode of them")

        before = await load(host, port, small, connections=CONNECTIONS, seconds=2)
        reading = asyncio.create_task(read_log(host, port, backend))
        during = await load(host, port, small, connections=CONNECTIONS, seconds=2)
        await reading
        print(
            f"p99 of votes while the log is read / before: {during.p99 / before.p99:.2f} "
            f"({before.p99 * 1e3:.1f} ms before)"
        )


if __name__ == "__main__":
    pin_to_core(1)
    uvloop.run(main())

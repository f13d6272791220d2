"""A poll of a million voters: `python benchmarks/large_poll.py [VOTERS]`.

Prints votes per second there against a poll of a thousand; the time of `vote_logs` over HTTP against one msgspec encode
of the same rows; and the 99th percentile of votes' latency while logs are read against before.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec
import uvloop
from load import load, request
from votes import CONNECTIONS, ballots, headers, start

from emulator.engines import open_engine
from emulator.engines.base import CastRequest, Key

ROUNDS = 5


def _mark(number: int) -> CastRequest:
    note = b'{"identifier":"voter-%d","opaque":"Uvoter-%d"' % (number, number)
    return CastRequest(f"voter-{number}", str(number % 10), note)


async def fill(file: Path, voters: int) -> None:
    """Cast so many votes straight into the engine, for the poll `large` of channel 1."""
    now = time.time_ns() // 1_000_000
    async with open_engine(f"sqlite://{file}", namespace="production") as engine:
        key = Key("poll", "bench", "large", "1")
        for begin in range(0, voters, 1_000):
            marks = [
                CastRequest(
                    f"voter-{number}",
                    str(number % 10),
                    b'{"identifier":"voter-%d","opaque":"Uvoter-%d"' % (number, number),
                )
                for number in range(begin, min(begin + 1_000, voters))
            ]
            end = now + 86_400_000
            await asyncio.gather(*(engine.ballots.cast(key, mark, now=now, expires_at=end) for mark in marks))


async def read_log(host: str, port: int, header: str) -> tuple[float, bytes]:
    """Seconds and body of one reading of the whole log; read as it comes, so that the load beside it is not held up."""
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
    asked = request("GET", "/v1/e/vote_logs?id=large", header)
    writer.write(asked.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    pieces = []
    while piece := await reader.read(1 << 16):
        pieces.append(piece)
    writer.close()
    return time.perf_counter() - began, b"".join(pieces)


def rows_of(answer: bytes) -> list[dict[str, object]]:
    """The entries in a chunked answer."""
    body = bytearray()
    rest = answer.partition(b"\r\n\r\n")[2]
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return msgspec.json.decode(body)["result"]


async def main() -> None:
    """Fill, measure, report."""
    voters = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    small = ballots()
    large = [each.replace(b"id=poll", b"id=large") for each in small]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        began = time.perf_counter()
        await fill(Path(folder) / "file.db", voters)
        print(f"filled {voters:,} votes in {time.perf_counter() - began:.0f} s")
        host, port = start(stack, "file", Path(folder))
        pairs = []
        for number in range(ROUNDS + 1):
            one = await load(host, port, small, connections=CONNECTIONS, seconds=1)
            other = await load(host, port, large, connections=CONNECTIONS, seconds=1)
            pairs += [(one, other)] if number else []
        ratios = [other.per_second / one.per_second for one, other in pairs]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
        print(f"votes/s at {voters:,} / 1,000 voters: {spread}")

        (backend,) = headers("backend", users=1)
        logs = [await read_log(host, port, backend) for _ in range(3)]
        rows = rows_of(logs[0][1])
        began = time.perf_counter()
        msgspec.json.encode(rows)
        encode = time.perf_counter() - began
        spent = statistics.median(seconds for seconds, _ in logs)
        print(f"vote_logs: {len(rows):,} rows in {spent:.2f} s, {spent / encode:.1f} times one encode of them")

        calm = await load(host, port, small, connections=CONNECTIONS, seconds=2)
        reading = asyncio.create_task(read_log(host, port, backend))
        busy = await load(host, port, small, connections=CONNECTIONS, seconds=2)
        await reading
        print(
            f"p99 of votes while the log is read / before: {busy.p99 / calm.p99:.2f} ({calm.p99 * 1e3:.1f} ms before)"
        )


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {1})
    uvloop.run(main())

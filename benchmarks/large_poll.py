"""A poll of a million voters: `python benchmarks/large_poll.py [ROUNDS] [SECONDS] [VOTERS]`.

Goal 5 compares votes per second with those in a poll of a thousand voters. Goal 6 compares the time of `vote_logs` over
HTTP with the time of one msgspec encode of its rows, and the latency of votes during and before a read of a log, with
the data in a file and on a Redis that the script starts.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import time
from functools import partial

import msgspec
import report
import uvloop
from audience import ballots, headers
from common import Address, start_server
from load import load, request
from nodes import redis
from report import Row, ratios
from rounds import Case, laboratory, measure

from emulator.core.keys import Key
from emulator.storage.opening import open_engine
from emulator.storage.shapes import CastRequest

VOTERS = 1_000_000


async def fill(data: str, voters: int) -> None:
    """Cast votes directly into the engine, for the poll `large` of channel 1."""
    now = time.time_ns() // 1_000_000
    expires_at = now + 86_400_000
    async with open_engine(data, namespace="production") as engine:
        key = Key("poll", "bench", "large", "1")
        for first in range(0, voters, 1_000):
            casts = [
                CastRequest(
                    f"voter-{number}",
                    str(number % 10),
                    b"voter-%d" % number,
                )
                for number in range(first, min(first + 1_000, voters))
            ]
            await asyncio.gather(*(engine.ballots.cast(key, cast, now=now, expires_at=expires_at) for cast in casts))


async def read_log(address: Address, header: str, poll: str = "large") -> tuple[float, list[bytes]]:
    """Read the whole log as it arrives, so that the load in this process continues; return seconds and pieces."""
    started = time.perf_counter()
    reader, writer = await asyncio.open_connection(*address, limit=1 << 20)
    writer.write(request("GET", f"/v1/e/vote_logs?id={poll}", header, more="Connection: close\r\n"))
    pieces = []
    while piece := await reader.read(1 << 20):
        pieces.append(piece)
    writer.close()
    return time.perf_counter() - started, pieces


async def keep_reading(address: Address, header: str, ended: asyncio.Event) -> None:
    """Read the log again and again until `ended`."""
    while not ended.is_set():
        await read_log(address, header)


def rows_of(pieces: list[bytes]) -> list[dict[str, object]]:
    """Return the entries of a chunked response."""
    response, body = b"".join(pieces), bytearray()
    start = response.index(b"\r\n\r\n") + 4
    while size := int(response[start : (end := response.index(b"\r\n", start))], 16):
        body += response[end + 2 : end + 2 + size]
        start = end + 2 + size + 2
    entries: list[dict[str, object]] = msgspec.json.decode(body)["result"]
    return entries


async def compare_logs(address: Address, rounds: int, seconds: float, where: str = "") -> list[Row]:
    """Read logs, alone and while a crowd votes in another poll. `where` follows the name of each row."""
    (backend,), votes = headers("backend", users=1), ballots()
    _, pieces = await read_log(address, backend)
    rows = rows_of(pieces)
    del pieces
    gc.collect()
    logs: list[float] = []
    tails: dict[str, list[float]] = {"before": [], "before again": [], "during": []}
    encodes: list[list[float]] = [[], []]
    for _ in range(rounds):
        for times in encodes:
            started = time.perf_counter()
            msgspec.json.encode(rows)
            times.append(time.perf_counter() - started)
        elapsed, _ = await read_log(address, backend)
        logs.append(elapsed)
        for name, values in tails.items():
            ended = asyncio.Event()
            reading = asyncio.create_task(keep_reading(address, backend, ended)) if name == "during" else None
            measured = await load([address], votes, seconds=seconds)
            assert measured.failed == 0, f"{measured.failed} votes failed"
            values.append(measured.p99 * 1e3)
            ended.set()
            if reading:
                await reading
    encode = [(one + two) / 2 for one, two in zip(*encodes, strict=True)]
    before = [(one + two) / 2 for one, two in zip(tails["before"], tails["before again"], strict=True)]
    seconds_of = {"vote_logs s": statistics.median(logs), "encode s": statistics.median(encode)}
    p99 = {f"{name} p99 ms": statistics.median(tails[name]) for name in ("during", "before")}
    return [
        Row(
            "6",
            f"vote_logs of {len(rows):,}{where} / one msgspec encode",
            ratios(logs, encode),
            ratios(encodes[1], encodes[0]),
            3.0,
            2.0,
            higher_is_better=False,
            figures=seconds_of,
        ),
        Row(
            "6",
            f"p99 of votes while logs are read{where} / before",
            ratios(tails["during"], before),
            ratios(tails["before again"], tails["before"]),
            3.0,
            1.5,
            higher_is_better=False,
            figures=p99,
        ),
    ]


def rows(rounds: int, seconds: float, voters: int = VOTERS) -> list[Row]:
    """Measure goals 5 and 6."""
    with laboratory() as (stack, folder):
        uvloop.run(fill(f"sqlite://{folder}/data.db", voters))
        server = start_server(stack, "file", folder / "data.db")
        cases = {"small": Case([server], ballots()), "large": Case([server], ballots(poll="large"))}
        results = measure(stack, cases, rounds, seconds, again=["small"])
        name = f"POST vote, {voters:,} voters / 1,000 voters"
        votes = results.rate_row("5", name, "large", "small", 0.9, 0.97)
        return [votes, *uvloop.run(compare_logs(server.address, rounds, seconds))]


def rows_on_redis(rounds: int, seconds: float, voters: int = VOTERS) -> list[Row]:
    """Measure goal 6 with the data on Redis, which runs wherever there is time."""
    with laboratory(core=None) as (stack, folder):
        url, _ = redis(stack, folder)
        uvloop.run(fill(url, voters))
        server = start_server(stack, "redis", url)
        return uvloop.run(compare_logs(server.address, rounds, seconds, ", on Redis"))


if __name__ == "__main__":
    report.main(partial(rows, voters=int(sys.argv[3]) if len(sys.argv) > 3 else VOTERS))

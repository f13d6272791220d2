"""A poll of a million voters.

Goal 5 compares votes per second with those in a poll of a thousand voters. Goal 6 compares the time of `vote_logs` over
HTTP with the time of one msgspec encode of its rows, and the latency of votes during and before a read of a log, with
the data in a file and on a Redis that the script starts.
"""

from __future__ import annotations

import asyncio
import gc
import time

import msgspec
import uvloop
from audience import ballots, headers
from common import Address, start_service
from load import load, request
from nodes import redis
from report import Row, compare
from rounds import Case, laboratory, measure

from emulator.core.keys import Key
from emulator.storage.opening import open_engine
from emulator.storage.shapes import CastRequest

VOTERS = 1_000_000


async def fill(data: str) -> None:
    """Cast votes directly into the engine, for the poll `large` of channel 1."""
    now = time.time_ns() // 1_000_000
    expires_at = now + 86_400_000
    async with open_engine(data, namespace="production") as engine:
        key = Key("poll", "bench", "large", "1")
        for first in range(0, VOTERS, 1_000):
            casts = [
                CastRequest(f"voter-{number}", str(number % 10), b"voter-%d" % number)
                for number in range(first, first + 1_000)
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
    rows = rows_of((await read_log(address, backend))[1])
    gc.collect()
    names = ("log", "encode", "encode again", "before", "before again", "during")
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in ("encode", "encode again"):
            started = time.perf_counter()
            msgspec.json.encode(rows)
            found[name].append(time.perf_counter() - started)
        elapsed, _ = await read_log(address, backend)
        found["log"].append(elapsed)
        for name in ("before", "before again", "during"):
            ended = asyncio.Event()
            reading = asyncio.create_task(keep_reading(address, backend, ended)) if name == "during" else None
            measured = await load([address], votes, seconds=seconds)
            assert measured.failed == 0, f"{measured.failed} votes failed"
            found[name].append(measured.p99 * 1e3)
            ended.set()
            if reading:
                await reading

    log, tail = f"vote_logs of {len(rows):,}{where}", f"p99 of votes while logs are read{where}"
    return [
        compare("6", f"{log} / one msgspec encode", found, ("log", "encode"), "s", 3.0, 2.0),
        compare("6", f"{tail} / before", found, ("during", "before"), "p99 ms", 3.0, 1.5),
    ]


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goals 5 and 6."""
    with laboratory() as (stack, folder):
        data = f"sqlite://{folder}/data.db"
        uvloop.run(fill(data))
        server = start_service(stack, data)
        cases = {"small": Case([server], ballots()), "large": Case([server], ballots(poll="large"))}
        results = measure(stack, cases, rounds, seconds, again=["small"])
        votes = results.row("5", f"POST vote, {VOTERS:,} voters / 1,000 voters", "large", "small", 0.9, 0.97)
        return [votes, *uvloop.run(compare_logs(server.address, rounds, seconds))]


def rows_on_redis(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 6 with the data on Redis, which runs wherever there is time."""
    with laboratory(core=None) as (stack, folder):
        url, _ = redis(stack, folder)
        uvloop.run(fill(url))
        server = start_service(stack, url)
        return uvloop.run(compare_logs(server.address, rounds, seconds, ", on Redis"))

"""Goal 10: an upload of reward codes at full size, alone and while a crowd votes."""

from __future__ import annotations

import asyncio
import random
import string
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec
import uvloop
from audience import ballots, headers
from common import Address, memory, start_service
from load import load
from report import Row, compare
from rounds import laboratory

SETS, CODES, LENGTH = 10, 999_999, 16
"""Sets of an upload, codes of a set, and characters of a code."""
SENDER = """
import http.client, sys
host, port, path, header = sys.argv[1:]
connection = http.client.HTTPConnection(host, int(port), timeout=600)
connection.request("PUT", path, sys.stdin.buffer, {"Authorization": header}, encode_chunked=True)
sys.exit(connection.getresponse().status != 200)
"""


def body_of(codes: int) -> Iterator[bytes]:
    """Yield the body of a PUT of ten sets with `codes` codes each, in pieces."""
    generator = random.Random(7)
    letters = string.ascii_uppercase + string.digits
    yield b'{"codes":['
    for number in range(SETS):
        yield b"[" if number == 0 else b"],["
        for first in range(0, codes, 10_000):
            noise = "".join(generator.choices(letters, k=LENGTH - 8))
            batch = (f'"{number}{code:07}{noise}"' for code in range(first, min(first + 10_000, codes)))
            yield b"," * (first > 0) + ",".join(batch).encode()
    names = ",".join(f'"Set {number}"' for number in range(SETS))
    yield f']],"names":[{names}]}}'.encode()


async def upload(address: Address, body: Path) -> float:
    """Upload from another process, so that this one keeps measuring; return how many seconds it took."""
    started = time.perf_counter()
    (backend,) = headers("backend", users=1)
    command = [sys.executable, "-c", SENDER, *map(str, address), "/v1/e/codes", backend]
    with body.open("rb") as file:
        sender = await asyncio.create_subprocess_exec(*command, stdin=file)
        assert await sender.wait() == 0, "the upload failed"
    return time.perf_counter() - started


async def one_round(data: str, body: Path, seconds: float) -> Mapping[str, float]:
    """Upload to a new service, alone and then while a crowd votes."""
    votes, found = ballots(), {}
    with ExitStack() as stack:
        address, process = start_service(stack, data)

        async def p99(duration: float) -> float:
            measured = await load([address], votes, connections=8, seconds=duration)
            assert measured.failed == 0, f"{measured.failed} votes failed"
            return measured.p99 * 1e3

        found["before"] = await p99(seconds)
        idle = memory(process.pid, "VmHWM")
        found["PUT"] = await upload(address, body)
        found["growth"] = memory(process.pid, "VmHWM") - idle
        found["before again"] = await p99(seconds)
        uploading = asyncio.create_task(upload(address, body))
        found["during"] = await p99(found["PUT"] * 0.8)  # votes delay the upload, so it lasts longer than they do
        await uploading
    return found


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 10, with a new service in each round."""
    with laboratory() as (_, folder):
        body = folder / "codes.json"
        with body.open("wb") as file:
            file.writelines(body_of(CODES))
        content = body.read_bytes()
        found: dict[str, list[float]] = defaultdict(list)
        for number in range(rounds):
            for name in ("decode", "decode again"):
                started = time.perf_counter()
                msgspec.json.decode(content)
                found[name].append(time.perf_counter() - started)
            for name, value in uvloop.run(one_round(f"sqlite://{folder}/{number}.db", body, seconds)).items():
                found[name].append(value)
    title = f"PUT of {SETS} sets of {CODES:,} codes"

    growth = [each / len(content) for each in found["growth"]]
    return [
        Row("10", f"{title}: peak memory / body", growth, [], 0.3, 0.2, higher_is_better=False),
        compare("10", f"{title}: time / msgspec decode", found, ("PUT", "decode"), "s", 5.0, 3.0),
        compare("10", f"{title}: p99 of votes meanwhile / before", found, ("during", "before"), "p99 ms", 3.0, 2.0),
    ]

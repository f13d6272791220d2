"""POST vote against references: `python benchmarks/votes.py [ROUNDS] [SECONDS]`.

Prints, for each server, the median and range over interleaved rounds of two ratios to the plain Litestar route in the
same round: requests per second, and 99th percentile of the latency.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import jwt
import uvloop
from common import argument, pin_to_core, start_server
from load import Measured, load, request
from report import ratios, spread
from servers import CLIENT_ID, SECRET

VOTERS = 1_000
CONNECTIONS = 50


def headers(role: str = "viewer", users: int = VOTERS) -> list[str]:
    """Return an `Authorization` header for each of many users of channel 1."""
    exp = int(time.time()) + 3_600
    claims = [{"role": role, "user_id": str(number), "channel_id": "1", "exp": exp} for number in range(users)]
    return [f"{CLIENT_ID} {jwt.encode(each, SECRET)}" for each in claims]


def ballots(voters: int = VOTERS) -> list[bytes]:
    """Return a request to vote for each voter, in random order."""
    generator = random.Random(7)
    requests = [
        request("POST", "/v1/e/vote?id=poll", header, b'{"value":%d}' % generator.randrange(0, 10))
        for header in headers(users=voters)
    ]
    generator.shuffle(requests)
    return requests


async def measure(rounds: int, seconds: float, names: list[str]) -> dict[str, list[Measured]]:
    """Measure all servers in turn; the first round is a warm-up."""
    requests = ballots()
    results: dict[str, list[Measured]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        addresses = {name: start_server(stack, name, Path(folder) / "data.db")[0] for name in names}
        for number in range(rounds + 1):
            for name, (host, port) in addresses.items():
                measured = await load(host, port, requests, connections=CONNECTIONS, seconds=seconds)
                assert measured.failed == 0, f"{name} refused {measured.failed} votes"
                if number:
                    results[name].append(measured)
    return results


def main() -> None:
    pin_to_core(1)
    results = uvloop.run(measure(int(argument(1, 5)), argument(2, 2), ["plain", "bare", "memory", "file"]))
    rates = {name: [each.per_second for each in rounds] for name, rounds in results.items()}
    tails = {name: [each.p99 for each in rounds] for name, rounds in results.items()}
    print(f"{'server':10} {'req/s':>8}  {'ratio (range)':20} {'p99 ms':>8}  {'p99 ratio':>9}")
    for name in results:
        print(
            f"{name:10} {statistics.median(rates[name]):8.0f}  {spread(ratios(rates[name], rates['plain'])):20} "
            f"{statistics.median(tails[name]) * 1e3:8.2f}  "
            f"{statistics.median(ratios(tails[name], tails['plain'])):9.2f}"
        )
    for name in ("bare", "memory"):
        print(f"file / {name}: {spread(ratios(rates['file'], rates[name]))}")


if __name__ == "__main__":
    main()

"""The other calls that crowds make, data in a file: `python benchmarks/endpoints.py [ROUNDS] [SECONDS]`.

Prints, for each, requests per second divided by those of POST vote on the plain typed Litestar route in the same round.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import uvloop
from load import Measured, load, request
from votes import CONNECTIONS, ballots, headers, start

CALLS = {
    "GET vote": ("GET", "/v1/e/vote?id=poll", b""),
    "POST rank": ("POST", "/v1/e/rank?id=colour", b'{"key":"blue"}'),
    "POST accumulate": ("POST", "/v1/e/accumulate?id=ratings", b'{"rating":5}'),
    "GET channel_state": ("GET", "/v1/e/channel_state", b""),
    "PATCH channel_state": ("PATCH", "/v1/e/channel_state", b'[{"op":"add","path":"/round","value":4}]'),
}


async def measure(rounds: int, seconds: float) -> dict[str, list[Measured]]:
    """Rounds of all calls in turn, after one that is not counted."""
    loads = {
        name: [
            request(method, path, header, body) for header in headers("broadcaster" if method == "PATCH" else "viewer")
        ]
        for name, (method, path, body) in CALLS.items()
    }
    results: dict[str, list[Measured]] = {name: [] for name in ("plain", *loads)}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        plain = start(stack, "plain", Path(folder))
        file = start(stack, "file", Path(folder))
        for number in range(rounds + 1):
            for name in results:
                place, requests = (plain, ballots()) if name == "plain" else (file, loads[name])
                measured = await load(*place, requests, connections=CONNECTIONS, seconds=seconds)
                assert measured.failed == 0, f"{name} was refused {measured.failed} times"
                if number:
                    results[name].append(measured)
    return results


def main() -> None:
    """Measure and report."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {1})
    results = uvloop.run(measure(rounds, seconds))
    print(f"{'call':20} {'req/s':>8}  ratio to the plain route's POST vote (range)")
    for name, mine in results.items():
        ratios = [a.per_second / b.per_second for a, b in zip(mine, results["plain"], strict=True)]
        median = statistics.median(each.per_second for each in mine)
        print(f"{name:20} {median:8.0f}  {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")


if __name__ == "__main__":
    main()

"""Other calls of large audiences, with data in a file: `python benchmarks/endpoints.py [ROUNDS] [SECONDS]`.

Prints, for each call, requests per second divided by those of POST vote on the plain Litestar route in the same round.
"""

from __future__ import annotations

import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

import uvloop
from audience import ballots, headers
from common import argument, pin_to_core, start_server
from load import CONNECTIONS, load, request
from report import ratios, spread

CALLS = {
    "GET vote": ("GET", "/v1/e/vote?id=poll", b""),
    "POST rank": ("POST", "/v1/e/rank?id=colour", b'{"key":"blue"}'),
    "POST accumulate": ("POST", "/v1/e/accumulate?id=ratings", b'{"rating":5}'),
    "GET channel_state": ("GET", "/v1/e/channel_state", b""),
    "PATCH channel_state": ("PATCH", "/v1/e/channel_state", b'[{"op":"add","path":"/round","value":4}]'),
}


async def measure(rounds: int, seconds: float) -> dict[str, list[float]]:
    """Return requests per second of all calls, in interleaved rounds; the first round is a warm-up."""
    loads = {
        name: [
            request(method, path, header, body) for header in headers("broadcaster" if method == "PATCH" else "viewer")
        ]
        for name, (method, path, body) in CALLS.items()
    }
    results: dict[str, list[float]] = {name: [] for name in ("plain", *loads)}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        plain, _ = start_server(stack, "plain")
        file, _ = start_server(stack, "file", Path(folder) / "data.db")
        for number in range(rounds + 1):
            for name in results:
                address, requests = (plain, ballots()) if name == "plain" else (file, loads[name])
                measured = await load(*address, requests, connections=CONNECTIONS, seconds=seconds)
                assert measured.failed == 0, f"{name} was refused {measured.failed} times"
                if number:
                    results[name].append(measured.per_second)
    return results


def main() -> None:
    pin_to_core(1)
    results = uvloop.run(measure(int(argument(1, 5)), argument(2, 1)))
    print(f"{'call':20} {'req/s':>8}  ratio to the plain route's POST vote (range)")
    for name, rates in results.items():
        print(f"{name:20} {statistics.median(rates):8.0f}  {spread(ratios(rates, results['plain']))}")


if __name__ == "__main__":
    main()

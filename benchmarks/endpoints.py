"""Other calls of large audiences, with data in a file: `python benchmarks/endpoints.py [ROUNDS] [SECONDS]`.

Goal 13 compares their rates with that of POST vote on the plain route.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import report
import uvloop
from audience import ballots, headers
from common import pin_to_core, start_server
from load import request
from report import Row
from rounds import AGAIN, ECHO, Case, Results, interleave

CALLS = {
    "GET vote": ("GET", "/v1/e/vote?id=poll", b""),
    "POST rank": ("POST", "/v1/e/rank?id=colour", b'{"key":"blue"}'),
    "POST accumulate": ("POST", "/v1/e/accumulate?id=ratings", b'{"rating":5}'),
    "GET channel_state": ("GET", "/v1/e/channel_state", b""),
    "PATCH channel_state": ("PATCH", "/v1/e/channel_state", b'[{"op":"add","path":"/round","value":4}]'),
}


async def _measure(rounds: int, seconds: float) -> Results:
    pin_to_core(1)
    votes = ballots()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        plain, _ = start_server(stack, "plain")
        echo, _ = start_server(stack, ECHO)
        file, _ = start_server(stack, "file", Path(folder) / "data.db")
        cases = {"plain": Case([plain], lambda: votes)}
        for name, (method, path, body) in CALLS.items():
            users = headers("broadcaster" if method == "PATCH" else "viewer")
            requests = [request(method, path, user, body) for user in users]
            cases[name] = Case([file], lambda requests=requests: requests)
        again = {"plain" + AGAIN: cases["plain"], ECHO: Case([echo], lambda: votes)}
        return await interleave({**cases, **again}, rounds, seconds)


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 13."""
    results = uvloop.run(_measure(rounds, seconds))
    return [results.rate_row("13", f"{name} / plain POST vote", name, "plain", 2.0, 3.0) for name in CALLS]


if __name__ == "__main__":
    report.main(rows)

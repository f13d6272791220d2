"""Other calls of large audiences, with data in a file: `python benchmarks/endpoints.py [ROUNDS] [SECONDS]`.

Goal 13 compares their rates with the rate of POST vote on the plain route.
"""

from __future__ import annotations

import report
from audience import ballots, headers
from common import start_server
from load import request
from report import Row
from rounds import Case, laboratory, measure

CALLS = {
    "GET vote": ("GET", "/v1/e/vote?id=poll", b""),
    "POST rank": ("POST", "/v1/e/rank?id=colour", b'{"key":"blue"}'),
    "POST accumulate": ("POST", "/v1/e/accumulate?id=ratings", b'{"rating":5}'),
    "GET channel_state": ("GET", "/v1/e/channel_state", b""),
    "PATCH channel_state": ("PATCH", "/v1/e/channel_state", b'[{"op":"add","path":"/round","value":4}]'),
}


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 13."""
    with laboratory() as (stack, folder):
        file = start_server(stack, "file", folder / "data.db")
        cases = {"plain": Case([start_server(stack, "plain")], ballots())}
        for name, (method, path, body) in CALLS.items():
            users = headers("broadcaster" if method == "PATCH" else "viewer")
            cases[name] = Case([file], [request(method, path, user, body) for user in users])
        results = measure(stack, cases, rounds, seconds, again=["plain"])
    return [results.rate_row("13", f"{name} / plain POST vote", name, "plain", 3.5, 4.5) for name in CALLS]


if __name__ == "__main__":
    report.main(rows)

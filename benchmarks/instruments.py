"""What watching and limiting requests costs: `python benchmarks/instruments.py [ROUNDS] [SECONDS]`.

Goal 14 compares votes per second with the same service without metrics, request ids, rate limits and request
timeouts. The service has no switch for the first two; the server `uninstrumented` replaces them with constants.
"""

from __future__ import annotations

import http.client
from contextlib import closing

import report
from audience import Newcomers, ballots
from common import Address, start_server
from report import Row
from rounds import Case, laboratory, measure


def check_off(address: Address) -> None:
    """Fail if the server still counts requests or makes ids for them."""
    with closing(http.client.HTTPConnection(*address)) as connection:
        connection.request("GET", "/_emulator/metrics")
        response = connection.getresponse()
        assert response.headers["x-request-id"] == "off", "the server makes request ids"
        assert b'path="/v1/e/vote"' not in response.read(), "the server counts requests"


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 14."""
    known, newcomers = ballots(), Newcomers()
    with laboratory() as (stack, folder):
        on = start_server(stack, "file", folder / "on.db")
        off = start_server(stack, "uninstrumented", folder / "off.db")
        cases = {}
        for name, server in (("off", off), ("on", on)):
            cases[name] = Case([server], known)
            cases[f"new, {name}"] = Case([server], lambda: newcomers.round(seconds))
        results = measure(stack, cases, rounds, seconds, again=["off", "new, off"])
        check_off(off.address)
    return [
        results.rate_row("14", "POST vote, known tokens, instruments on / off", "on", "off", 0.92, 0.97),
        results.rate_row("14", "POST vote, new tokens, instruments on / off", "new, on", "new, off", 0.92, 0.97),
    ]


if __name__ == "__main__":
    report.main(rows)

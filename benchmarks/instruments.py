"""What watching and limiting requests costs: `python benchmarks/instruments.py [ROUNDS] [SECONDS]`.

Goal 14 compares votes per second with those of the same service without metrics, request ids, rate limits and request
timeouts. The service has no switch for the first two; the server `uninstrumented` replaces them with constants.
"""

from __future__ import annotations

import http.client
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

import report
import uvloop
from audience import Newcomers, ballots
from common import Address, pin_to_core, start_server
from report import Row
from rounds import AGAIN, ECHO, Case, Results, interleave


def check_off(address: Address) -> None:
    """Fail if the server still counts requests or makes ids for them."""
    with closing(http.client.HTTPConnection(*address)) as connection:
        connection.request("GET", "/_emulator/metrics")
        response = connection.getresponse()
        assert response.headers["x-request-id"] == "off", "the server makes request ids"
        assert b'path="/v1/e/vote"' not in response.read(), "the server counts requests"


async def _measure(rounds: int, seconds: float) -> Results:
    pin_to_core(1)
    known, newcomers = ballots(), Newcomers()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        on, _ = start_server(stack, "file", Path(folder) / "on.db")
        off, _ = start_server(stack, "uninstrumented", Path(folder) / "off.db")
        echo, _ = start_server(stack, ECHO)
        servers = {"off": off, "on": on, "off" + AGAIN: off}
        cases = {name: Case([address], lambda: known) for name, address in servers.items()}
        for name, address in servers.items():
            cases[f"new, {name}"] = Case([address], lambda: newcomers.round(seconds))
        results = await interleave({**cases, ECHO: Case([echo], lambda: known)}, rounds, seconds)
        check_off(off)
        return results


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 14."""
    results = uvloop.run(_measure(rounds, seconds))
    return [
        results.rate_row("14", "POST vote, known tokens, instruments on / off", "on", "off", 0.9, 0.95),
        results.rate_row("14", "POST vote, new tokens, instruments on / off", "new, on", "new, off", 0.9, 0.95),
    ]


if __name__ == "__main__":
    report.main(rows)

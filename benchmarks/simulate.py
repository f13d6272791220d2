"""The generator of `extcli simulate` alone: `python benchmarks/simulate.py [ROUNDS] [SECONDS]`.

It sends votes as fast as they are answered, by a server that answers anything with the same bytes (`echo`) and by the
service with its data in a file. The generator must reach three times the rate of the service. Also prints the processor
time of the generator per request, which other processes on the machine hardly change.
"""

from __future__ import annotations

import gc
import time

import report
import uvloop
from audience import VOTERS, ballots
from common import Address, start_server
from report import HEADROOM, Row
from rounds import ECHO, laboratory

from extcli.simulate.pool import Pool
from extcli.simulate.work import Target, Work

_WARM_UP = 2_000
_FIRST_GUESS = 10_000
"""Requests per second of a server that has not been measured."""


def rows(rounds: int, seconds: float) -> list[Row]:
    """Compare the rates of `echo` and of the service."""
    requests = ballots()
    rates: dict[str, list[float]] = {ECHO: [], "file": []}
    costs: list[float] = []
    with laboratory() as (stack, folder):
        addresses = {name: start_server(stack, name, folder / "data.db").address for name in rates}
        for name, address in addresses.items():
            uvloop.run(_rate(address, requests, _WARM_UP))
            rates[name].append(uvloop.run(_rate(address, requests, int(_FIRST_GUESS * seconds)))[0])
        for _ in range(rounds):
            for name, address in addresses.items():
                rate, cost = uvloop.run(_rate(address, requests, int(rates[name][-1] * seconds)))
                rates[name].append(rate)
                costs += [cost] if name == ECHO else []
    measured = {name: each[1:] for name, each in rates.items()}
    figures = {
        "generator requests/s": report.statistics.median(measured[ECHO]),
        "service votes/s": report.statistics.median(measured["file"]),
        "generator processor µs/request": report.statistics.median(costs) * 1e6,
    }
    ratio = report.ratios(measured[ECHO], measured["file"])
    return [
        Row("simulate", "requests of the generator / votes of the service", ratio, [], HEADROOM, None, True, figures)
    ]


async def _rate(address: Address, requests: list[bytes], count: int) -> tuple[float, float]:
    """Return the answers per second to `count` requests that are all due at once, and processor seconds per request."""
    numbers = [index % VOTERS for index in range(count)]
    pool = Pool(
        Target(*address),
        Work([requests[number] for number in numbers], numbers, [0.0] * count, VOTERS),
        connections=100,
        timeout=30,
    )
    await pool.open(100)
    gc.collect()
    gc.disable()
    before, started = time.process_time(), time.perf_counter()
    measured = await pool.run()
    elapsed, used = time.perf_counter() - started, time.process_time() - before
    gc.enable()
    pool.close()
    assert {200} == set(measured.status)
    return count / elapsed, used / count


if __name__ == "__main__":
    report.main(rows)

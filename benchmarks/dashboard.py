"""What the dashboard costs: `python benchmarks/dashboard.py [ROUNDS] [SECONDS] [OPEN]`.

- Bytes of a first page with its files, and the time of each warm page.
- Votes per second, and the processor time of each, while the page of their poll is open, and without it, in turn.
- Milliseconds from a vote until the page of the requests has it.
- Rows, nodes and heap of pages in Chromium that are open for `OPEN` seconds (60 by default) of 200 requests per second,
  after each tenth.
- How far each page's content shifts in `OPEN` seconds of 200 requests per second (the browser's score), and the bytes
  of its stream per second. This part and the one before need Chromium and playwright.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from urllib.parse import urlencode

import httpx
import report
import uvloop
from audience import VOTERS, authorization, ballots
from common import Address, Started, argument, pin_to_core, start_server
from load import load, request
from report import Row
from rounds import Case, laboratory, measure

JOURNAL = 16 * 1024 * 1024
PAGES = 20
"""Requests of each page."""
CHANGES = 60
STEPS = 10
RATE = 200
"""Requests per second while pages are open: in ten minutes 100,000 votes and 20,000 reads."""
SCREENS = (
    "overview", "polls", "rankings", "buffers", "stores", "codes", "pins", "links", "trivia", "purchases", "sockets",
    "broadcasts", "requests", "clock", "faults", "namespaces",
)  # fmt: skip

_OBSERVE_SHIFTS = """
window.shifts = [];
new PerformanceObserver(list => shifts.push(...list.getEntries().filter(e => !e.hadRecentInput).map(e => e.value)))
    .observe({type: "layout-shift", buffered: true});
"""


def poll_page(server: Started) -> str:
    """Return the path of the page of the only poll."""
    (poll,) = httpx.get(f"{server.url}/_emulator/contents/polls").raise_for_status().json()["rows"]
    names = ("id", "client_id", "channel_id")
    return f"/_emulator/ui/polls?{urlencode({name: poll[name] for name in names})}"


def pages() -> None:
    """Print the size of a first page, and the milliseconds of each page: the first, and the median of the others."""
    pin_to_core(1)
    with ExitStack() as stack:
        server = start_server(stack, "sandbox", JOURNAL)
        uvloop.run(load([server.address], ballots(), seconds=1))
        browser = stack.enter_context(httpx.Client(base_url=server.url, headers={"Accept-Encoding": "gzip"}))
        for screen in (*SCREENS, poll_page(server).rpartition("/")[2]):
            times = []
            for _ in range(PAGES):
                began = time.perf_counter()
                page = browser.get(f"/_emulator/ui/{screen}").raise_for_status()
                times.append((time.perf_counter() - began) * 1e3)
            files = sorted(set(re.findall(r'(?:src|href)="([^"]*/static/[^"]*)"', page.text)))
            size = page.num_bytes_downloaded + sum(browser.get(file).num_bytes_downloaded for file in files)
            first, warm = times[0], statistics.median(times[1:])
            print(f"{screen.split('&')[0]:20} {first:7.1f} ms at first {warm:6.1f} ms warm {size:7,} bytes")


@asynccontextmanager
async def viewer(address: Address, path: str) -> AsyncIterator[asyncio.Queue[float]]:
    """Follow a page; yield a queue of the times at which its messages came."""
    reader, writer = await asyncio.open_connection(*address)
    path = path.replace("?", "/events?")
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n\r\n".encode())
    times: asyncio.Queue[float] = asyncio.Queue()

    async def reading() -> None:
        while line := await reader.readline():
            if line.startswith(b"id: "):
                times.put_nowait(time.perf_counter())

    task = asyncio.create_task(reading())
    try:
        await times.get()
        yield times
    finally:
        task.cancel()
        writer.close()


def rates(rounds: int, seconds: float) -> list[Row]:
    """Compare votes per second, and their processor time, with an open page and without."""
    requests = ballots()
    with laboratory() as (stack, _):
        server = start_server(stack, "sandbox", JOURNAL)
        uvloop.run(load([server.address], requests, seconds=1))
        path = poll_page(server)

        @asynccontextmanager
        async def with_a_viewer() -> AsyncIterator[None]:
            async with viewer(server.address, path):
                yield

        cases = {"closed": Case([server], requests), "open": Case([server], requests, with_a_viewer)}
        results = measure(stack, cases, rounds, seconds, again=["closed"])
    cost = "processor time of a vote with an open page / without"
    return [
        results.rate_row("dashboard", "votes/s with an open page / without", "open", "closed", 0.95, 1.0),
        results.cost_row("dashboard", cost, "open", "closed", None, None),
    ]


def visible(_: int, __: float) -> list[Row]:
    """Measure the milliseconds from a vote until the page of the requests has it."""
    times = sorted(uvloop.run(_visible()))
    figures = {"median ms": statistics.median(times), "p95 ms": times[int(len(times) * 0.95)]}
    return [Row("dashboard", "p95 of a vote until an open page has it / 400 ms", [figures["p95 ms"] / 400], [], 1.0,
                0.75, higher_is_better=False, figures=figures)]  # fmt: skip


async def _visible() -> Sequence[float]:
    pin_to_core(1)
    requests, found = ballots(), []
    with ExitStack() as stack:
        server = start_server(stack, "sandbox", JOURNAL)
        await load([server.address], requests, seconds=1)
        async with viewer(server.address, "/_emulator/ui/requests?status=2xx") as times:
            for number in range(CHANGES):
                await asyncio.sleep(number % 7 * 0.05)  # at any moment of the stream's own interval
                while not times.empty():
                    times.get_nowait()
                began = time.perf_counter()
                await load([server.address], iter(requests[number : number + 1]), connections=1, seconds=5)
                found.append((await times.get() - began) * 1e3)
    return found


def mixed_requests() -> list[bytes]:
    """Return votes and other requests, in an order that is always the same."""
    reads = [request("GET", f"/v1/e/{path}", authorization("1")) for path in ("vote?id=poll", "user_info")]
    requests = [*ballots(), *reads * (VOTERS // 10)]
    random.Random(7).shuffle(requests)
    return requests


def in_chromium(seconds: float) -> None:
    """Print what pages that are open in Chromium need."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        print("no Chromium: nothing measured of an open page")
        return
    asyncio.run(_long(chromium, seconds))
    asyncio.run(_shifts(chromium, seconds))


async def _shifts(chromium: str, seconds: float) -> None:
    """Print the layout shift and the received bytes per second of each page while requests are handled."""
    from playwright.async_api import async_playwright

    with ExitStack() as stack:
        server = start_server(stack, "sandbox", JOURNAL)
        await load([server.address], ballots(), seconds=1)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for path in (*(f"/_emulator/ui/{screen}" for screen in SCREENS), poll_page(server)):
                page = await (await browser.new_context()).new_page()
                await page.add_init_script(_OBSERVE_SHIFTS)
                received: list[float] = []
                session = await page.context.new_cdp_session(page)
                await session.send("Network.enable")
                session.on("Network.dataReceived", lambda event, to=received: to.append(event["encodedDataLength"]))
                await page.goto(server.url + path, wait_until="load")
                received.clear()
                await load([server.address], mixed_requests(), connections=4, seconds=seconds, rate=RATE)
                shift = await page.evaluate("shifts.reduce((sum, each) => sum + each, 0)")
                name = path.rpartition("/")[2].partition("&")[0]
                print(f"{name:24} {shift:6.3f} layout shift {sum(received) / seconds / 1e3:6.1f} kB/s received")
                await page.context.close()
            await browser.close()


async def _long(chromium: str, seconds: float) -> None:
    """Print what two open pages need after each tenth of `seconds` with votes and other requests."""
    from playwright.async_api import CDPSession, Page, async_playwright

    requests = mixed_requests()
    with ExitStack() as stack:
        server = start_server(stack, "sandbox", JOURNAL)
        await load([server.address], ballots(), seconds=1)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            opened: list[tuple[str, Page, CDPSession]] = []
            for path in (poll_page(server), "/_emulator/ui/requests"):
                # A context each: a page behind another one is hidden, and closes its stream.
                page = await (await browser.new_context()).new_page()
                await page.goto(server.url + path)
                session = await page.context.new_cdp_session(page)
                await session.send("Performance.enable")
                await page.locator("tbody tr").count()  # playwright's own script in the page takes 0.8 MiB
                opened.append((path.partition("?")[0], page, session))
            for _ in range(STEPS):
                paced = load([server.address], requests, connections=4, seconds=seconds / STEPS, rate=RATE)
                sent = (await paced).answered
                for name, page, session in opened:
                    await session.send("HeapProfiler.collectGarbage")
                    answer = await session.send("Performance.getMetrics")
                    metrics = {each["name"]: each["value"] for each in answer["metrics"]}
                    rows = await page.locator("tbody tr").count()
                    figures = f"{sent:8,} requests {rows:4} rows {metrics['Nodes']:7,.0f} nodes"
                    print(f"{name:24} {figures} {metrics['JSHeapUsedSize'] / 2**20:6.2f} MiB heap")
            await browser.close()


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    pages()
    report.main(rates, visible)
    in_chromium(argument(3, 60.0))

"""The longest hold of the event loop of a sandbox: `python benchmarks/holds.py [NAMESPACES]`.

Prints for each kind of request how long the loop did nothing else, at most: the first page of the dashboard, the
OpenAPI document, the opening of namespaces (2,000 by default), a list of them all, a page with a stream, and the drops
of all at once. The columns are those of `pauses.py`. The target is 50 ms.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection

import uvloop
from common import argument
from pauses import TARGET, Pauses, Server

_AT_ONCE = 8
"""Connections that open and drop namespaces."""


def serve() -> None:
    """Serve a sandbox in memory, and report the pauses for each line of standard input."""
    from emulator.config.settings import Settings
    from emulator.process import run
    from emulator.process.http_server import listen, url_of
    from emulator.process.signals import HANGUPS, SignalHandler

    listener = listen("127.0.0.1", 0)

    def started() -> None:
        loop = asyncio.get_running_loop()
        pauses = Pauses(loop)

        def report_on_request() -> None:
            for _ in sys.stdin:
                loop.call_soon_threadsafe(pauses.report)

        threading.Thread(target=report_on_request, daemon=True).start()
        print(url_of("127.0.0.1", listener), flush=True)

    uvloop.run(run.serve(Settings(), listener, started, SignalHandler(*HANGUPS)))


def main() -> int:
    number = int(argument(1, 2_000))
    worst = 0.0
    with ExitStack() as stack:
        server = Server(stack, "", script=__file__)

        def call(method: str, path: str) -> bytes:
            connection = HTTPConnection(*server.address, timeout=60)
            try:
                connection.request(method, path)
                response = connection.getresponse()
                body = response.read()
                assert response.status == 200, (method, path, response.status, body)
                return body
            finally:
                connection.close()

        def follow() -> None:
            connection = HTTPConnection(*server.address, timeout=60)
            connection.request("GET", "/_emulator/ui/overview/events")
            connection.getresponse().readline()
            connection.close()

        def at_once(method: str, names: int) -> None:
            path = "/_ns/n{}/_emulator/clock" if method == "GET" else "/_ns/n{}"
            with ThreadPoolExecutor(_AT_ONCE) as threads:
                list(threads.map(lambda name: call(method, path.format(name)), range(names)))

        def measure(kind: str, send: Callable[[], object]) -> None:
            nonlocal worst
            server.pauses()
            send()
            found = server.pauses()
            worst = max(worst, found["cpu"])
            print(f"{kind:44} {found['cpu']:8.1f} {found['wall']:8.1f} {found['gc']:8.1f}", flush=True)

        print(f"{'kind':44} {'cpu ms':>8} {'wall ms':>8} {'gc ms':>8}")
        measure("first page of the dashboard", lambda: call("GET", "/_emulator/ui/overview"))
        measure("OpenAPI document", lambda: call("GET", "/schema/openapi.json"))
        measure("first namespace", lambda: call("GET", "/_ns/first/_emulator/clock"))
        measure(f"{number:,} namespaces", lambda: at_once("GET", number - 1))
        measure("GET /_ns of all", lambda: json.loads(call("GET", "/_ns")))
        measure("page of all namespaces", lambda: call("GET", "/_emulator/ui/namespaces"))
        measure("page with a stream", follow)
        measure("drops of all", lambda: at_once("DELETE", number - 1))
    return int(worst > TARGET)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve()
    else:
        sys.exit(main())

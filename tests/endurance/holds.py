"""The longest hold of the event loop of a sandbox: `make holds NAMESPACES=2000`.

Prints for each kind of request how long the loop did nothing else, at most: the first page of the dashboard, the
OpenAPI document, the opening of namespaces (2,000 by default), a list of them all, a page with a stream, and the drops
of all at once. The columns are as in `pauses.py`. The target is 50 ms.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection

from common import argument
from pauses import TARGET, Watched

_AT_ONCE = 8
"""Connections that open and drop namespaces."""


def main() -> int:
    number = int(argument(1, 2_000))
    with ExitStack() as stack:
        server = Watched(stack, "sandbox pauses")

        def call(method: str, path: str) -> dict[int, int]:
            connection = HTTPConnection(*server.address, timeout=60)
            try:
                connection.request(method, path)
                response = connection.getresponse()
                body = response.read()
                assert response.status == 200, (method, path, response.status, body)
                return {response.status: 1}
            finally:
                connection.close()

        def follow() -> int:
            connection = HTTPConnection(*server.address, timeout=60)
            connection.request("GET", "/_emulator/ui/overview/events")
            connection.getresponse().readline()
            connection.close()
            return 1

        def at_once(method: str, names: int) -> int:
            path = "/_ns/n{}/_emulator/clock" if method == "GET" else "/_ns/n{}"
            with ThreadPoolExecutor(_AT_ONCE) as threads:
                list(threads.map(lambda name: call(method, path.format(name)), range(names)))
            return names

        server.measure("first page of the dashboard", partial(call, "GET", "/_emulator/ui/overview"))
        server.measure("OpenAPI document", partial(call, "GET", "/schema/openapi.json"))
        server.measure("first namespace", partial(call, "GET", "/_ns/first/_emulator/clock"))
        server.measure(f"{number:,} namespaces", partial(at_once, "GET", number - 1))
        server.measure("GET /_ns of all", partial(call, "GET", "/_ns"))
        server.measure("page of all namespaces", partial(call, "GET", "/_emulator/ui/namespaces"))
        server.measure("page with a stream", follow)
        server.measure("drops of all", partial(at_once, "DELETE", number - 1))
    return int(server.worst["cpu"] > TARGET)


if __name__ == "__main__":
    sys.exit(main())

"""POST vote against servers from npm: `make bench-peers`, or `python benchmarks/peers.py [ROUNDS] [SECONDS]`.

Each server answers a small JSON body with a small JSON body. The service checks a token and writes each vote to its
file before it answers; no peer does either. All run on core 0 and the load on core 1, one at a time in each round.
A peer runs as its users run it, in production mode and without a log where it has a switch for that:

fastify      `peers/fastify.js`: the same poll with the same arithmetic in memory, and schemas for body and response
json-server  `POST /votes` adds a record and writes its whole file anew, so each round starts with an empty file
prism        mocks `peers/openapi.yaml`: it validates the request and answers with the example
mockoon      serves `peers/mockoon.json`, a template that repeats the value of the vote. It logs each request to stdout

Before the measurement, each server must give the right answers; those of the service and of fastify must be equal.
`known` are 1,000 voters with tokens that the service has seen; `new` gives each request a token and voter of its own,
and fastify new voters.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import uvloop
from audience import PREPARED_PER_SECOND, VOTERS, authorization
from common import Address, pin_to_core, start_server
from load import Measured, load
from report import Row, bound, main, ratios
from servers import Memory

FOLDER = Path(__file__).with_name("peers")
PATH = "/v1/e/vote?id="
WARM_UP = 0.5
"""Seconds of load before a peer that restarts in each round is measured."""
EXAMPLE = {"mean": 1.5, "sum": 3, "count": 2, "stddev": 0.5}

Prepare = Callable[[str, int, int], bytes]
"""Returns a request from a path, the number of the voter and a value."""


def start_program(stack: ExitStack, *command: object) -> tuple[Address, int]:
    """Run a server on core 0 until the stack closes; return its address and process id.

    The word `PORT` in its command becomes a free port.
    """
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        address: Address = free.getsockname()
    words = [str(address[1]) if word == "PORT" else str(word) for word in command]
    process = subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"NODE_ENV": "production"},
        cwd=FOLDER,
        preexec_fn=lambda: pin_to_core(0),
    )
    stack.callback(process.wait, 20)
    stack.callback(process.kill)
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(address).close()
            return address, process.pid
        except ConnectionRefusedError:
            assert process.poll() is None, f"{words} ended at once"
            assert time.monotonic() < deadline, f"{words} did not listen within 60 s"
            time.sleep(0.05)


def start_node(stack: ExitStack, script: str, *args: object) -> tuple[Address, int]:
    """Run a script of the folder `peers` as `start_program` does."""
    assert (FOLDER / "node_modules").exists(), "`make bench-peers` installs the packages"
    return start_program(stack, "node", script, *args)


@contextmanager
def peer(name: str) -> Iterator[Address]:
    """Run a peer with an empty file, if it has one."""
    modules = "node_modules"
    with ExitStack() as stack:
        if name == "fastify":
            command: tuple[object, ...] = ("fastify.js", "PORT")
        elif name == "json-server":
            data = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "db.json"
            data.write_text('{"votes": []}')
            options = ("--host", "127.0.0.1", "--port", "PORT", "--quiet")
            command = (f"{modules}/json-server/lib/cli/bin.js", *options, data)
        elif name == "prism":
            # Without `-m false`, this version fails to start in production mode.
            options = ("-p", "PORT", "-m", "false", "-v", "silent")
            command = (f"{modules}/@stoplight/prism-cli/dist/index.js", "mock", *options, "openapi.yaml")
        else:
            options = ("--port", "PORT", "--disable-log-to-file", "--disable-admin-api")
            command = (f"{modules}/@mockoon/cli/bin/run.js", "start", "--data", "mockoon.json", *options)
        yield start_node(stack, *map(str, command))[0]


def to_service(path: str, user: int, value: int) -> bytes:
    """Return a request with the token of a viewer."""
    return _request(path, f"Authorization: {authorization(str(user))}", value)


def to_peer(path: str, user: int, value: int) -> bytes:
    """Return a request with the name of a voter."""
    return _request(path, f"X-User: {user}", value)


def _request(path: str, header: str, value: int) -> bytes:
    body = b'{"value":%d}' % value
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\n{header}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def prepared(prepare: Prepare, path: str, first: int, count: int) -> list[bytes]:
    """Return a vote of each of `count` voters."""
    values = random.Random(first)
    return [prepare(path, user, values.randrange(10)) for user in range(first, first + count)]


def answer(address: Address, request: bytes) -> tuple[int, Any]:
    """Send a prepared request; return the status and the parsed body."""
    with closing(socket.create_connection(address)) as connection:
        connection.sendall(request)
        response = http.client.HTTPResponse(connection, method="POST")
        response.begin()
        return response.status, json.loads(response.read())


def check(name: str, address: Address) -> None:
    """Fail unless a server answers votes correctly."""
    for number, value in enumerate((3, 7, 7, 0)):
        user = number % 3  # the last is a second vote of the first user
        if name in ("service", "fastify"):
            request = (to_service if name == "service" else to_peer)(f"{PATH}check", user, value)
            if not number:
                expected_poll = Memory()
            expected: Any = (200, expected_poll.cast(str(user), value))
        elif name == "json-server":
            request = to_peer("/votes", user, value)
            expected = 201, {"value": value, "id": number + 1}
        else:
            request = to_peer(f"{PATH}check", user, value)
            expected = 200, EXAMPLE | {"vote": value if name == "mockoon" else 1}
        given = answer(address, request)
        assert given == expected, f"{name} answered {given} instead of {expected}"


class Peers:
    """The servers of one run, and what was measured so far."""

    def __init__(self, stack: ExitStack, seconds: float) -> None:
        self._seconds = seconds
        self._new = VOTERS
        """The number of the next new voter."""
        self._known = {each: prepared(each, f"{PATH}known", 0, VOTERS) for each in (to_service, to_peer)}
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self._addresses = {name: stack.enter_context(peer(name)) for name in ("fastify", "prism", "mockoon")}
        self._addresses["service"], _ = start_server(stack, "file", folder / "data.db")
        self._addresses["echo"], _ = start_server(stack, "echo")
        for name, address in self._addresses.items():
            if name != "echo":
                check(name, address)

    def round(self) -> dict[str, Measured]:
        """Measure all servers in turn, fastify twice."""
        results = {name: self._known_voters(name) for name in ("fastify", "service", "prism", "mockoon")}
        results["json-server"] = self._json_server()
        results["fastify again"] = self._known_voters("fastify")
        new = range(self._new, self._new + int(PREPARED_PER_SECOND * self._seconds))
        self._new = new.stop
        for name, prepare in (("service", to_service), ("fastify", to_peer)):
            requests = iter(prepared(prepare, f"{PATH}new", new.start, len(new)))
            results[f"{name}, new"] = self._measure(self._addresses[name], requests)
        results["echo"] = self._known_voters("echo")
        return results

    def _known_voters(self, name: str) -> Measured:
        return self._measure(self._addresses[name], self._known[to_service if name == "service" else to_peer])

    def _json_server(self) -> Measured:
        with peer("json-server") as address:
            check("json-server", address)
            requests = prepared(to_peer, "/votes", 0, VOTERS)
            self._measure(address, requests, WARM_UP, status=201)
            return self._measure(address, requests, status=201)

    def _measure(
        self, address: Address, requests: Iterable[bytes], seconds: float = 0, *, status: int = 200
    ) -> Measured:
        sending = load(*address, requests, seconds=seconds or self._seconds, status=status)
        measured = uvloop.run(sending)
        assert measured.failed == 0, f"{measured.failed} answers other than {status}"
        return measured


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 12."""
    pin_to_core(1)
    results: dict[str, list[Measured]] = {}
    with ExitStack() as stack:
        peers = Peers(stack, seconds)
        for number in range(rounds + 1):
            for name, measured in peers.round().items():
                if number:  # the first round is a warm-up
                    results.setdefault(name, []).append(measured)
    rates = {name: [each.per_second for each in measured] for name, measured in results.items()}
    noise = ratios(rates["fastify again"], rates["fastify"])
    goals = [
        ("service", "json-server", 3.5, 5.0),
        ("service", "prism", 4.0, 6.0),
        ("service", "mockoon", 10.0, 14.0),
        ("service", "fastify", 0.5, 0.65),
        ("service, new", "fastify, new", 0.3, 0.45),
    ]

    def row(ours: str, theirs: str, must: float, stretch: float) -> Row:
        figures = {}
        for name in (ours, theirs):
            figures[f"{name}: votes/s"] = statistics.median(rates[name])
            figures[f"{name}: p99 ms"] = statistics.median(each.p99 * 1e3 for each in results[name])
        kind, peer = ("new tokens and voters", "fastify") if "new" in ours else ("known tokens", theirs)
        return Row(
            "12",
            f"POST vote, {kind} / {peer}",
            ratios(rates[ours], rates[theirs]),
            noise,
            must,
            stretch,
            figures=figures,
            warning=bound(rates["echo"], rates[ours], rates[theirs]),
        )

    return [row(*goal) for goal in goals]


if __name__ == "__main__":
    main(rows)

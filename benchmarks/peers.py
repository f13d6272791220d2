"""POST vote against servers from npm: `make bench-peers`, or `python benchmarks/peers.py [ROUNDS] [SECONDS]`.

Each server answers a small JSON body with a small JSON body. The service checks a token and writes each vote to its
file before it answers; no peer does either. All run on core 0 and the load on core 1, one at a time in each round.
A peer runs as its users run it, in production mode and without a log where it has a switch for that:

fastify      `peers/fastify.js`: the same poll with the same arithmetic in memory, and schemas for body and response
json-server  `POST /votes` adds a record and writes its whole file again, so each round starts with an empty file
prism        mocks `peers/openapi.yaml`: it validates the request and answers with the example
mockoon      serves `peers/mockoon.json`, a template that repeats the value of the vote. It logs each request to stdout

Before the measurement, each server must return the right responses; the service and fastify must return equal ones.
`known` are 1,000 voters with tokens that the service has seen; `new` gives each request a token and voter of its own,
and fastify new voters.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from audience import PREPARED_PER_SECOND, VOTERS, authorization
from common import Address, Started, pin_to_core, start_server
from load import load
from report import Row, main
from rounds import Case, laboratory, measure
from servers import Memory

FOLDER = Path(__file__).with_name("peers")
PATH = "/v1/e/vote?id="
WARM_UP = 0.5
"""Seconds of load before a peer that restarts in each round is measured."""
EXAMPLE = {"mean": 1.5, "sum": 3, "count": 2, "stddev": 0.5}

Prepare = Callable[[str, int, int], bytes]
"""Returns a request from a path, the number of the voter and a value."""


def start_program(stack: ExitStack, *command: object, core: int | None = 0) -> Started:
    """Run a server on one core until the stack closes.

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
        preexec_fn=None if core is None else partial(pin_to_core, core),
    )
    stack.callback(process.wait, 20)
    stack.callback(process.kill)
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(address).close()
            return Started(address, process.pid)
        except ConnectionRefusedError:
            assert process.poll() is None, f"{words} ended at once"
            assert time.monotonic() < deadline, f"{words} did not listen within 60 s"
            time.sleep(0.05)


def start_node(stack: ExitStack, script: str, *args: object) -> Started:
    """Run a script of the folder `peers` as `start_program` does."""
    assert (FOLDER / "node_modules").exists(), "`make bench-peers` installs the packages"
    return start_program(stack, "node", script, *args)


@contextmanager
def peer(name: str) -> Iterator[Started]:
    """Run a peer with an empty file, if it has one, and check that it answers correctly."""
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
        started = start_node(stack, *map(str, command))
        check(name, started.address)
        yield started


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


@asynccontextmanager
async def json_server() -> AsyncIterator[list[Started]]:
    """Run json-server with an empty file, and warm it up."""
    with peer("json-server") as started:
        await load([started.address], prepared(to_peer, "/votes", 0, VOTERS), seconds=WARM_UP, status=201)
        yield [started]


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 12."""
    known = {each: prepared(each, f"{PATH}known", 0, VOTERS) for each in (to_service, to_peer)}
    size, newcomers = int(PREPARED_PER_SECOND * seconds), itertools.count()
    with laboratory() as (stack, folder):
        service = start_server(stack, "file", folder / "data.db")
        check("service", service.address)
        fastify = stack.enter_context(peer("fastify"))
        cases = {"fastify": Case([fastify], known[to_peer]), "service": Case([service], known[to_service])}
        for name in ("prism", "mockoon"):
            cases[name] = Case([stack.enter_context(peer(name))], known[to_peer])
        cases["json-server"] = Case([], prepared(to_peer, "/votes", 0, VOTERS), json_server, status=201)
        for name, server, prepare in (("service", service, to_service), ("fastify", fastify, to_peer)):

            def new(prepare: Prepare = prepare) -> Iterator[bytes]:
                return iter(prepared(prepare, f"{PATH}new", VOTERS + next(newcomers) * size, size))

            cases[f"{name}, new"] = Case([server], new)
        results = measure(stack, cases, rounds, seconds, again=["fastify"])
    known_tokens, new_tokens = "POST vote, known tokens", "POST vote, new tokens and voters"
    return [
        results.rate_row("12", f"{known_tokens} / json-server", "service", "json-server", 8.0, 12.0),
        results.rate_row("12", f"{known_tokens} / prism", "service", "prism", 5.0, 8.0),
        results.rate_row("12", f"{known_tokens} / mockoon", "service", "mockoon", 14.0, 20.0),
        results.rate_row("12", f"{known_tokens} / fastify", "service", "fastify", 0.8, 1.0),
        results.rate_row("12", f"{new_tokens} / fastify", "service, new", "fastify, new", 0.5, 0.65),
    ]


if __name__ == "__main__":
    main(rows)

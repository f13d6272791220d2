"""Goal 12: POST vote against servers from npm.

Each server gets the same requests, and answers a small JSON body with a small JSON body. The service checks a token and
writes each vote to its file before it answers; no peer does either. All run on core 0 and the load on core 1, one at a
time in each round. A peer runs as its users run it, in production mode and without a log if it can:

fastify      `peers/fastify.js`: the same poll with the same arithmetic in memory, and schemas for body and response
json-server  `POST /votes` adds a record and writes its whole file again, so each round starts with an empty file
prism        mocks `peers/openapi.yaml`: it validates the request and answers with the example
mockoon      serves `peers/mockoon.json`, a template that repeats the value of the vote. It logs each request to stdout

Before the measurement, the service and fastify must return equal responses. *Known* are 1,000 voters with tokens that
the service has seen; *new* gives each request a token and a voter of its own.
"""

from __future__ import annotations

import http.client
import itertools
import json
import random
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path

from audience import PREPARED_PER_SECOND, VOTERS, authorization
from common import Started, start, start_service
from load import load, request
from report import Row
from rounds import Case, laboratory, measure
from servers import Memory

WARM_UP = 0.5
"""Seconds of load before a peer that restarts in each round is measured."""
COMMANDS = {
    "fastify": "fastify.js PORT",
    "json-server": "node_modules/json-server/lib/cli/bin.js --host 127.0.0.1 --port PORT --quiet",
    # Without `-m false`, this version fails to start in production mode.
    "prism": "node_modules/@stoplight/prism-cli/dist/index.js mock -p PORT -m false -v silent openapi.yaml",
    "mockoon": "node_modules/@mockoon/cli/bin/run.js start --data mockoon.json --port PORT"
    " --disable-log-to-file --disable-admin-api",
}


def start_peer(stack: ExitStack, name: str, *arguments: object) -> Started:
    return start(stack, "node", *COMMANDS[name].split(), *arguments)


def votes(first: int = 0, size: int = VOTERS, path: str = "/v1/e/vote?id=poll") -> list[bytes]:
    """Return a vote of each of `size` voters, with a token for the service and a header for the peers."""
    values = random.Random(first)
    return [
        request(
            "POST",
            path,
            authorization(str(user)),
            b'{"value":%d}' % values.randrange(10),
            f"X-User: {user}\r\nContent-Type: application/json\r\n",
        )
        for user in range(first, first + size)
    ]


def check(server: Started) -> None:
    """Fail unless a server answers votes as the poll in memory does."""
    poll = Memory()
    with closing(http.client.HTTPConnection(*server.address)) as connection:
        for user, value in (("0", 3), ("1", 7), ("2", 7), ("0", 0)):
            headers = {"Authorization": authorization(user), "X-User": user, "Content-Type": "application/json"}
            connection.request("POST", "/v1/e/vote?id=check", json.dumps({"value": value}), headers)
            answer = json.loads(connection.getresponse().read())
            assert answer == poll.cast(user, value), answer


def empty_file(stack: ExitStack) -> Path:
    """Return a file without votes for json-server."""
    file = Path(stack.enter_context(tempfile.TemporaryDirectory()), "db.json")
    file.write_text('{"votes": []}')
    return file


@asynccontextmanager
async def json_server() -> AsyncIterator[list[Started]]:
    """Run json-server with an empty file, and warm it up."""
    with ExitStack() as stack:
        started = start_peer(stack, "json-server", empty_file(stack))
        await load([started.address], votes(path="/votes"), seconds=WARM_UP, status=201)
        yield [started]


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 12."""
    size = int(PREPARED_PER_SECOND * seconds)
    numbers = itertools.count(VOTERS, size)

    def newcomers() -> Iterator[bytes]:
        return iter(votes(next(numbers), size))

    with laboratory() as (stack, folder):
        servers = {name: start_peer(stack, name) for name in ("fastify", "prism", "mockoon")}
        servers["service"] = start_service(stack, f"sqlite://{folder}/data.db")
        for name in ("service", "fastify"):
            check(servers[name])
        cases = {name: Case([server], votes()) for name, server in servers.items()}
        cases["json-server"] = Case([], votes(path="/votes"), json_server, status=201)
        for name in ("service", "fastify"):
            cases[f"{name}, new"] = Case([servers[name]], newcomers)
        again = [name for name in cases if not name.startswith("service")]
        results = measure(stack, cases, rounds, seconds, again=again)
    known, new = "POST vote, known tokens", "POST vote, new tokens and voters"
    return [
        results.row("12", f"{known} / json-server", "service", "json-server", 8.0, 12.0),
        results.row("12", f"{known} / prism", "service", "prism", 5.0, 8.0),
        results.row("12", f"{known} / mockoon", "service", "mockoon", 14.0, 20.0),
        results.row("12", f"{known} / fastify", "service", "fastify", 0.8, 1.0),
        results.row("12", f"{new} / fastify", "service, new", "fastify, new", 0.5, 0.65),
    ]

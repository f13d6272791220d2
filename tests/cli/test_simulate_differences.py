"""`extcli simulate`: every difference between the plan and the result is found."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from support.middleware import Middleware
from support.program import http_response
from support.service import LiveServer, live_server
from support.simulations import crowd_of

Handler = Callable[[Any, Any, Any, Any], Awaitable[None]]


@pytest.fixture
def crowd(extcli):
    return crowd_of(extcli)


@pytest.fixture
def faulty(monkeypatch, environment) -> Iterator[Callable[[Handler], LiveServer]]:
    """Start a service whose votes pass through a handler with a fault, and send the commands there."""
    running = []

    def start(handler: Handler) -> LiveServer:
        class Faulty(Middleware):
            async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
                is_vote = scope["type"] == "http" and (scope["method"], scope["path"]) == ("POST", "/v1/e/vote")
                await (handler(self._app, scope, receive, send) if is_vote else self._app(scope, receive, send))

        context = live_server(wrap=Faulty)
        running.append(context)
        live = context.__enter__()
        monkeypatch.setenv("EXTCLI_URL", live.url)
        return live

    yield start
    for context in running:
        context.__exit__(None, None, None)


def every(number: int, fault: Handler) -> Handler:
    """Return a handler with a fault at every n-th request."""
    count = iter(range(1, 1_000_000))

    async def handle(app: Any, scope: Any, receive: Any, send: Any) -> None:
        if next(count) % number == 0:
            await fault(app, scope, receive, send)
        else:
            await app(scope, receive, send)

    return handle


async def answer(send: Any, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


async def lose(app: Any, scope: Any, receive: Any, send: Any) -> None:
    """Acknowledge a vote, and do not record it."""
    await answer(send, 200, b"{}")


def test_a_service_that_loses_acknowledged_votes_is_found(crowd, faulty):
    faulty(every(10, lose))
    failed = crowd("-o", "json", exits=7)

    assert "differs" == failed.json["verdict"]
    assert {"name": "voters", "planned": 50, "found": 45} in failed.json["counts"]
    details = json.loads(failed.stderr.splitlines()[-1])["error"]["details"]
    assert "the service acknowledged something else: it lost or changed requests" == details[-1]
    assert ["planned", "found"] == details[0].split()


def test_late_votes_that_are_accepted_are_found(crowd, extcli, faulty):
    faulty(every(50, lose))  # the last is late
    extcli("vote", "define", "lunch", "--prompt", "Which?")
    failed = crowd("--late", "2%", "--connections", "1", exits=7)

    assert "late votes that were accepted: 1" in failed.stderr


def test_a_vote_without_a_response_leaves_the_result_undecided(crowd, extcli):
    extcli("fault", "add", "--match", "POST /v1/e/vote", "--drop", "--times", "2")
    failed = crowd("-o", "json", exits=3)

    assert ("not decided", 2) == (failed.json["verdict"], failed.json["undecided"])
    assert 2 == failed.json["figures"]["failed"]
    assert "is not decided: 2 undecided users" in failed.stderr


@pytest.mark.parametrize("kind", ["crowd --mix 0:1", "rank --mix a:1", "accumulate"])
def test_a_result_that_cannot_be_read_is_an_unexpected_response(extcli, answering, kind: str):
    token = http_response("200 OK", '{"token": "e30.e30.x"}')

    for body in ("<html>", "[]", "null", '{"stats": 5, "data": 5}', "[" * 100_000, '{"stats": {}, "data": [1]}'):
        url = answering(token, http_response("200 OK", body))
        said = extcli("simulate", *kind.split(), "--viewers", "2", "--url", url, exits=5).stderr
        assert "returned an unexpected response" in said

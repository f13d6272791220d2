"""`extcli simulate`: every difference between the plan and the result is found."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from support.middleware import Middleware
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


async def stay_silent(app: Any, scope: Any, receive: Any, send: Any) -> None:
    """Neither record nor answer a vote."""
    await asyncio.Event().wait()


async def record_silently(app: Any, scope: Any, receive: Any, send: Any) -> None:
    """Record a vote, and do not answer."""

    async def swallow(message: Any) -> None:
        pass

    await app(scope, receive, swallow)
    await asyncio.Event().wait()


def test_a_service_that_loses_acknowledged_votes_is_found(crowd, faulty):
    faulty(every(10, lose))
    failed = crowd("-o", "json", exits=7)

    assert "differs" == failed.json["verdict"]
    assert {"name": "voters", "planned": 50, "found": 45} in failed.json["counts"]
    details = json.loads(failed.stderr.splitlines()[-1])["error"]["details"]
    assert "the service acknowledged something else: it lost or changed requests" == details[-1]
    assert "planned  found" in details[0]


def test_refused_and_lost_votes_are_distinguished(crowd, faulty):
    async def refuse(app: Any, scope: Any, receive: Any, send: Any) -> None:
        await answer(send, 403, b'{"reason":"no"}')

    faulty(every(10, refuse))
    failed = crowd("--expect", "refused==0", exits=7)

    assert "it is what the service acknowledged: requests were refused or failed" in failed.stderr
    assert "not met: refused==0 (found 5)" in failed.stderr
    assert ["refused", "5"] in failed.rows


def test_late_votes_that_are_accepted_are_found(crowd, extcli, faulty):
    faulty(every(50, lose))  # the last is late
    extcli("vote", "define", "lunch", "--prompt", "Which?")
    failed = crowd("--late", "2%", "--connections", "1", exits=7)

    assert "1 late vote was accepted" in failed.stderr


@pytest.mark.slow
def test_a_vote_without_a_response_leaves_the_result_undecided(crowd, faulty):
    faulty(every(25, stay_silent))
    failed = crowd("--timeout", "1s", "-o", "json", exits=3)

    assert ("not decided", 2) == (failed.json["verdict"], failed.json["undecided"])
    assert 2 == failed.json["figures"]["failed"]
    assert "is not decided: 2 users are undecided" in failed.stderr


@pytest.mark.slow
@pytest.mark.long
def test_a_vote_without_a_response_that_was_recorded_is_as_planned(crowd, faulty):
    faulty(every(25, record_silently))
    ran = crowd("--timeout", "1s", "-o", "json", exits=0)

    assert ("as planned", 2) == (ran.json["verdict"], ran.json["undecided"])


def test_a_refused_vote_is_sent_again_after_retry_after(crowd, faulty):
    async def later(app: Any, scope: Any, receive: Any, send: Any) -> None:
        await answer(send, 503, b"{}", (b"retry-after", b"0"))

    faulty(every(10, later))
    ran = crowd("-o", "json", exits=0)

    assert (55, 5, 5) == tuple(ran.json["figures"][name] for name in ("sent", "repeated", "refused"))


@pytest.mark.parametrize("kind", [["crowd", "--mix", "0:1"], ["rank", "--mix", "a:1"], ["accumulate"]], ids=str)
@pytest.mark.parametrize(
    "body",
    [b"<html>", b"[]", b"null", b'{"stats": 5, "data": 5}', b"[" * 100_000, b'{"stats": {}, "data": [1]}',
     b'{"stats": {"count": "1", "specific": 1}, "data": [{"key": 1, "score": "x"}]}'],
    ids=range(7),
)  # fmt: skip
def test_a_result_that_cannot_be_read_is_an_unexpected_response(extcli, answering, kind: list[str], body: bytes):
    token, page = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(each), each)
        for each in (b'{"token": "e30.e30.x"}', body)
    )

    result = extcli("simulate", *kind, "--viewers", "2", "--url", answering(token, page))

    assert (5, True) == (result.exit_code, "returned an unexpected response" in result.stderr), result.stderr

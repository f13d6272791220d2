"""A request whose token ends while its body arrives, or while its response is read, ends with it (rulings A1, T3)."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from emulator.core.callers import Caller, Role
from emulator.core.clock import DAY, Clock
from emulator.core.environment import PRODUCTION
from emulator.core.extensions import Extension
from emulator.core.settings import Settings
from emulator.storage.records import Record
from support.authentication import authenticate
from support.pins import create_pin, validate
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, OTHER_SECRET, Client, LiveServer, live_server, real_seconds
from support.socket_client import SocketClient

OLD, NEW = b"the secret before, at least 32 bytes", b"the secret after, at least 32 bytes!"
CODES = {"codes": [["A1", "A2"]], "names": ["Hat"]}
MARK = {"prizes": [0], "prize_limits": [1], "users": ["5551"]}
STATE = {"a": 1}


@pytest.fixture
def live() -> Iterator[LiveServer]:
    with live_server(Settings(PRODUCTION, extensions=extensions(OLD)), clock=Clock()) as live:
        signed(live).put("codes", json={"codes": [["old"]], "names": ["Cap"]}).raise_for_status()
        yield live


def extensions(*secrets: bytes, tokens_not_before: int = 0) -> dict[str, Extension]:
    """The first extension, if it has secrets, and another one."""
    first = [Extension(CLIENT_ID, secrets, tokens_not_before=tokens_not_before)] if secrets else []
    return {each.client_id: each for each in (*first, Extension(OTHER_ID, (OTHER_SECRET,)))}


def reload(live: LiveServer, *secrets: bytes, tokens_not_before: int = 0) -> None:
    async def replace() -> None:
        live.service.replace_extensions(extensions(*secrets, tokens_not_before=tokens_not_before))

    live.run(replace())


def signed(live: LiveServer, key: bytes = OLD, role: str = "backend", **claims: Any) -> Client:
    return live.client(role, key=key, exp=real_seconds() + 600, **claims)


def stored(live: LiveServer) -> list[Record]:
    async def read() -> list[Record]:
        return [each async for page in live.service.engine.dump(now=0) for each in page]

    return live.run(read())


class Slow:
    """A request whose body arrives in two parts. The service has verified the token before the first one."""

    def __init__(self, live: LiveServer, client: Client, method: str, path: str, body: Mapping[str, Any]) -> None:
        text = json.dumps(body).encode()
        self._first, self._rest = text[:-3], text[-3:]
        self._socket = live.connect()
        self._socket.sendall(
            f"{method} /v1/e/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}\r\n"
            f"Authorization: {client.headers['Authorization']}\r\nExpect: 100-continue\r\n\r\n".encode()
        )
        assert b" 100 " in self._socket.recv(100)
        self._socket.sendall(self._first)

    def finish(self) -> int:
        """Send the second part, and return the status."""
        self._socket.sendall(self._rest)
        return self.status()

    def status(self) -> int:
        with self._socket as connection:
            return int(connection.recv(65_536).split()[1])


ENDS: dict[str, Callable[[LiveServer], None]] = {
    "retired": lambda live: reload(live, NEW),
    "removed": reload,
    "expired": lambda live: live.service.clock.advance(DAY),
}
REQUESTS = [
    ("PUT", "codes", "backend", CODES),
    ("POST", "codes/mark_from_list", "backend", MARK),
    (
        "POST",
        "codes/mark_from_poll",
        "backend",
        {"prizes": [0], "prize_limits": [1], "correct": 1, "cutoff_timestamp": 9},
    ),
    ("POST", "extension_state", "backend", STATE),
    ("PATCH", "viewer_state", "admin", {"5551": STATE}),
    ("POST", "vote", "viewer", {"value": 1}),
]


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_request_whose_token_ends_before_its_body_is_complete_changes_nothing(
    live: LiveServer, end: Callable[[LiveServer], None]
):
    before = stored(live)
    requests = [Slow(live, caller(live, role), method, path, body) for method, path, role, body in REQUESTS]
    end(live)

    assert [401] * len(REQUESTS) == [each.finish() for each in requests]
    assert before == stored(live)


def test_a_request_outlasts_the_rotation_of_its_secret(live: LiveServer):
    for method, path, role, body in REQUESTS:
        reload(live, OLD)
        request = Slow(live, caller(live, role), method, path, body)
        reload(live, NEW, OLD)
        assert 200 == request.finish()


def caller(live: LiveServer, role: str) -> Client:
    return signed(live, role=role, opaque="U5551", channel=CHANNEL)


@pytest.mark.parametrize("secrets", [(NEW,), ()], ids=["retired", "removed"])
def test_a_reload_ends_the_uploads_of_ended_secrets_at_once(live: LiveServer, secrets: tuple[bytes, ...]):
    uploads = (("PUT", "codes", CODES), ("POST", "codes/mark_from_list", MARK))
    ended = [Slow(live, signed(live), *each) for each in uploads]
    other = Slow(live, signed(live, OTHER_SECRET, client_id=OTHER_ID), "PUT", "codes", CODES)
    reload(live, *secrets)

    assert [401, 401] == [each.status() for each in ended]
    assert 200 == other.finish()
    assert 0 == len(live.service.shared.uploads)


def test_a_body_of_a_game_whose_link_or_pin_token_has_ended_is_refused(live: LiveServer):
    owner = signed(live, role="broadcaster", user=CHANNEL, channel=CHANNEL)
    with SocketClient(live) as game:
        pin = create_pin(owner)
        validate(owner, pin)
        linked = live.bearer(authenticate(game, pin=pin)["jwt"])
    for not_before, status in ((-DAY, 200), (DAY, 401)):
        request = Slow(live, linked, "POST", "channel_state", STATE)
        reload(live, OLD, tokens_not_before=live.service.clock.now() + not_before)
        assert status == request.finish()
    reload(live, OLD)

    with Client(base_url=f"{live.url}/v1/e/") as anyone:
        issued = anyone.post("pin", json={"identifier": CLIENT_ID}).raise_for_status().json()
    validate(owner, issued["pin"])
    request = Slow(live, live.bearer(issued["token"]), "POST", "channel_state", STATE)
    owner.delete("pin").raise_for_status()
    assert 401 == request.finish()


@pytest.mark.parametrize("method", ["DELETE", "GET"])
@pytest.mark.parametrize(
    ("start", "end"),
    [("", "0\r\n\r\n"), ("0;a=b", "\r\n\r\n"), ("0\r\nX: ", "a\r\n\r\n")],
    ids=["size", "extension", "trailer"],
)
def test_chunks_without_content_end_with_the_secret(live: LiveServer, method: str, start: str, end: str):
    header = signed(live).headers["Authorization"]
    with live.connect() as connection:
        connection.sendall(
            f"{method} /v1/e/codes HTTP/1.1\r\nHost: localhost\r\nAuthorization: {header}\r\n"
            f"Transfer-Encoding: chunked\r\n\r\n{start}".encode()
        )
        live.client("viewer").get("vote")  # an answer after the request has begun
        reload(live, NEW)
        connection.sendall(end.encode())

        assert connection.recv(4_096).startswith(b"HTTP/1.1 401 ")


def test_a_log_of_votes_ends_with_the_secret_of_its_reader(live: LiveServer):
    run = live.service.dispatcher.run_as

    async def vote(voters: int) -> None:
        for first in range(0, voters, 1_000):
            some = (Caller(CLIENT_ID, Role.VIEWER, CHANNEL, None, f"U{n}") for n in range(first, first + 1_000))
            await asyncio.gather(*(run("POST", "/v1/e/vote", each, {}, b'{"value":1}') for each in some))

    live.run(vote(voters := 20_000))  # more than the buffers of a connection hold
    credential = signed(live, role="admin", channel=CHANNEL).headers["Authorization"]
    head = "GET /v1/e/vote_logs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"

    for secrets, is_whole in (((NEW, OLD), True), ((NEW,), False)):
        with live.connect() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.sendall(f"{head}Authorization: {credential}\r\n\r\n".encode())
            received = connection.recv(1_000)
            reload(live, *secrets)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)  # with a small one, the rest takes long
            while more := connection.recv(1 << 20):
                received += more

        assert received.startswith(b"HTTP/1.1 200 ")
        assert is_whole is received.endswith(b"]}\r\n0\r\n\r\n")
        body = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", received)  # without the sizes of chunks
        assert is_whole is (body.count(b'"identifier"') == voters)

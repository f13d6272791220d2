"""`extcli serve --log-requests`: a line for each answered request, of a path or of the socket."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from support.process import ServerProcess, server_process
from support.service import CHANNEL, CLIENT_ID, Client
from support.socket_client import linked_game

Json = dict[str, Any]


def lines_of(work: Callable[[ServerProcess], None], *args: str, **environment: str) -> list[str]:
    """The lines for requests of a service that was asked something."""
    with server_process(*args, **environment) as served:
        work(served)
        assert 0 == served.stop(signal.SIGTERM)
        assert served.process.stderr is not None
        return [line for line in served.process.stderr if "emulator.requests" in line]


def vote(served: ServerProcess) -> None:
    client = served.client("viewer", user="5551", channel=CHANNEL)
    client.post("vote?id=rps", json={"value": 1}, headers={"X-Request-Id": "mine"}).raise_for_status()


def records(work: Callable[[ServerProcess], None]) -> list[Json]:
    return [json.loads(line) for line in lines_of(work, "--log-requests", "--log-format", "json")]


def test_there_are_none_unless_asked_for():
    assert [] == lines_of(vote, "--log-level", "debug")


@pytest.mark.parametrize("level", ["debug", "info", "error"])
def test_they_come_at_every_level_once_asked_for(level: str):
    assert 1 == len(lines_of(vote, EXTCLI_SERVE_LOG_REQUESTS="1", EXTCLI_SERVE_LOG_LEVEL=level))


def test_a_line_says_what_was_asked_and_answered_and_by_whom_and_names_no_user():
    (line,) = lines_of(vote, "--log-requests")

    said = r"POST /v1/e/vote: 200 in \d+\.\d ms, \d{3} bytes, my-extension viewer 777"
    assert re.fullmatch(rf"[\d-]{{10}} [\d:,]{{12}} INFO emulator\.requests \[mine\]: {said}\n", line)
    assert "5551" not in line


def test_in_json_each_of_these_is_a_field():
    (line,) = records(vote)

    assert {"method": "POST", "path": "/v1/e/vote", "status": 200, "client_id": CLIENT_ID, "role": "viewer",
            "channel": CHANNEL, "request_id": "mine"}.items() <= line.items()  # fmt: skip
    assert 0 < line["duration_ms"] < 5_000
    assert 100 < line["bytes"] < 1_000


def test_what_reaches_no_endpoint_has_a_line_too_and_queries_never_have():
    def wander(served: ServerProcess) -> None:
        with Client(base_url=served.url) as client:
            client.get("/nothing/here?code=hidden")
            client.options("/v1/e/vote?code=hidden")
            client.get("/v1/e/vote?code=hidden")
            client.get("/_ns/blue/_emulator/live")

    lines = records(wander)

    assert [
        ("GET", "/nothing/here", 404),
        ("OPTIONS", "/v1/e/vote", 200),
        ("GET", "/v1/e/vote", 401),
        ("GET", "/_ns/blue/_emulator/live", 200),
    ] == [(line["method"], line["path"], line["status"]) for line in lines]
    assert "hidden" not in json.dumps(lines)


def test_a_streamed_answer_is_logged_when_it_has_ended_with_all_its_bytes():
    sizes = []

    def read(served: ServerProcess) -> None:
        admin = served.client("admin", user="1", channel=CHANNEL)
        sizes.append(len(admin.get("vote_logs").raise_for_status().content))

    assert sizes == [line["bytes"] for line in records(read)]


def test_each_request_of_a_socket_has_a_line_with_the_id_of_its_connection():
    def play(served: ServerProcess) -> None:
        with linked_game(served) as game:
            game.data("get", "state", {"state_id": "channel"})
            game.error("no-such-action", "some-target")

    lines = [line for line in records(play) if "action" in line]

    assert [("socket authenticate", 200), ("socket get", 200), ("socket", 404)] == [
        (line["action"], line["status"]) for line in lines
    ]
    connection = lines[0]["request_id"].removesuffix("/1")
    assert [f"{connection}/{number}" for number in (1, 2, 3)] == [line["request_id"] for line in lines]
    assert {(CLIENT_ID, "broadcaster", CHANNEL)} == {
        (line["client_id"], line["role"], line["channel"]) for line in lines
    }


def test_a_path_cannot_write_a_line_of_its_own():
    def forge(served: ServerProcess) -> None:
        with Client(base_url=served.url) as client:
            client.get("/a%0A2026-01-01 00:00:00,000 ERROR emulator: forged%1B[31m")

    (line,) = lines_of(forge, "--log-requests")

    assert r"GET /a\n2026-01-01" in line
    assert "\x1b" not in line


def answered(served: ServerProcess, sent: bytes) -> bytes:
    """What comes back until the other side hangs up."""
    with socket.create_connection(("127.0.0.1", urlsplit(served.url).port or 0), timeout=10) as wire:
        wire.sendall(sent)
        return b"".join(iter(lambda: wire.recv(65_536), b""))


def id_in(answer: bytes) -> str:
    return re.findall(rb"\r\nx-request-id: (.+?)\r\n", answer)[0].decode()


def beginning(served: ServerProcess, headers: str, body: str) -> bytes:
    """A vote of which more is announced, or worse is sent, than a vote."""
    credential = served.client("viewer", user="1", channel=CHANNEL).headers["Authorization"]
    head = f"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nAuthorization: {credential}\r\nX-Request-Id: mine\r\n"
    return f"{head}{headers}\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [("Content-Length: 20", "{", 408), ("Transfer-Encoding: chunked", "no length\r\n", 400)],
    ids=["a body that never ends", "a body that cannot be read"],
)
def test_a_request_that_is_cut_is_logged_and_counted_once_with_what_it_was_answered(
    headers: str, body: str, status: int
):
    counted = []

    def hang(served: ServerProcess) -> None:
        answer = answered(served, beginning(served, headers, body))
        assert (b"HTTP/1.1 %d" % status, "mine") == (answer[:12], id_in(answer))
        with Client(base_url=served.url) as client:
            counted.extend(re.findall(r"emulator_(?:requests|limited)_total{.*", client.get("/_emulator/metrics").text))

    with_id = [
        json.loads(line)
        for line in lines_of(hang, "--log-requests", "--log-format", "json", "--request-timeout", "1")
        if '"mine"' in line
    ]

    assert [("POST", "/v1/e/vote", status)] == [(each["method"], each["path"], each["status"]) for each in with_id]
    limited = ['emulator_limited_total{reason="Request timeout"} 1.0'] if status == 408 else []
    assert [f'emulator_requests_total{{method="POST",path="/v1/e/vote",status="{status}"}} 1.0', *limited] == counted


def test_what_is_answered_before_there_is_a_request_has_a_line_with_the_id_that_was_answered():
    answers = []

    def babble(served: ServerProcess) -> None:
        for sent in (
            b"\x16\x03\x01 this is no HTTP\r\n\r\n",
            b"GET /large?code=hidden HTTP/1.1\r\nX-Request-Id: mine\r\nX: " + b"x" * 66_000,
            b"POST /slow HTTP/1.1\r\nHost: x\r\n",
        ):
            answers.append(answered(served, sent))

    lines = [
        json.loads(line)
        for line in lines_of(babble, "--log-requests", "--log-format", "json", "--request-timeout", "1")
    ]

    assert [id_in(answer) for answer in answers] == [line["request_id"] for line in lines]
    assert [("", 400), ("/large", 431), ("/slow", 408)] == [(line["path"], line["status"]) for line in lines]


def test_what_cannot_be_read_is_a_warning_that_names_the_id_without_lines_for_requests_too():
    with server_process() as served:
        answer = answered(served, b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        assert 0 == served.stop(signal.SIGTERM)
        assert served.process.stderr is not None
        warnings = [line for line in served.process.stderr if "WARNING" in line]

    assert [f"WARNING emulator [{id_in(answer)}]: what came is no HTTP request\n"] == [
        line.split(" ", 2)[2] for line in warnings
    ]


@pytest.mark.parametrize(("path", "status"), [("/v1/none", 404), ("/_ns/a.b/ws", 400)])
def test_a_handshake_that_is_refused_has_a_line_without_its_path(path: str, status: int):
    def knock(served: ServerProcess) -> None:
        with pytest.raises(InvalidStatus):
            connect(f"{served.url.replace('http', 'ws', 1)}{path}", additional_headers={"X-Request-Id": "mine"})

    (line,) = records(knock)

    assert ("mine", "socket handshake", status) == tuple(line[name] for name in ("request_id", "action", "status"))
    assert path not in json.dumps(line)

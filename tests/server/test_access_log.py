"""`extcli serve --log-requests`: a line for each HTTP response and socket reply."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from support.process import ServerProcess, server_process
from support.service import CHANNEL, CLIENT_ID, Client
from support.socket_client import linked_game

Json = dict[str, Any]


def access_log(work: Callable[[ServerProcess], None], *args: str, **environment: str) -> list[str]:
    """Run `work` against a service and return its access log."""
    with server_process(*args, **environment) as served:
        work(served)
        assert 0 == served.stop(signal.SIGTERM)
        assert served.process.stderr is not None
        return [line for line in served.process.stderr if "emulator.requests" in line]


def vote(served: ServerProcess) -> None:
    client = served.client("viewer", user="5551", channel=CHANNEL)
    client.post("vote?id=rps", json={"value": 1}, headers={"X-Request-Id": "mine"}).raise_for_status()


def records(work: Callable[[ServerProcess], None]) -> list[Json]:
    return [json.loads(line) for line in access_log(work, "--log-requests", "--log-format", "json")]


def test_the_access_log_is_off_by_default():
    assert [] == access_log(vote, "--log-level", "debug")


@pytest.mark.parametrize("level", ["debug", "info", "error"])
def test_the_access_log_does_not_depend_on_the_log_level(level: str):
    assert 1 == len(access_log(vote, EXTCLI_SERVE_LOG_REQUESTS="1", EXTCLI_SERVE_LOG_LEVEL=level))


def test_a_line_has_request_response_and_caller_but_no_user():
    (line,) = access_log(vote, "--log-requests")

    message = r"POST /v1/e/vote: 200 in \d+\.\d ms, \d{3} bytes, my-extension viewer 777"
    assert re.fullmatch(rf"[\d-]{{10}} [\d:,]{{12}} INFO emulator\.requests \[mine\]: {message}\n", line)
    assert "5551" not in line


def vote_in_a_namespace(served: ServerProcess) -> None:
    credential = served.client("viewer", user="5551", channel=CHANNEL).headers["Authorization"]
    with Client(
        base_url=f"{served.url}/_ns/blue", headers={"Authorization": credential, "X-Request-Id": "mine"}
    ) as client:
        client.post("/v1/e/vote?id=rps", json={"value": 1}).raise_for_status()
    vote(served)


def greet_in_a_namespace(served: ServerProcess) -> None:
    with connect(f"{served.url.replace('http', 'ws', 1)}/_ns/blue/0.2.0/{CLIENT_ID}") as game:
        game.send(json.dumps({"action": "get", "params": {"request_id": 1, "target": "state"}}))
        game.recv(timeout=5)


def test_a_line_names_the_namespace():
    of_namespace, of_default = access_log(vote_in_a_namespace, "--log-requests")

    assert "emulator.requests [blue mine]: POST /_ns/blue/v1/e/vote: 200" in of_namespace
    assert "emulator.requests [mine]: POST /v1/e/vote: 200" in of_default
    assert {"blue"} == {line.get("namespace") for line in records(greet_in_a_namespace)}


def test_json_has_a_field_for_each_fact_of_a_request():
    (line,) = records(vote)

    assert {"method": "POST", "path": "/v1/e/vote", "status": 200, "client_id": CLIENT_ID, "role": "viewer",
            "channel": CHANNEL, "request_id": "mine"}.items() <= line.items()  # fmt: skip
    assert 0 < line["duration_ms"] < 5_000
    assert 100 < line["bytes"] < 1_000


def test_unrouted_requests_are_logged_and_queries_never_are():
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


def test_each_socket_request_is_logged_with_its_connections_id():
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


def test_a_path_cannot_forge_a_log_line():
    def forge(served: ServerProcess) -> None:
        with Client(base_url=served.url) as client:
            client.get("/a%0A2026-01-01 00:00:00,000 ERROR emulator: forged%1B[31m")

    (line,) = access_log(forge, "--log-requests")

    assert r"GET /a\n2026-01-01" in line
    assert "\x1b" not in line


def id_in(answer: bytes) -> str:
    return re.findall(rb"\r\nx-request-id: (.+?)\r\n", answer)[0].decode()


def incomplete_vote(served: ServerProcess, headers: str, body: str) -> bytes:
    """A vote whose body is shorter than announced, or invalid."""
    credential = served.client("viewer", user="1", channel=CHANNEL).headers["Authorization"]
    head = f"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nAuthorization: {credential}\r\nX-Request-Id: mine\r\n"
    return f"{head}{headers}\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [("Content-Length: 20", "{", 408), ("Transfer-Encoding: chunked", "no length\r\n", 400)],
    ids=["incomplete body", "invalid body"],
)
def test_a_request_refused_in_its_body_is_logged_and_counted_once(headers: str, body: str, status: int):
    counted = []

    def hang(served: ServerProcess) -> None:
        answer = served.exchange(incomplete_vote(served, headers, body))
        assert (b"HTTP/1.1 %d" % status, "mine") == (answer[:12], id_in(answer))
        with Client(base_url=served.url) as client:
            counted.extend(re.findall(r"emulator_(?:requests|limited)_total{.*", client.get("/_emulator/metrics").text))

    with_id = [
        json.loads(line)
        for line in access_log(hang, "--log-requests", "--log-format", "json", "--request-timeout", "1")
        if '"mine"' in line
    ]

    assert [("POST", "/v1/e/vote", status)] == [(each["method"], each["path"], each["status"]) for each in with_id]
    limited = ['emulator_limited_total{reason="Request timeout"} 1.0'] if status == 408 else []
    assert [f'emulator_requests_total{{method="POST",path="/v1/e/vote",status="{status}"}} 1.0', *limited] == counted


def test_errors_before_the_headers_are_complete_are_logged_with_their_id():
    answers = []

    def babble(served: ServerProcess) -> None:
        for sent in (
            b"\x16\x03\x01 this is no HTTP\r\n\r\n",
            b"GET /large?code=hidden HTTP/1.1\r\nX-Request-Id: mine\r\nX: " + b"x" * 66_000,
            b"POST /slow HTTP/1.1\r\nHost: x\r\n",
        ):
            answers.append(served.exchange(sent))

    lines = [
        json.loads(line)
        for line in access_log(babble, "--log-requests", "--log-format", "json", "--request-timeout", "1")
    ]

    assert [id_in(answer) for answer in answers] == [line["request_id"] for line in lines]
    assert [("", 400), ("/large", 431), ("/slow", 408)] == [(line["path"], line["status"]) for line in lines]


@pytest.mark.parametrize(("path", "status"), [("/v1/none", 404), ("/_ns/a.b/ws", 400)])
def test_a_refused_handshake_is_logged_without_its_path(path: str, status: int):
    def knock(served: ServerProcess) -> None:
        with pytest.raises(InvalidStatus):
            connect(f"{served.url.replace('http', 'ws', 1)}{path}", additional_headers={"X-Request-Id": "mine"})

    (line,) = records(knock)

    assert ("mine", "socket handshake", status) == tuple(line[name] for name in ("request_id", "action", "status"))
    assert path not in json.dumps(line)

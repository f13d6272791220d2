"""`extcli serve --log-requests`: a line for each HTTP response and socket reply; and audit lines."""

from __future__ import annotations

import json
import re
import signal
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from support.exec_process import run_exec
from support.process import ServerProcess, server_process
from support.service import CHANNEL, CLIENT_ID, Client
from support.socket_client import linked_game

Json = dict[str, Any]
VOTE = {"method": "POST", "path": "/v1/e/vote", "client_id": CLIENT_ID, "role": "viewer", "channel": CHANNEL}


def log_of(served: ServerProcess) -> list[str]:
    """Stop the service, and return its access log."""
    assert 0 == served.stop(signal.SIGTERM)
    assert served.process.stderr is not None
    return [line for line in served.process.stderr if "emulator.requests" in line]


def credential(served: ServerProcess) -> str:
    return str(served.client("viewer", user="5551", channel=CHANNEL).headers["Authorization"])


def vote(served: ServerProcess, id: str, namespace: str = "") -> None:
    headers = {"Authorization": credential(served), "X-Request-Id": id}
    with Client(base_url=f"{served.url}{namespace}", headers=headers) as client:
        client.post("/v1/e/vote?id=rps", json={"value": 1}).raise_for_status()


def raw(served: ServerProcess, id: str, head: str, body: str = "") -> str:
    """Send bytes, and return the id in the response."""
    answer = served.exchange(f"{head}\r\nX-Request-Id: {id}\r\n{body}".encode())
    return re.findall(rb"\r\nx-request-id: (.+?)\r\n", answer)[0].decode()


def test_the_access_log_is_off_by_default():
    with server_process("--log-level", "debug") as served:
        vote(served, "mine")
        assert [] == log_of(served)


def test_a_line_has_request_response_and_caller_but_no_user_at_any_level():
    with server_process(EXTCLI_SERVE_LOG_REQUESTS="1", EXTCLI_SERVE_LOG_LEVEL="error") as served:
        vote(served, "mine")
        vote(served, "mine", "/_ns/blue")
        served._http.get("/a%0A2026-01-01 00:00:00,000 ERROR emulator: forged%1B[31m")
        of_default, of_namespace, forged = log_of(served)

    message = r"POST /v1/e/vote: 200 in \d+\.\d ms, \d{3} bytes, my-extension viewer 777"
    assert re.fullmatch(rf"[\d-]{{10}} [\d:,]{{12}} INFO emulator\.requests \[mine\]: {message}\n", of_default)
    assert "5551" not in of_default
    assert "emulator.requests [blue mine]: POST /_ns/blue/v1/e/vote: 200" in of_namespace
    assert r"GET /a\n2026-01-01" in forged
    assert "\x1b" not in forged


@pytest.fixture(scope="module")
def by_id() -> dict[str, list[Json]]:
    """The lines as JSON of requests of all kinds, by the id of the request; and some metrics, by their names."""
    with server_process("--log-requests", "--log-format", "json", "--request-timeout", "1") as served:
        vote(served, "vote")
        for method, path in (("GET", "/nothing/here"), ("OPTIONS", "/v1/e/vote"), ("GET", "/v1/e/vote")):
            served._http.request(method, f"{path}?code=hidden", headers={"X-Request-Id": f"{method} {path}"[:3]})
        with linked_game(served) as game:
            game.data("get", "state", {"state_id": "channel"})
            game.error("no-such-action", "some-target")
        with connect(f"{served.url.replace('http', 'ws', 1)}/_ns/blue/0.2.0/{CLIENT_ID}") as blue:
            blue.send(json.dumps({"action": "get", "params": {"request_id": 1, "target": "state"}}))
            blue.recv(timeout=5)
        for path in ("/v1/none", "/_ns/a.b/ws"):
            with pytest.raises(InvalidStatus):
                connect(f"{served.url.replace('http', 'ws', 1)}{path}", additional_headers={"X-Request-Id": "knock"})
        head = f"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nAuthorization: {credential(served)}"
        assert "short" == raw(served, "short", head, "Content-Length: 20\r\n\r\n{")
        assert "invalid" == raw(served, "invalid", head, "Transfer-Encoding: chunked\r\n\r\nno length\r\n")
        assert "large" == raw(served, "large", "GET /large?code=hidden HTTP/1.1", f"X: {'x' * 66_000}")
        garbage = re.findall(rb"x-request-id: (\S+)", served.exchange(b"\x16\x03\x01 this is no HTTP\r\n\r\n"))[0]
        metrics = re.findall(r"emulator_requests_total{.*", served._http.get("/_emulator/metrics").text)
        found: dict[str, list[Json]] = {"garbage": [], "metrics": [{"line": each} for each in metrics]}
        for line in map(json.loads, log_of(served)):
            id = "garbage" if line["request_id"] == garbage.decode() else line["request_id"]
            found.setdefault(id, []).append(line)
    return found


def test_json_has_a_field_for_each_fact_of_a_request(by_id: dict[str, list[Json]]):
    (line,) = by_id["vote"]

    assert {**VOTE, "status": 200}.items() <= line.items()
    assert 0 < line["duration_ms"] < 5_000
    assert 100 < line["bytes"] < 1_000


def test_refused_requests_and_handshakes_are_logged_once_without_queries(by_id: dict[str, list[Json]]):
    # Unrouted requests are logged and queries never are
    found = [(line["method"], line["path"], line["status"]) for id in ("GET", "OPT") for line in by_id[id]]

    assert [("GET", "/nothing/here", 404), ("GET", "/v1/e/vote", 401), ("OPTIONS", "/v1/e/vote", 200)] == found
    assert "hidden" not in json.dumps(by_id)

    # A request refused in its body is logged and counted once
    for id, status in (("short", 408), ("invalid", 400)):
        (line,) = by_id[id]
        assert ("POST", "/v1/e/vote", status) == (line["method"], line["path"], line["status"])
        counted = f'emulator_requests_total{{method="POST",path="/v1/e/vote",status="{status}"}} 1.0'
        assert counted in [each["line"] for each in by_id["metrics"]]

    # Errors before the headers are complete are logged with their id
    for id, expected in (("garbage", ("", 400)), ("large", ("/large", 431))):
        (line,) = by_id[id]
        assert expected == (line["path"], line["status"])

    # A refused handshake is logged without its path
    lines = by_id["knock"]
    facts = [(each["action"], each["status"]) for each in lines]

    assert [("socket handshake", 404), ("socket handshake", 400)] == facts
    assert not re.search("/v1/none|a\\.b", json.dumps(lines))


def test_each_socket_request_is_logged_with_its_connections_id(by_id: dict[str, list[Json]]):
    (blue,), *others = [lines for lines in by_id.values() if lines and lines[0].get("namespace") == "blue"]
    lines = [line for lines in by_id.values() for line in lines if line.get("role") == "broadcaster"]

    assert [] == others
    assert ("socket get", 401) == (blue["action"], blue["status"])
    replies = [(line["action"], line["status"]) for line in lines if "action" in line]
    assert [("socket authenticate", 200), ("socket get", 200), ("socket", 404)] == replies
    connection = lines[-1]["request_id"].partition("/")[0]
    assert [f"{connection}/{number}" for number in (1, 2, 3)] == [line["request_id"] for line in lines[-3:]]
    assert {(CLIENT_ID, CHANNEL)} == {(line["client_id"], line["channel"]) for line in lines}


def audit_lines(*args: str) -> list[str]:
    """Return the audit lines of a service that replaced codes in a namespace, and was reset."""
    with server_process(*args) as served:
        replace_codes(served)
        assert 0 == served.stop(signal.SIGTERM)
        assert served.process.stderr is not None
        return [line for line in served.process.stderr if "emulator.audit" in line]


def replace_codes(served: ServerProcess) -> None:
    headers = {"Authorization": served.client("backend").headers["Authorization"], "X-Request-Id": "mine"}
    with Client(base_url=served.url, headers=headers) as client:
        codes = {"codes": [["A1", "A2"], ["B1"]], "names": ["Hat", "Cap"]}
        client.put("/_ns/blue/v1/e/codes", json=codes).raise_for_status()
        client.post("/_emulator/reset").raise_for_status()


def test_an_audit_line_names_namespace_and_request_unless_an_option_leaves_it_out():
    # A line names the namespace and the request
    replaced, reset = audit_lines()

    who = "client my-extension, backend, user A-backend"
    assert re.fullmatch(
        rf"[\d-]{{10}} [\d:,]{{12}} INFO emulator\.audit \[blue mine\]: codes replaced: 2 sets, 3 codes; {who}\n",
        replaced,
    )
    assert reset.endswith(" INFO emulator.audit [mine]: data reset; operator\n")

    # Json has the facts as members
    replaced, reset = (json.loads(line) for line in audit_lines("--log-format", "json", "--log-level", "error"))

    facts = {"namespace": "blue", "request_id": "mine", "what": "codes replaced", "sets": 2, "codes": 3}
    caller = {"client_id": "my-extension", "role": "backend", "user": "A-backend"}
    assert (facts | caller).items() <= replaced.items()
    assert ("data reset", "operator") == (reset["what"], reset["by"])

    # An option leaves audit lines out
    assert [] == audit_lines("--no-log-audit")


def test_exec_logs_audit_lines_only_on_request():
    command = ("--", "sh", "-c", "curl -sSX POST $EXTCLI_URL/_emulator/reset")

    without, on_request = run_exec(*command), run_exec("--log-audit", *command)

    assert [(0, 0), (0, 1)] == [(code, log.count("data reset; operator")) for code, _, log in (without, on_request)]

"""The address of the WebSocket, and errors when it is missing, not one, or closed."""

from __future__ import annotations

import json

import pytest

from support.program import http_response
from support.service import live_server

CHANNEL_STATE = '{"state_id": "channel"}'
GET = ("get", "state", "--data", CHANNEL_STATE)


@pytest.fixture
def send(extcli):
    return lambda *args, **settings: extcli("socket", "send", *args, **settings)


@pytest.fixture
def repl(extcli):
    return lambda *lines, **settings: extcli("socket", "repl", input="".join(f"{line}\n" for line in lines), **settings)


def ws(url: str) -> dict[str, str]:
    return {"EXTCLI_WS_URL": url.replace("http", "ws", 1)}


# The address


def test_the_socket_can_have_its_own_address(send, live):
    elsewhere = ws(f"{live.url}/0.2.0/my-extension")

    assert f"> CONNECT {elsewhere['EXTCLI_WS_URL']}" in send(*GET, "-v", env=elsewhere).stderr.splitlines()


def test_the_url_option_overrides_the_socket_of_the_environment(send, live):
    """A variable for another service must not lead this one's credentials there."""
    result = send(*GET, "-v", "--url", live.url, env={"EXTCLI_WS_URL": "ws://127.0.0.1:1/ws"}, exits=0)

    assert f"> CONNECT {live.url.replace('http', 'ws', 1)}/ws" in result.stderr.splitlines()


@pytest.mark.parametrize("address", ["http://h/ws", "nonsense", "ws://", "ws://h:x/", "ws://h/ws?a=1", "ws://h/ws#a"])
def test_an_invalid_socket_address_is_a_configuration_error(send, address):
    result = send(*GET, env={"EXTCLI_WS_URL": address}, fails=2)

    assert "EXTCLI_WS_URL" in result.stderr
    assert "write it like ws://127.0.0.1:8282/ws" in result.stderr


def test_an_address_with_a_password_is_refused_without_showing_it(send):
    result = send(*GET, env={"EXTCLI_WS_URL": "wss://somebody:hunter2@host/ws"}, exits=2)

    assert "hunter2" not in result.stderr


def test_an_unreachable_socket_exits_3(send):
    result = send(*GET, "--no-auth", env={"EXTCLI_WS_URL": "ws://127.0.0.1:1/ws"}, fails=3)

    assert ["extcli: cannot connect to ws://127.0.0.1:1/ws", "  connection refused"] == result.stderr.splitlines()[:2]


def test_a_path_without_a_socket_is_refused(send, live):
    result = send(*GET, "--no-auth", env=ws(f"{live.url}/v1/e/vote"), fails=4)

    assert "there is no socket at /v1/e/vote" in result.stderr


def test_a_server_without_websocket_exits_3(send, answering):
    for url in (answering(b"220 mail.example ESMTP\r\n"), answering()):
        result = send(*GET, "--no-auth", "--timeout", "2s", env=ws(url), fails=3)

        assert "Traceback" not in result.stderr


def test_an_http_error_instead_of_a_socket_names_its_status(send, answering):
    assert 4 == send(*GET, "--no-auth", env=ws(answering(http_response("200 OK")))).exit_code
    assert 5 == send(*GET, "--no-auth", env=ws(answering(http_response("502 Bad Gateway")))).exit_code


def test_a_silent_server_times_out(send, answering):
    result = send(*GET, "--no-auth", "--timeout", "100ms", env=ws(answering(hold=True)), exits=3)

    assert "no connection in time" in result.stderr


def test_credentials_do_not_follow_a_redirect_to_another_host(send, live, answering):
    there = f"{live.url.replace('http', 'ws', 1)}/ws"

    result = send(*GET, "-v", env=ws(answering(http_response("307 Temporary Redirect", location=there))), fails=4)

    assert "redirects\n" in result.stderr
    assert "authenticate" not in result.stderr


def test_a_local_service_is_not_reached_through_a_proxy(send):
    proxies = {name: "http://127.0.0.1:1" for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")}

    assert 0 == send(*GET, env=proxies).exit_code


def test_tls_to_a_plain_server_exits_3(send, live):
    result = send(*GET, "--no-auth", env={"EXTCLI_WS_URL": f"{live.url.replace('http', 'wss', 1)}/ws"}, fails=3)

    assert "does not use TLS" in result.stderr


# Ends of a connection


def test_a_frame_that_is_too_large_is_reported(send, tmp_path):
    (tmp_path / "big").write_text(json.dumps({"state_id": "channel", "state": {"a": "x" * 3_000_000}}))

    result = send("set", "state", "--data", f"@{tmp_path / 'big'}", fails=4)

    assert "close code 1009" in result.stderr
    assert "send less at once" in result.stderr


def test_too_many_wrong_pins_close_the_connection(repl):
    """Ruling T4."""
    frame = '{"action": "authenticate", "params": {"request_id": 1}, "data": {"client_id": "my-extension", "pin": "A"}}'

    result = repl(*[frame] * 11, env={"EXTCLI_AS": "viewer"}, exits=4)

    assert 10 == len(result.stdout.splitlines())
    assert "too many failed attempts to authenticate" in result.stderr
    assert "close code 1008" in result.stderr


def test_a_stopping_service_is_reported(shell):
    with live_server() as live:
        process = shell("socket", "repl", env={"EXTCLI_URL": live.url})
        process.stdin.write(b"get state {}\n")
        process.stdin.flush()
        assert process.stdout.readline()

    assert 3 == process.wait(timeout=20)
    stderr = process.stderr.read().decode()
    assert "closed the connection: the service is stopping" in stderr
    assert "close code 1001" in stderr
    assert "Fatal" not in stderr

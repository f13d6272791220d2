"""`extcli socket send`: one request, its reply and updates, and how the connection is authenticated."""

from __future__ import annotations

import json

import pytest

from support.program import SECRET_BASE64, http_response
from support.service import live_server
from support.socket_client import request_pin

CHANNEL_STATE = '{"state_id": "channel"}'
GET = ("get", "state", "--data", CHANNEL_STATE)
SUBSCRIBE = ("subscribe", "state", "--data", '{"topic_id": "channel"}')


@pytest.fixture
def send(extcli):
    return lambda *args, **settings: extcli("socket", "send", *args, **settings)


# One request


def test_send_prints_the_data_of_the_reply(extcli, send):
    extcli("state", "set", "channel", "round=4")

    assert '{"state":{"round":4},"ok":true}\n' == send(*GET).stdout
    for form in ("table", "plain", "json", "jsonl"):
        assert {"state": {"round": 4}, "ok": True} == send(*GET, "-o", form).json


def test_a_refusal_is_explained_as_over_rest(send):
    result = send("get", "nonsense", "-q", "-o", "json", fails=4)

    error = json.loads(result.stderr)["error"]
    assert (4, 404) == (error["exit_code"], error["status"])
    assert [404] == [fault["status"] for fault in error["body"]["errors"]]


def test_no_auth_skips_authentication(send):
    send(*GET, "--no-auth", fails=4)
    assert {"ok": True} == send("subscribe", "authentication", "--no-auth").json


# Updates


def test_wait_prints_that_many_updates(extcli, shell):
    process = shell("socket", "send", *SUBSCRIBE, "--wait", "2")
    assert {"ok": True} == json.loads(process.stdout.readline())

    for number in (1, 2):
        extcli("state", "set", "channel", f"round={number}")
        update = json.loads(process.stdout.readline())
        assert ("update", {"round": number}) == (update["meta"]["action"], update["data"]["state"])

    assert 0 == process.wait(timeout=60)


def test_subscribe_exits_7_if_too_few_updates_arrive_in_time(send):
    assert {"ok": True} == send(*SUBSCRIBE, "--wait", "2", "--timeout", "200ms", exits=7).json


# Identity


def test_a_stored_link_is_used_and_its_new_token_stored(extcli, send, live, tmp_path):
    extcli("pin", "login", input=request_pin(live))
    before = (tmp_path / "state" / "links.json").read_text()
    live.advance(2000)

    result = send(*GET)

    assert "authenticated as broadcaster of channel 777, with the stored refresh token\n" == result.stderr
    assert before != (tmp_path / "state" / "links.json").read_text()


@pytest.mark.parametrize(
    ("args", "identity"),
    [
        (("--as", "viewer:U5"), "as viewer of channel 1001, with a sandbox token"),
        (("--channel", "5"), "as broadcaster of channel 5, with a sandbox token"),
        (("--channel", "777"), "as broadcaster of channel 777, with the stored refresh token"),
        (("--client-id", "other"), "as broadcaster of channel 1001, with a sandbox token"),
        ((), ""),
    ],
)
def test_an_identity_option_overrides_a_stored_link(extcli, send, live, args, identity):
    for channel in ("777", "2"):
        extcli("pin", "login", input=request_pin(live, channel))

    assert identity in send(*GET, *args, exits=0 if args else 2).stderr


@pytest.mark.parametrize("variable", ["EXTCLI_TOKEN", "EXTCLI_SECRET"])
def test_credentials_of_the_environment_authenticate(extcli, send, live, variable):
    live.advance(86_400_000)
    extcli("pin", "login", input=request_pin(live))
    token = extcli("token", "sandbox", "--role", "admin").stdout.strip()
    given = {"EXTCLI_TOKEN": token} if variable == "EXTCLI_TOKEN" else {"EXTCLI_SECRET": SECRET_BASE64}
    options = () if variable == "EXTCLI_TOKEN" else ("--as", "admin")

    send("set", "state", "--data", '{"state_id": "extension", "state": {}}', *options, env=given, exits=0)


def test_an_invalid_link_is_an_error_once_and_deleted(extcli, send, live, broadcaster):
    extcli("pin", "login", input=request_pin(live))
    broadcaster.delete("pin").raise_for_status()

    assert 4 == send(*GET).exit_code
    assert 0 == send(*GET).exit_code


# Secrets


def test_verbose_masks_secrets_in_frames(extcli, send, live, tmp_path):
    extcli("pin", "login", input=request_pin(live))
    refresh = json.loads((tmp_path / "state" / "links.json").read_text())["links"][0]["refresh"]

    for args in ((), ("--as", "broadcaster")):
        stderr = send(*GET, "-v", *args).stderr
        assert "> CONNECT ws://" in stderr
        assert '> {"action":"get","params":{"request_id":2,"target":"state"},"data":{"state_id":"channel"}}' in stderr
        assert '"jwt":"***"' in stderr
        assert "eyJ" not in stderr
        assert refresh not in stderr


# The address of the WebSocket, and errors when it is missing, not one, or closed


def ws(url: str) -> dict[str, str]:
    return {"EXTCLI_WS_URL": url.replace("http", "ws", 1)}


# The address


def test_the_url_option_overrides_the_socket_of_the_environment(send, live):
    """A variable for another service must not lead this one's credentials there."""
    own, elsewhere = ws(f"{live.url}/0.2.0/my-extension"), {"EXTCLI_WS_URL": "ws://127.0.0.1:1/ws"}

    assert f"> CONNECT {own['EXTCLI_WS_URL']}\n" in send(*GET, "-v", env=own, exits=0).stderr
    given = send(*GET, "-v", "--url", live.url, env=elsewhere, exits=0).stderr
    assert f"> CONNECT {live.url.replace('http', 'ws', 1)}/ws\n" in given


@pytest.mark.parametrize(("url", "code"), [("ws://127.0.0.1:1/ws", 3), ("{live}/v1/e/vote", 4), ("wss{live}/ws", 3)])
def test_an_address_without_a_socket_is_an_error(send, live, url, code):
    there = url.replace("wss{live}", live.url.replace("http", "wss")).replace("{live}", ws(live.url)["EXTCLI_WS_URL"])

    send(*GET, "--no-auth", env={"EXTCLI_WS_URL": there}, fails=code)


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([b"220 mail.example ESMTP\r\n"], 3),
        ([], 3),
        ([http_response("200 OK")], 4),
        ([http_response("502 Bad Gateway")], 5),
        (None, 3),
    ],
    ids=["no HTTP", "no answer", "200", "502", "silence"],
)
def test_a_server_without_websocket_gets_an_exit_code(send, answering, answers, code):
    url = answering(hold=True) if answers is None else answering(*answers)

    send(*GET, "--no-auth", "--timeout", "100ms" if answers is None else "2s", env=ws(url), fails=code)


def test_credentials_do_not_follow_a_redirect_to_another_host(send, live, answering):
    there = f"{live.url.replace('http', 'ws', 1)}/ws"

    result = send(*GET, "-v", env=ws(answering(http_response("307 Temporary Redirect", location=there))), fails=4)

    assert "authenticate" not in result.stderr


# Ends of a connection


def test_a_stopping_service_is_reported(shell):
    with live_server() as live:
        process = shell("socket", "repl", env={"EXTCLI_URL": live.url})
        process.stdin.write(b"get state {}\n")
        process.stdin.flush()
        assert process.stdout.readline()

    assert 3 == process.wait(timeout=60)
    assert b"close code 1001" in process.stderr.read()

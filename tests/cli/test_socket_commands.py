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
    result = send("get", "nonsense", "-q", fails=4)

    assert "extcli: get nonsense was refused: 404 Not Found" == result.stderr.splitlines()[0]
    assert "get does not support nonsense" in result.stderr.splitlines()[1]

    error = json.loads(send("get", "nonsense", "-q", "-o", "json").stderr)["error"]
    assert (4, 404) == (error["exit_code"], error["status"])
    assert [404] == [fault["status"] for fault in error["body"]["errors"]]


def test_no_auth_skips_authentication(send):
    result = send(*GET, "--no-auth", fails=4)

    assert "omit --no-auth" in result.stderr
    assert {"ok": True} == send("subscribe", "authentication", "--no-auth").json


def test_a_pin_can_be_sent_from_a_pipe(send, live):
    data = json.dumps({"client_id": "my-extension", "pin": request_pin(live)})

    assert "777" == send("authenticate", "--no-auth", "--data", "-", input=data).json["twitch_id"]


# Updates


def test_wait_prints_that_many_updates(extcli, shell):
    process = shell("socket", "send", *SUBSCRIBE, "--wait", "2")
    assert {"ok": True} == json.loads(process.stdout.readline())

    for number in (1, 2):
        extcli("state", "set", "channel", f"round={number}")
        update = json.loads(process.stdout.readline())
        assert ("update", {"round": number}) == (update["meta"]["action"], update["data"]["state"])

    assert 0 == process.wait(timeout=20)


def test_subscribe_exits_7_if_too_few_updates_arrive_in_time(send):
    result = send(*SUBSCRIBE, "--wait", "2", "--timeout", "200ms")

    assert (7, {"ok": True}) == (result.exit_code, result.json)
    assert "received 0 of 2 updates in time" in result.stderr


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
        (("--as", "broadcaster"), "as broadcaster of channel 1001, with a sandbox token"),
        (("--as", "viewer:U5"), "as viewer of channel 1001, with a sandbox token"),
        (("--channel", "5"), "as broadcaster of channel 5, with a sandbox token, as no link is stored"),
        (("--channel", "777"), "as broadcaster of channel 777, with the stored refresh token"),
        (
            ("--client-id", "other"),
            "as broadcaster of channel 1001, with a sandbox token, as no link is stored",
        ),
    ],
)
def test_an_identity_option_overrides_a_stored_link(extcli, send, live, args, identity):
    extcli("pin", "login", input=request_pin(live))

    assert f"authenticated {identity}\n" == send(*GET, *args).stderr


def test_a_given_token_overrides_a_stored_link(extcli, send, live):
    extcli("pin", "login", input=request_pin(live))
    token = extcli("token", "sandbox", "--role", "admin").stdout.strip()

    result = send("set", "state", "--data", '{"state_id": "extension", "state": {}}', env={"EXTCLI_TOKEN": token})

    assert (0, "authenticated with the given token\n") == (result.exit_code, result.stderr)


def test_links_to_several_channels_need_a_choice(extcli, send, live):
    for channel in ("1", "2"):
        extcli("pin", "login", input=request_pin(live, channel))

    assert 2 == send(*GET).exit_code
    assert "of channel 2" in send(*GET, "--channel", "2").stderr


def test_an_invalid_link_is_an_error_once_and_deleted(extcli, send, live, broadcaster):
    extcli("pin", "login", input=request_pin(live))
    broadcaster.delete("pin").raise_for_status()

    assert 4 == send(*GET).exit_code
    assert 0 == send(*GET).exit_code


def test_a_locally_signed_token_follows_the_emulator_s_clock(send, live):
    live.advance(86_400_000)

    result = send(*GET, env={"EXTCLI_SECRET": SECRET_BASE64})

    assert (0, "as broadcaster of channel 1001, with a self-signed token") == (
        result.exit_code,
        result.stderr.strip().removeprefix("authenticated "),
    )


def test_a_refused_token_is_explained(send, production):
    result = send(*GET, "--url", production.url, env={"EXTCLI_SECRET": "d3Jvbmc="}, fails=4)

    assert "is EXTCLI_SECRET (or EXTCLI_SECRET_FILE) the secret of client id my-extension" in result.stderr


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


def test_the_socket_can_have_its_own_address(send, live):
    elsewhere = ws(f"{live.url}/0.2.0/my-extension")

    assert f"> CONNECT {elsewhere['EXTCLI_WS_URL']}" in send(*GET, "-v", env=elsewhere).stderr.splitlines()


def test_the_url_option_overrides_the_socket_of_the_environment(send, live):
    """A variable for another service must not lead this one's credentials there."""
    result = send(*GET, "-v", "--url", live.url, env={"EXTCLI_WS_URL": "ws://127.0.0.1:1/ws"}, exits=0)

    assert f"> CONNECT {live.url.replace('http', 'ws', 1)}/ws" in result.stderr.splitlines()


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("ws://127.0.0.1:1/ws", 3, "extcli: cannot connect to ws://127.0.0.1:1/ws\n  connection refused\n"),
        ("{live}/v1/e/vote", 4, "there is no socket at /v1/e/vote"),
        ("wss{live}/ws", 3, "does not use TLS"),
    ],
)
def test_an_address_without_a_socket_is_an_error(send, live, url, code, words):
    there = url.replace("wss{live}", live.url.replace("http", "wss")).replace("{live}", ws(live.url)["EXTCLI_WS_URL"])

    assert words in send(*GET, "--no-auth", env={"EXTCLI_WS_URL": there}, fails=code).stderr


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([b"220 mail.example ESMTP\r\n"], 3),
        ([], 3),
        ([http_response("200 OK")], 4),
        ([http_response("502 Bad Gateway")], 5),
    ],
)
def test_a_server_without_websocket_gets_an_exit_code(send, answering, answers, code):
    result = send(*GET, "--no-auth", "--timeout", "2s", env=ws(answering(*answers)), fails=code)

    assert "Traceback" not in result.stderr


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


# Ends of a connection


def test_a_frame_that_is_too_large_is_reported(send, tmp_path):
    (tmp_path / "big").write_text(json.dumps({"state_id": "channel", "state": {"a": "x" * 3_000_000}}))

    result = send("set", "state", "--data", f"@{tmp_path / 'big'}", fails=4)

    assert "close code 1009" in result.stderr
    assert "send fewer bytes at once" in result.stderr


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

"""`extcli socket send`: one request, its reply and updates, and how the connection is authenticated."""

from __future__ import annotations

import json

import pytest

from support.program import SECRET_BASE64
from support.socket_client import request_pin

CHANNEL_STATE = '{"state_id": "channel"}'
GET = ("get", "state", "--data", CHANNEL_STATE)
FOLLOW = ("subscribe", "state", "--data", '{"topic_id": "channel"}')


@pytest.fixture
def send(extcli):
    return lambda *args, **settings: extcli("socket", "send", *args, **settings)


# One request


def test_send_prints_the_data_of_the_reply(extcli, send):
    extcli("state", "set", "channel", "round=4")

    assert '{"state":{"round":4},"ok":true}\n' == send(*GET).stdout
    for form in ("table", "plain", "json", "jsonl"):
        assert {"state": {"round": 4}, "ok": True} == send(*GET, "-o", form).json


def test_a_request_needs_neither_target_nor_data(send):
    assert 4 == send("get").exit_code
    assert {"ok": True} == send("subscribe", "authentication").json


@pytest.mark.parametrize("source", ["-", "@file"])
def test_data_may_come_from_standard_input_or_a_file(send, tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text(CHANNEL_STATE)

    assert {"state": {}, "ok": True} == send("get", "state", "--data", source, input=CHANNEL_STATE).json


def test_data_that_is_no_json_is_wrong_usage(send):
    result = send("get", "state", "--data", "{bad", "-v")

    assert (2, "") == (result.exit_code, result.stdout)
    assert "--data is not JSON" in result.stderr
    assert "CONNECT" not in result.stderr


def test_a_refusal_is_explained_as_those_of_rest_are(send):
    result = send("get", "nonsense", "-q")

    assert (4, "") == (result.exit_code, result.stdout)
    assert "extcli: get nonsense was refused: 404 Not Found" == result.stderr.splitlines()[0]
    assert "get does not support nonsense" in result.stderr.splitlines()[1]

    error = json.loads(send("get", "nonsense", "-q", "-o", "json").stderr)["error"]
    assert (4, 404) == (error["exit_code"], error["status"])
    assert [404] == [fault["status"] for fault in error["body"]["errors"]]


def test_without_authentication_little_is_allowed(send):
    result = send(*GET, "--no-auth")

    assert (4, "") == (result.exit_code, result.stdout)
    assert "leave --no-auth out" in result.stderr
    assert {"ok": True} == send("subscribe", "authentication", "--no-auth").json


def test_a_pin_or_token_in_an_argument_is_refused(send):
    result = send("authenticate", "--no-auth", "--data", '{"client_id": "my-extension", "pin": "ABC234"}', "-v")

    assert (2, "") == (result.exit_code, result.stdout)
    assert "process lists and histories show them" in result.stderr
    assert "ABC234" not in result.stderr


def test_a_pin_may_be_sent_from_a_pipe(send, live):
    data = json.dumps({"client_id": "my-extension", "pin": request_pin(live)})

    assert "777" == send("authenticate", "--no-auth", "--data", "-", input=data).json["twitch_id"]


# Updates


def test_updates_are_printed_as_they_come_until_there_were_enough(extcli, shell):
    process = shell("socket", "send", *FOLLOW, "--wait", "2")
    assert {"ok": True} == json.loads(process.stdout.readline())

    for number in (1, 2):
        extcli("state", "set", "channel", f"round={number}")
        update = json.loads(process.stdout.readline())
        assert ("update", {"round": number}) == (update["meta"]["action"], update["data"]["state"])

    assert 0 == process.wait(timeout=20)


def test_updates_that_do_not_come_in_time_are_exit_7(send):
    result = send(*FOLLOW, "--wait", "2", "--timeout", "200ms")

    assert (7, {"ok": True}) == (result.exit_code, result.json)
    assert "0 of 2 updates came in time" in result.stderr


# Who is speaking


def test_without_a_link_it_is_the_broadcaster_by_a_token(send):
    assert "authenticated as broadcaster of channel 1001, by a token of the sandbox\n" == send(*GET).stderr


def test_a_kept_link_is_used_and_its_new_token_kept(extcli, send, live, tmp_path):
    extcli("pin", "login", input=request_pin(live))
    before = (tmp_path / "state" / "links.json").read_text()
    live.advance(2000)

    result = send(*GET)

    assert "authenticated as broadcaster of channel 777, by the refresh token that is kept\n" == result.stderr
    assert before != (tmp_path / "state" / "links.json").read_text()


@pytest.mark.parametrize(
    ("args", "how"),
    [
        (("--as", "broadcaster"), "as broadcaster of channel 1001, by a token of the sandbox"),
        (("--as", "viewer:U5"), "as viewer of channel 1001, by a token of the sandbox"),
        (("--channel", "5"), "as broadcaster of channel 5, by a token of the sandbox"),
        (("--channel", "777"), "as broadcaster of channel 777, by the refresh token that is kept"),
        (("--client-id", "other"), "as broadcaster of channel 1001, by a token of the sandbox"),
    ],
)
def test_who_says_whom_to_act_as_passes_over_a_kept_link(extcli, send, live, args, how):
    extcli("pin", "login", input=request_pin(live))

    assert f"authenticated {how}\n" == send(*GET, *args).stderr


def test_a_token_that_is_given_passes_over_a_kept_link_too(extcli, send, live):
    extcli("pin", "login", input=request_pin(live))
    token = extcli("token", "sandbox", "--role", "admin").stdout.strip()

    result = send("set", "state", "--data", '{"state_id": "extension", "state": {}}', env={"EXTCLI_TOKEN": token})

    assert (0, "authenticated by the token given\n") == (result.exit_code, result.stderr)


def test_links_to_several_channels_have_to_be_chosen_from(extcli, send, live):
    for channel in ("1", "2"):
        extcli("pin", "login", input=request_pin(live, channel))

    assert 2 == send(*GET).exit_code
    assert "of channel 2" in send(*GET, "--channel", "2").stderr


def test_a_link_that_is_dead_is_an_error_once_and_forgotten(extcli, send, live, broadcaster):
    extcli("pin", "login", input=request_pin(live))
    broadcaster.delete("pin").raise_for_status()

    assert 4 == send(*GET).exit_code
    assert 0 == send(*GET).exit_code


def test_a_token_that_is_signed_here_follows_the_emulator_s_clock(send, live):
    live.advance(86_400_000)

    result = send(*GET, env={"EXTCLI_SECRET": SECRET_BASE64})

    assert (0, "as broadcaster of channel 1001, by a token signed here") == (
        result.exit_code,
        result.stderr.strip().removeprefix("authenticated "),
    )


def test_a_token_that_is_refused_is_explained(send, production):
    result = send(*GET, "--url", production.url, env={"EXTCLI_SECRET": "d3Jvbmc="})

    assert (4, "") == (result.exit_code, result.stdout)
    assert "is EXTCLI_SECRET (or EXTCLI_SECRET_FILE) the secret of client id my-extension" in result.stderr


def test_production_is_spoken_to_with_the_extension_s_secret(send, production):
    assert 0 == send(*GET, "--url", production.url, env={"EXTCLI_SECRET": SECRET_BASE64}).exit_code


# Secrets


def test_verbose_shows_frames_with_secrets_masked(extcli, send, live, tmp_path):
    extcli("pin", "login", input=request_pin(live))
    refresh = json.loads((tmp_path / "state" / "links.json").read_text())["links"][0]["refresh"]

    for args in ((), ("--as", "broadcaster")):
        stderr = send(*GET, "-v", *args).stderr
        assert "> CONNECT ws://" in stderr
        assert '> {"action":"get","params":{"request_id":2,"target":"state"},"data":{"state_id":"channel"}}' in stderr
        assert '"jwt":"***"' in stderr
        assert "eyJ" not in stderr
        assert refresh not in stderr

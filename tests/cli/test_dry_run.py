"""`--dry-run`: prints the request that would change something, and sends only requests that read."""

from __future__ import annotations

import json
import re

import pytest

from support.program import SECRET_BASE64

VOTE = ("vote", "cast", "lunch", "--value", "3")
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoidmlld2VyIn0.c2lnbmF0dXJl"


def lines_of(result):
    assert 0 == result.exit_code, result.stderr
    return result.stdout.splitlines()


def test_a_dry_run_prints_method_url_headers_and_body(extcli):
    url = "http://127.0.0.1:1/v1/e/vote?id=lunch"
    where = ("--dry-run", "--url", "http://127.0.0.1:1")

    shown = lines_of(extcli(*VOTE, *where))

    assert f"POST {url}" == shown[0]
    assert {"content-type: application/json", "authorization: my-extension ***", '{"value": 3}'} <= set(shown)
    document = extcli(*where, *VOTE, "-o", "json").json
    assert ["POST", url, {"value": 3}] == [document[name] for name in ("method", "url", "body")]
    assert "headers" in document


def test_a_dry_run_changes_nothing(extcli, live):
    for words in (
        "vote cast a 3",
        "vote define b --prompt ?",
        "clock advance 1h",
        "rank submit --key a",
        "ns new blue",
    ):
        extcli(*words.split(), "--dry-run", exits=0)
    assert lines_of(extcli("broadcast", "send", "round", "1", "--dry-run"))[0].startswith("GET ")

    requests = [row[2] for row in extcli("logs", "-o", "plain").rows]
    assert [] == [each for each in requests if not each.startswith("GET ") and "/reset" not in each]
    extcli(*VOTE)
    assert "3\t1\n" == extcli("vote", "get", "lunch", "--dry-run").stdout


@pytest.mark.parametrize("variables", [{}, {"EXTCLI_SECRET": SECRET_BASE64}, {"EXTCLI_TOKEN": TOKEN}])
def test_no_token_and_no_secret_is_printed(extcli, variables):
    for form in ("--dry-run", "--dry-run=curl"):
        result = extcli(*VOTE, form, env=variables, exits=0)
        assert not re.search(f"eyJ|{re.escape(SECRET_BASE64)}", result.stdout + result.stderr)


def test_the_token_of_a_curl_line_is_a_command(extcli, tmp_path):
    (tmp_path / "token").write_text(TOKEN)

    assert '"$(extcli token sandbox --header --output plain --as viewer:U1)"' in extcli(*VOTE, "--dry-run=curl").stdout
    signed = extcli(*VOTE, "--dry-run=curl", "--channel", "7", env={"EXTCLI_SECRET": SECRET_BASE64}).stdout
    assert '"$(extcli token mint --header --output plain --channel 7 --as viewer:U1)"' in signed
    given = extcli(*VOTE, "--dry-run=curl", env={"EXTCLI_TOKEN": TOKEN}).stdout
    assert '"authorization: my-extension $EXTCLI_TOKEN"' in given
    filed = extcli(*VOTE, "--dry-run=curl", "--token-file", str(tmp_path / "token")).stdout
    assert f'"authorization: my-extension $(cat {tmp_path / "token"})"' in filed


def test_a_shell_interprets_no_client_id_in_a_curl_line(extcli):
    client_id = """it's"$(id)`id`!"""
    line = extcli(*VOTE, "--dry-run=curl", "--client-id", client_id, env={"EXTCLI_TOKEN": TOKEN}).stdout

    assert """--header "authorization: "'it'"'"'s"$(id)`id`!'" $EXTCLI_TOKEN" """ in line


def test_pins_codes_and_receipts_are_masked(extcli):
    for form, expected in (("--dry-run", 0), ("--dry-run=curl", 2)):
        for args, typed in (
            (("pin", "validate"), "ABC234\n"),
            (("bits", "purchase", "--receipt", "-"), TOKEN),
            (("api", "PUT", "codes", "--input", "-"), '{"codes": [["HAT-1"]], "names": ["Hat"]}'),
        ):
            result = extcli(*args, form, input=typed)
            printed = result.stdout + result.stderr
            assert expected == result.exit_code, printed
            assert not re.search("ABC234|eyJ|HAT-1", printed)


def test_every_line_of_a_file_is_printed_and_none_is_sent(extcli):
    result = extcli("vote", "cast", "lunch", "--from", "-", "--dry-run=curl", input="U1,3\nU2,x\nU3,4\n")

    assert ["viewer:U1", "viewer:U3"] == [re.findall(r"--as (\S+)\)", line)[0] for line in lines_of(result)]
    assert "" == extcli("vote", "list").stdout


def test_a_frame_of_the_websocket_is_printed_and_not_for_curl(extcli):
    send = ("socket", "send", "set", "state", "--data", '{"state_id": "channel", "state": {"round": 1}}')

    shown = lines_of(extcli(*send, "--dry-run", "--url", "http://127.0.0.1:1"))
    assert "SEND ws://127.0.0.1:1/ws" == shown[0]
    assert {"round": 1} == json.loads(shown[-2])["data"]["state"]
    assert 2 == extcli(*send, "--dry-run=curl").exit_code


def test_production_is_not_asked_about_a_dry_run(extcli, production_profile, live):
    shown = lines_of(extcli("-p", "live", "reset", "--dry-run"))

    assert f"POST {live.url}/_emulator/reset" == shown[0]


def test_verbose_shows_bodies_without_secrets(extcli):
    assert not re.search(r"eyJ|\b[2-9A-HJ-NP-Z]{6}\b", extcli("pin", "request", "-v").stderr)
    shown = extcli(*VOTE, "-v").stderr
    assert '{"value":3}' in shown
    assert '"stats":{' in shown


SECRETS = {
    **{name: "s3cr3t-Value" for name in ("access_token", "client_secret", "password", "Authorization", "apiKey")},
    **{name: "s3cr3t-Value" for name in ("private-key", "refresh_token", "userPwd", "passphrase", "credentials")},
    "pin": 7_654_321,
    "new_passwords": ["s3cr3t-Value", 7_654_321],
    "clientSecrets": {"old": "s3cr3t-Value"},
    "inner": '{"note": {"password": "s3cr3t-Value"}}',
    "address": "redis://user:s3cr3t-Value@host",
    "head": "Basic dXNlcjpzM2NyM3QtVmFsdWU=",
    "cut off": "eyJhbGciOiJIUzI1NiJ9.s3cr3t-Value",
}
SECRET = re.compile("s3cr3t|7654321|dXNlcjpz")


@pytest.mark.parametrize("form", ["-v", "--dry-run", "--dry-run -o json", "--dry-run=curl"])
def test_a_secret_is_in_no_shown_request_under_any_name(extcli, form):
    document = json.dumps(SECRETS | {"round": 1})
    of_socket = f'{{"state_id": "channel", "state": {document}}}'
    names = ("access_token", "client_secret", "password", "api-key", "Pin", "codes", "%70assword", "jwt")
    query = "&".join(f"{name}=s3cr3t-Value" for name in names)
    for call in (
        ("state", "set", "channel", document),
        ("api", "POST", "config/channel", "--input", "-", "--yes"),
        ("api", "DELETE", f"polls?id=lunch&{query}&note=xeyJhbGciOiJIUzI1NiJ9.eyJzM2NyM3QiOjF9.s3cr3t"),
        ("accumulate", "add", "--from", "-"),
        *([("socket", "send", "set", "state", "--data", of_socket, "--as", "backend")] if "curl" not in form else []),
    ):
        result = extcli(*call, *form.split(), input=f"{document}\n")
        shown = (result.stdout if "dry-run" in form else "") + result.stderr
        assert not SECRET.search(shown), call
        assert call[1] != "DELETE" or "access_token=***" in shown or "its query holds a secret" in shown


def test_responses_are_shown_without_secrets(extcli):
    extcli("state", "set", "channel", json.dumps(SECRETS | {"code": 4001, "round": 7}))

    shown = extcli("state", "get", "channel", "-v").stderr

    assert '"round":7' in shown
    assert '"code":4001' in shown
    assert not SECRET.search(shown)

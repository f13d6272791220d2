"""`extcli doctor`: each check fails when it should, and passes otherwise."""

from __future__ import annotations

import base64
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import jwt
import pytest

from support.profile_files import write_profiles
from support.program import SECRET_BASE64, http_response
from support.service import SECRET, LiveServer

CHECKS = [
    "reachable", "service", "ready", "environment", "clock", "port", "localhost", "proxy", "secret", "token", "polls",
]  # fmt: skip
HOUR = 3_600


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def doctor(extcli) -> Callable[..., dict[str, tuple[str, str]]]:
    """Run `extcli doctor`; return the status and text of each check. The exit code is 7 if one failed, otherwise 0."""

    def run(*args: str, **variables: str) -> dict[str, tuple[str, str]]:
        result = extcli("doctor", *args, "-o", "json", env=variables)
        found = {
            each["check"]: (each["status"], f"{each['meaning']} {each['action']}") for each in result.json["checks"]
        }
        assert (7 if any(status == "fail" for status, _ in found.values()) else 0) == result.exit_code
        return found

    return run


def failures(found: dict[str, tuple[str, str]]) -> list[str]:
    return [check for check, (status, _) in found.items() if status == "fail"]


def test_a_healthy_sandbox_passes_all_checks(doctor, extcli, live: LiveServer):
    extcli("vote", "cast", "--value", "3")

    found = doctor()

    assert CHECKS == list(found)
    # Where the hosts file lists ::1 first, `localhost` is a note: the service listens on 127.0.0.1.
    assert found.pop("localhost")[0] in ("ok", "note")
    assert {"secret": "skipped"} == {check: status for check, (status, _) in found.items() if status != "ok"}
    assert CHECKS == [each["check"] for each in extcli("doctor", "-o", "jsonl").jsonl]
    assert CHECKS == [row[1] for row in extcli("doctor", "-o", "plain").rows]
    write_profiles('profile = "live"', live={"url": "https://live.example", "production": True})
    assert [] == failures(doctor(EXTCLI_URL=f"{live.url}/_ns/blue"))


def test_faults_and_a_moved_clock_are_notes(doctor, extcli):
    for id, *limit in (("acts",), ("ended", "--for", "1s")):
        extcli("fault", "add", "--match", "GET /v1/e/rank", "--status", "500", "--id", id, *limit)
    extcli("fault", "add", "--match", "GET /v1/e/vote", "--drop", "--times", "1", "--id", "used")
    extcli("vote", "get")
    extcli("clock", "advance", "8d")

    found = doctor()

    assert ("note", "note") == (found["faults"][0], found["clock"][0])
    assert "on purpose: acts `extcli fault list`" in found["faults"][1]


def test_a_service_that_is_not_there_fails_and_its_port_is_free(doctor, extcli):
    with socket.create_server(("127.0.0.1", 0)) as wire:
        url = f"http://127.0.0.1:{wire.getsockname()[1]}"
    found = doctor("--url", url)

    assert ["reachable"] == failures(found)
    assert "is free" in found["port"][1]
    assert "skipped" == found["ready"][0] == found["localhost"][0] == found["polls"][0]
    assert extcli("doctor", "--url", url, exits=7).stderr.endswith(": reachable\n")


def test_another_program_at_the_port_is_named_even_if_it_never_responds(doctor, answering):
    html = [http_response("200 OK", "<html>It works!", "text/html")] * 3
    for url, failed in ((answering(*html), {"service", "port"}), (answering(hold=True), {"reachable", "port"})):
        found = doctor("--url", url, "--timeout", "300ms")
        assert failed <= set(failures(found))
        assert f"(pid {os.getpid()})" in found["port"][1]


def test_a_service_that_is_not_ready_fails(doctor, answering):
    body = '{"errors": [{"detail": "storage does not answer"}]}'

    found = doctor("--url", answering(http_response("503 Service Unavailable", body)))

    assert ["ready"] == failures(found)
    assert "storage does not answer" in found["ready"][1]


def test_a_deployment_is_recognized_by_its_error_whatever_its_proxy_says_of_the_control_api(doctor, answering):
    unauthorized = http_response("401 Unauthorized", '{"errors": [{"detail": "no token"}]}')
    for status, expected in (("404 Not Found", "ok"), ("401 Unauthorized", "note"), ("302 Found", "note")):
        found = doctor("--url", answering(http_response(status), unauthorized))

        assert (expected, "skipped", "ok") == tuple(found[check][0] for check in ("service", "ready", "environment"))
        assert expected == "ok" or "denies access to /_emulator/" in found["service"][1]


def test_a_url_with_a_path_and_a_production_profile_of_a_sandbox_fail(doctor, live: LiveServer):
    assert ["service"] == failures(doctor("--url", f"{live.url}/v1/e"))
    write_profiles(live={"url": live.url, "production": True})
    assert "environment" in failures(doctor("-p", "live", EXTCLI_SECRET=SECRET_BASE64))


def test_a_bad_secret_fails_and_is_not_shown(extcli):
    short = base64.b64encode(b"x" * 31).decode()
    for secret, words in (("not base64!", "EXTCLI_SECRET is not base64"), (short, "31 bytes")):
        result = extcli("doctor", "-o", "json", env={"EXTCLI_SECRET": secret}, exits=7)
        assert words in result.stdout
        assert secret not in result.stdout + result.stderr


def test_only_a_secret_that_the_service_knows_passes_and_a_file_that_others_can_read_is_a_note(
    doctor, production: LiveServer, tmp_path: Path
):
    for secret, failed in ((SECRET_BASE64, []), (base64.b64encode(b"y" * 32).decode(), ["token"])):
        assert failed == failures(doctor(EXTCLI_URL=production.url, EXTCLI_SECRET=secret))
    (file := tmp_path / "secret").write_text(SECRET_BASE64)
    file.chmod(0o644)
    status, words = doctor(EXTCLI_SECRET_FILE=str(file))["secret"]
    assert ("note", True) == (status, "chmod 600" in words)


def token(**claims: object) -> str:
    return jwt.encode({"role": "backend", "exp": int(time.time()) + HOUR, **claims}, SECRET)


def test_a_token_of_the_sandbox_fails_in_production_and_is_not_shown(doctor, production: LiveServer):
    given = token(allowed_stage="sandbox")

    found = doctor(EXTCLI_URL=production.url, EXTCLI_TOKEN=given)

    assert ["token"] == failures(found)
    assert "production refuses it" in found["token"][1]
    assert given.rpartition(".")[2] not in str(found)
    assert "ok" == doctor(EXTCLI_TOKEN=given)["token"][0]
    for refused in ("garbage", token(exp=1), token(nbf=int(time.time()) + HOUR), token(use="refresh")):
        assert ["token"] == failures(doctor(EXTCLI_TOKEN=refused))
    of_viewer = doctor(EXTCLI_TOKEN=token(role="viewer", user_id="1", channel_id="1001"))
    assert ("ok", "skipped") == (of_viewer["token"][0], of_viewer["polls"][0])


def test_old_votes_fail_in_the_named_poll_even_if_newer_ones_followed(doctor, extcli):
    extcli("vote", "cast", "lunch", "--value", "3")
    extcli("clock", "advance", "2h")
    extcli("vote", "cast", "lunch", "--value", "4", "--as", "viewer:U2")
    extcli("vote", "cast", "fresh", "--value", "4")

    assert ["polls"] == failures(doctor("lunch"))
    assert [] == failures(doctor("fresh"))
    assert ("note", True) == (doctor()["polls"][0], "lunch (2h" in doctor()["polls"][1])

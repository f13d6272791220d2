"""`extcli doctor`: each check fails when it should, and passes otherwise."""

from __future__ import annotations

import base64
import os
import re
import socket
import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path

import jwt
import pytest

from extcli.doctor.checks import localhost
from extcli.doctor.service import Status
from support.profile_files import write_profiles
from support.program import SECRET_BASE64, http_response
from support.service import SECRET, LiveServer
from support.terminal import Terminal

CHECKS = [
    "reachable", "service", "ready", "environment", "clock", "port", "localhost", "proxy", "secret", "token", "polls",
]  # fmt: skip
READY = '{"status": "ready", "environment": "sandbox", "version": "1", "data": "sqlite"}'
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


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as wire:
        return int(wire.getsockname()[1])


def test_a_healthy_sandbox_passes_all_checks(doctor, extcli):
    extcli("vote", "cast", "--value", "3")

    found = doctor()

    assert CHECKS == list(found)
    # Where the hosts file lists ::1 first, `localhost` is a note: the service listens on 127.0.0.1.
    assert found.pop("localhost")[0] in ("ok", "note")
    assert {"secret": "skipped"} == {check: status for check, (status, _) in found.items() if status != "ok"}


def test_faults_that_still_act_are_a_note(doctor, extcli):
    for id, *limit in (("acts",), ("once", "--times", "1"), ("ended", "--for", "1s")):
        extcli("fault", "add", "--match", "GET /v1/e/rank", "--status", "500", "--id", id, *limit)
    extcli("fault", "add", "--match", "GET /v1/e/vote", "--drop", "--times", "1", "--id", "used")
    extcli("vote", "get")
    extcli("clock", "advance", "1s")

    status, text = doctor()["faults"]

    assert "note" == status
    assert "by faults: acts, once `extcli fault list`" in text


def test_the_exit_code_and_the_last_line_name_the_failed_checks(extcli, closed_port: int):
    result = extcli("doctor", "--url", f"http://127.0.0.1:{closed_port}")

    assert (7, "extcli: 1 check failed: reachable\n") == (result.exit_code, result.stderr)


def test_a_service_that_is_not_there_fails_and_its_port_is_free(doctor, closed_port: int):
    found = doctor("--url", f"http://127.0.0.1:{closed_port}")

    assert ["reachable"] == failures(found)
    assert "connection refused" in found["reachable"][1]
    assert "is free" in found["port"][1]
    assert "skipped" == found["ready"][0] == found["localhost"][0] == found["polls"][0]


def test_a_port_held_by_another_program_names_that_program(doctor, answering):
    url = answering(*[http_response("200 OK", "<html>It works!", "text/html")] * 3)

    found = doctor("--url", url)

    assert {"service", "port"} <= set(failures(found))
    assert f"(pid {os.getpid()}) on 127.0.0.1" in found["port"][1]


def test_a_program_that_accepts_but_never_responds_is_named(doctor):
    with socket.create_server(("127.0.0.1", 0)) as wire:
        found = doctor("--url", f"http://127.0.0.1:{wire.getsockname()[1]}", "--timeout", "200ms")

    assert {"reachable", "port"} == set(failures(found))
    assert "in time" in found["reachable"][1]
    assert f"(pid {os.getpid()})" in found["port"][1]


def test_a_service_that_is_not_ready_fails(doctor, answering):
    body = '{"errors": [{"detail": "storage does not answer"}]}'

    found = doctor("--url", answering(http_response("503 Service Unavailable", body)))

    assert ["ready"] == failures(found)
    assert "storage does not answer" in found["ready"][1]


def test_a_deployment_is_recognized_by_its_error(doctor, answering):
    unauthorized = http_response("401 Unauthorized", '{"errors": [{"detail": "no token"}]}')

    found = doctor("--url", answering(http_response("404 Not Found"), unauthorized))

    assert ("ok", "skipped") == (found["service"][0], found["ready"][0])
    assert "a deployment" in found["environment"][1]


def test_a_url_with_a_path_of_the_service_names_the_base_url(doctor, live: LiveServer):
    found = doctor("--url", f"{live.url}/v1/e")

    assert ["service"] == failures(found)
    assert "without /v1/e" in found["service"][1]


def test_a_namespace_passes_all_checks(doctor, live: LiveServer):
    assert [] == failures(doctor("--url", f"{live.url}/_ns/blue"))


def test_a_production_profile_that_leads_to_a_sandbox_fails(doctor, live: LiveServer):
    write_profiles(live={"url": live.url, "production": True})

    found = doctor("-p", "live", EXTCLI_SECRET=SECRET_BASE64)

    assert "environment" in failures(found)
    assert "profile live" in found["environment"][1]


def test_a_profile_of_another_address_does_not_matter(doctor, live: LiveServer):
    write_profiles('profile = "live"', live={"url": "https://live.example", "production": True})

    assert [] == failures(doctor(EXTCLI_URL=live.url))


def test_a_clock_that_is_an_hour_off_fails(doctor, answering):
    ready = http_response("200 OK", READY, date=formatdate(time.time() - HOUR, usegmt=True))

    found = doctor("--url", answering(ready, http_response("404 Not Found")))

    assert "clock" in failures(found)
    assert "behind this one" in found["clock"][1]


def test_a_moved_clock_of_a_sandbox_is_a_note(doctor, extcli):
    extcli("clock", "advance", "8d")

    found = doctor()

    assert "note" == found["clock"][0]
    assert "moved by +8d: no fault" in found["clock"][1]


@pytest.mark.parametrize(
    ("secret", "words"),
    [("not base64!", "EXTCLI_SECRET is not base64"), (base64.b64encode(b"x" * 31).decode(), "31 bytes")],
)
def test_a_bad_secret_fails_and_is_not_shown(extcli, secret, words):
    result = extcli("doctor", "-o", "json", env={"EXTCLI_SECRET": secret}, exits=7)

    assert words in result.stdout
    assert secret not in result.stdout + result.stderr


def test_a_secret_file_that_others_can_read_is_a_note(doctor, tmp_path: Path):
    file = tmp_path / "secret"
    file.write_text(SECRET_BASE64)
    file.chmod(0o644)

    found = doctor(EXTCLI_SECRET_FILE=str(file))

    assert "note" == found["secret"][0]
    assert "chmod 600" in found["secret"][1]


def test_a_secret_that_the_service_knows_passes(doctor, production: LiveServer):
    found = doctor(EXTCLI_URL=production.url, EXTCLI_SECRET=SECRET_BASE64)

    assert [] == failures(found)
    assert ("ok", "ok") == (found["secret"][0], found["token"][0])


def test_a_secret_of_another_extension_fails_as_a_token(doctor, production: LiveServer):
    found = doctor(EXTCLI_URL=production.url, EXTCLI_SECRET=base64.b64encode(b"y" * 32).decode())

    assert ["token"] == failures(found)
    assert "is EXTCLI_SECRET" in found["token"][1]


def token(**claims: object) -> str:
    return jwt.encode({"role": "backend", "exp": int(time.time()) + HOUR, **claims}, SECRET)


def test_a_token_of_the_sandbox_fails_in_production_and_is_not_shown(extcli, production: LiveServer):
    given = token(allowed_stage="sandbox")

    result = extcli("doctor", "-o", "json", env={"EXTCLI_URL": production.url, "EXTCLI_TOKEN": given}, exits=7)

    assert "for the sandbox" in {each["check"]: each["meaning"] for each in result.json["checks"]}["token"]
    assert given.rpartition(".")[2] not in result.stdout + result.stderr


def test_a_token_of_the_sandbox_passes_in_a_sandbox(doctor):
    assert "ok" == doctor(EXTCLI_TOKEN=token(allowed_stage="sandbox"))["token"][0]


def test_a_text_that_is_not_a_token_fails(doctor):
    assert ["token"] == failures(doctor(EXTCLI_TOKEN="garbage"))


def test_a_viewers_token_passes_and_cannot_check_polls(doctor):
    found = doctor(EXTCLI_TOKEN=token(role="viewer", user_id="1", channel_id="1001"))

    assert ("ok", "skipped") == (found["token"][0], found["polls"][0])


def test_old_votes_fail_in_the_named_poll_even_if_newer_ones_followed(doctor, extcli):
    extcli("vote", "cast", "lunch", "--value", "3")
    extcli("clock", "advance", "2h")
    extcli("vote", "cast", "lunch", "--value", "4", "--as", "viewer:U2")
    extcli("vote", "cast", "fresh", "--value", "4")

    assert ["polls"] == failures(doctor("lunch"))
    assert [] == failures(doctor("fresh"))
    assert ("note", True) == (doctor()["polls"][0], "lunch (2h" in doctor()["polls"][1])


def test_a_proxy_variable_that_applies_to_loopback_fails(doctor):
    proxy = "http://me:swordfish@proxy.example:3128"

    found = doctor(HTTP_PROXY=proxy)

    assert ["proxy"] == failures(found)
    assert "swordfish" not in str(found)
    assert [] == failures(doctor(HTTP_PROXY=proxy, NO_PROXY="localhost,127.0.0.1"))


def test_a_name_that_is_ipv6_only_fails_for_a_service_on_ipv4(live: LiveServer):
    port = int(live.url.rpartition(":")[2])

    # An address resolves to itself, as `localhost` does to ::1 where the hosts file has no other line for it.
    assert Status.FAIL is localhost("::1", port, in_url=True).status
    assert Status.OK is localhost("127.0.0.1", port, in_url=True).status


def test_each_check_is_one_line_of_json(extcli):
    result = extcli("doctor", "-o", "jsonl")

    assert CHECKS == [each["check"] for each in result.jsonl]
    assert {"check", "status", "meaning", "action"} == set(result.jsonl[0])


def test_each_check_is_one_plain_line_of_four_fields(extcli):
    assert [(4, check) for check in CHECKS] == [(len(row), row[1]) for row in extcli("doctor", "-o", "plain").rows]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_table_fits_the_terminal(live: LiveServer, columns: int, closed_port: int):
    variables = {"EXTCLI_URL": f"http://127.0.0.1:{closed_port}", "COLUMNS": str(columns), "TERM": "xterm"}
    with Terminal("doctor", HTTP_PROXY="http://proxy", **variables) as terminal:
        assert 7 == terminal.wait()

    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.screen).split("extcli: ")[0].splitlines()
    assert len(lines) > len(CHECKS)
    assert [] == [line for line in lines if len(line) > columns or "…" in line]

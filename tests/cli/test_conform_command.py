"""`extcli conform`: results, exit codes and formats."""

from __future__ import annotations

import signal
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from emulator.http.mount import Application
from support.faults import add_fault
from support.middleware import Middleware
from support.process import wait_until
from support.program import http_response
from support.service import Client, LiveServer, live_server

WRITES = ("POST", "PUT", "PATCH", "DELETE")
REMOVED = ("polls", "rankings", "codes")
"""What the service can delete. It keeps emptied stores, and buffers, until they expire."""


class Changed(Middleware):
    """Changes the responses to a path: the status, unless it is 0, and the content type."""

    def __init__(self, app: Application, path: str, *, status: int = 0, content_type: bytes = b"") -> None:
        super().__init__(app)
        self._path, self._status, self._content_type = path, status, content_type

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_changed(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = [
                    (name, self._content_type if name == b"content-type" and self._content_type else value)
                    for name, value in message["headers"]
                ]
                message = {**message, "status": self._status or message["status"], "headers": headers}
            await send(message)

        is_meant = scope["type"] == "http" and scope["path"].startswith(self._path)
        await self._app(scope, receive, send_changed if is_meant else send)


class Deployed(Middleware):
    """Answers below `/_emulator` as a deployment, which has no such path."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path", "").startswith("/_emulator"):
            scope = {**scope, "path": "/v1/nothing", "raw_path": b"/v1/nothing"}
        await self._app(scope, receive, send)


def contents(live: LiveServer) -> dict[str, int]:
    with Client(base_url=live.url) as client:
        return dict(client.get("/_emulator/contents").json())


def by_name(result: Any) -> dict[str, dict[str, Any]]:
    return {each["rule"]: each for each in result.json["rules"]}


# Results


def test_a_failure_has_rule_sentence_expected_seen_and_request(extcli):
    with live_server(wrap=lambda app: Changed(app, "/v1/e/rank", content_type=b"text/html")) as live:
        result = extcli("conform", "--only", "W3", "--url", live.url, "-o", "json", exits=7)
        table = extcli("conform", "--only", "W3", "--url", live.url, "-o", "table").stdout

    found = by_name(result)["W3.empty-list"]
    assert ("fail", "application/json", "text/html") == tuple(found[name] for name in ("status", "expected", "seen"))
    assert found["sentence"]
    assert found["request_id"]
    assert [] == [text for text in ("W3.empty-list", found["expected"], found["seen"]) if text not in table]


@pytest.mark.parametrize(
    ("path", "changes", "rule", "code", "status"),
    [
        ("/v1/e/vote_logs", {"content_type": b"text/json"}, "W3.empty-list", 0, "unknown"),
        ("/v1/e/all_state", {"status": 200}, "authentication.no-credential", 7, "fail"),
        ("/v1/e/all_state", {"status": 402}, "authentication.no-credential", 0, "unknown"),
    ],
    ids=["a ruling", "the specification", "another refusal"],
)
def test_only_what_the_specification_says_fails_at_a_deployment(extcli, path, changes, rule, code, status):
    with live_server(wrap=lambda app: Deployed(Changed(app, path, **changes))) as live:
        result = extcli("conform", "--only", rule, "--url", live.url, "-o", "json", exits=code)
        extcli("conform", "--only", rule, "--strict", "--url", live.url, exits=7)

    assert status == by_name(result)[rule]["status"]


def test_a_skipped_rule_says_why(extcli, monkeypatch, live):
    monkeypatch.setenv("EXTCLI_TOKEN", live.client("viewer", user="1").headers["authorization"].split()[1])

    found = by_name(extcli("conform", "-o", "json"))

    assert [] == [
        name
        for name in ("voting.second-vote", "A1.wrong-signature", "W3.empty-list")
        if "skipped" != found[name]["status"] or not found[name]["reason"]
    ]


# Writing


def test_without_writes_the_journal_shows_no_write(extcli, live):
    assert by_name(extcli("conform", "-o", "json", exits=0)).keys() > {"W3.empty-list", "W3.empty-answer"}

    entries = live.client(None).get(f"{live.url}/_emulator/journal?limit=1000").json()["entries"]
    assert len(entries) > 100
    writes = {each["endpoint"] for each in entries if each["endpoint"].startswith(WRITES)}
    assert {"POST /_emulator/reset"} >= writes  # of the fixture
    assert {0} == set(contents(live).values())


@pytest.mark.long
def test_writes_are_removed(extcli, live):
    result = extcli("conform", "--writes", "-o", "json")

    assert (0, 0) == (result.exit_code, result.json["counts"]["fail"])
    assert {"changes data: allow with --writes"}.isdisjoint(each.get("reason") for each in result.json["rules"])
    found = contents(live)
    assert [0, 0, 0] == [found[name] for name in REMOVED]
    with Client(base_url=live.url) as client:
        rows = client.get("/_emulator/contents/stores?limit=200").json()["rows"]
    assert {2} == {each["size"] for each in rows}  # `{}`


@pytest.mark.parametrize(("effect", "members"), [("drop", {}), ("status", {"status": 503})])
def test_data_that_a_rule_cannot_remove_is_reported(extcli, live, effect, members):
    add_fault(live, "DELETE /v1/e/vote", effect, **members)

    assert "poll conform-" in extcli("conform", "--writes", "--only", "voting.own-vote", exits=0).stderr
    assert 1 == contents(live)["polls"]


def test_writes_are_removed_after_an_interruption(shell, live):
    add_fault(live, "GET /v1/e/vote_logs", "stall")
    process = shell("conform", "--writes", "--only", "P3.order-of-the-log")
    wait_until(lambda: contents(live)["polls"] == 1)

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)

    assert (130, 0) == (process.returncode, contents(live)["polls"])


@pytest.mark.usefixtures("production_profile")
def test_writing_to_production_needs_yes(extcli, live):
    extcli("conform", "--writes", "--only", "voting.second-vote", exits=2)

    assert 0 == contents(live)["polls"]
    for more in ((), ("--writes", "--yes")):
        extcli("conform", "--only", "voting.second-vote", *more, exits=0)


def test_dry_run_writes_nothing(extcli, live):
    result = extcli("conform", "--writes", "--dry-run", "-o", "json", "--only", "W3", exits=0)

    assert {"skipped", "pass"} == {each["status"] for each in result.json["rules"]}
    assert {0} == set(contents(live).values())


# No connection


@pytest.mark.parametrize(("answers", "code"), [((), 3), ((http_response("200 OK", "hi", "text/html"),) * 2, 7)])
def test_another_program_is_exit_code_3_or_7(extcli, answering, answers, code):
    extcli("conform", "--url", answering(*answers), exits=code)


@pytest.mark.parametrize("effect", ["drop", "reset"])
def test_a_connection_that_breaks_is_exit_code_3_and_keeps_what_was_found(extcli, live, effect):
    add_fault(live, "GET /v1/e/accumulate", effect)

    result = extcli("conform", "--only", "W3.empty-list", "--only", "W1.slashes", "-o", "json", exits=3)

    assert ["W1.slashes"] == [*by_name(result)]


# Formats


def test_junit_has_a_test_case_for_each_rule(extcli, live, tmp_path):
    add_fault(live, "GET /v1/e/rank", "status", status=418)
    file = tmp_path / "conform.xml"

    extcli("conform", "--only", "W3", "--only", "A1.wrong-signature", "--junit", str(file))

    (suite,) = Xml.parse(file).getroot()
    cases = {case.get("name"): [child.tag for child in case] for case in suite}
    assert {"W3.empty-list": ["failure"], "W3.empty-answer": ["skipped"], "A1.wrong-signature": ["skipped"]} == cases
    assert ("3", "1", "2") == (suite.get("tests"), suite.get("failures"), suite.get("skipped"))

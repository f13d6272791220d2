"""`extcli conform`: results, exit codes and formats."""

from __future__ import annotations

import json
import re
import signal
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from emulator.http.middleware import Application, Middleware
from extcli.output import progress
from support.faults import add_fault, remove_faults
from support.process import wait_until
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


def test_a_service_of_our_own_keeps_the_rules(extcli):
    result = extcli("conform", "-o", "json")

    assert (0, 0, 0) == (result.exit_code, result.json["counts"]["fail"], result.json["counts"]["unknown"])
    assert result.json["counts"]["pass"] > 40


def test_a_failure_has_rule_sentence_expected_seen_and_request(extcli):
    with live_server(wrap=lambda app: Changed(app, "/v1/e/rank", content_type=b"text/html")) as live:
        result = extcli("conform", "--only", "W3", "--url", live.url, "-o", "json")

    found = by_name(result)["W3.empty-list"]
    assert (7, "fail") == (result.exit_code, found["status"])
    assert ("the content type of rank", "application/json", "text/html") == (
        found["what"],
        found["expected"],
        found["seen"],
    )
    assert found["sentence"]
    assert found["request_id"]
    assert "W3.empty-list" in result.stderr


def test_a_rule_from_a_ruling_that_is_not_kept_is_unknown(extcli):
    def changed(app: Application) -> Application:
        return Deployed(Changed(app, "/v1/e/vote_logs", content_type=b"text/json"))

    with live_server(wrap=changed) as live:
        result = extcli("conform", "--only", "W3", "--url", live.url, "-o", "json")
        strict = extcli("conform", "--only", "W3", "--strict", "--url", live.url)

    found = by_name(result)["W3.empty-list"]
    assert (0, "unknown", "text/json") == (result.exit_code, found["status"], found["seen"])
    assert 7 == strict.exit_code


def test_a_rule_from_the_specification_that_is_not_kept_fails(extcli):
    with live_server(wrap=lambda app: Deployed(Changed(app, "/v1/e/all_state", status=200))) as live:
        result = extcli("conform", "--only", "authentication", "--url", live.url, "-o", "json")

    assert (7, "fail") == (result.exit_code, by_name(result)["authentication.no-credential"]["status"])


def test_a_refusal_with_another_status_is_unknown(extcli):
    with live_server(wrap=lambda app: Deployed(Changed(app, "/v1/e/all_state", status=402))) as live:
        result = extcli("conform", "--only", "authentication", "--url", live.url, "-o", "json")

    found = by_name(result)["authentication.no-credential"]
    assert (0, "unknown", "402") == (result.exit_code, found["status"], found["seen"])


def test_a_skipped_rule_says_why(extcli, monkeypatch, live):
    monkeypatch.setenv("EXTCLI_TOKEN", live.client("viewer", user="1").headers["authorization"].split()[1])

    found = by_name(extcli("conform", "-o", "json"))

    assert "changes data: --writes" == found["voting.second-vote"]["reason"]
    assert "only in production" == found["A1.wrong-signature"]["reason"]
    assert "the given token is of a viewer" in found["W3.empty-list"]["reason"]


def test_only_selects_rules_by_name_source_and_pattern(extcli):
    names = {
        text: {each["rule"] for each in extcli("conform", "--only", text, "-o", "json").json["rules"]}
        for text in ("W3.empty-list", "w3", "spec: Errors", "X?.pa*")
    }

    assert {"W3.empty-list"} == names["W3.empty-list"]
    assert {"W3.empty-list", "W3.empty-answer"} == names["w3"]
    assert "errors.error" in names["spec: Errors"]
    assert {"X1.paths", "X1.paths-of-the-api"} == names["X?.pa*"]


# Writing


def test_without_writes_the_journal_shows_no_write(extcli, live):
    extcli("conform")

    entries = live.client(None).get(f"{live.url}/_emulator/journal?limit=1000").json()["entries"]
    assert len(entries) > 100
    writes = {each["endpoint"] for each in entries if each["endpoint"].startswith(WRITES)}
    assert {"POST /_emulator/reset"} >= writes  # of the fixture
    assert {0} == set(contents(live).values())


@pytest.mark.long
def test_writes_are_removed(extcli, live):
    result = extcli("conform", "--writes", "-o", "json")

    assert (0, 0) == (result.exit_code, result.json["counts"]["fail"])
    assert {"changes data: --writes"}.isdisjoint(each.get("reason") for each in result.json["rules"])
    found = contents(live)
    assert [0, 0, 0] == [found[name] for name in REMOVED]
    with Client(base_url=live.url) as client:
        rows = client.get("/_emulator/contents/stores?limit=200").json()["rows"]
    assert {2} == {each["size"] for each in rows}  # `{}`


def test_writes_of_a_failed_rule_are_removed(extcli, live):
    add_fault(live, "GET /v1/e/vote_logs", "status", status=418)

    result = extcli("conform", "--writes", "--only", "P3.order-of-the-log")

    assert (7, 0) == (result.exit_code, contents(live)["polls"])


@pytest.mark.parametrize(("effect", "members"), [("drop", {}), ("status", {"status": 503})])
def test_data_that_a_rule_cannot_remove_is_reported(extcli, live, effect, members):
    add_fault(live, "DELETE /v1/e/vote", effect, **members)

    result = extcli("conform", "--writes", "--only", "voting.own-vote")

    assert (0, True) == (result.exit_code, "not removed, and left to expire: poll conform-" in result.stderr)
    assert 1 == contents(live)["polls"]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_writes_are_removed_after_an_interruption(shell, live, sent: signal.Signals):
    add_fault(live, "GET /v1/e/vote_logs", "stall")
    process = shell("conform", "--writes", "--only", "P3.order-of-the-log")
    wait_until(lambda: contents(live)["polls"] == 1)

    process.send_signal(sent)
    process.communicate(timeout=20)

    assert (130, 0) == (process.returncode, contents(live)["polls"])


@pytest.mark.usefixtures("production_profile")
def test_writing_to_production_needs_yes(extcli, live):
    refused = extcli("conform", "--writes", "--only", "voting.second-vote")
    before = contents(live)["polls"]
    reading, agreed = (
        extcli("conform", "--only", "voting.second-vote", *more).exit_code for more in ((), ("--writes", "--yes"))
    )

    assert (2, True, 0) == (refused.exit_code, "--yes" in refused.stderr, before)
    assert (0, 0) == (reading, agreed)


def test_dry_run_writes_nothing(extcli, live):
    result = extcli("conform", "--writes", "--dry-run", "-o", "json", "--only", "voting")

    assert (0, {"skipped"} | {"pass"}) == (result.exit_code, {each["status"] for each in result.json["rules"]})
    assert {0} == set(contents(live).values())


class Huge(Middleware):
    """Responses to a path have 32 MiB."""

    def __init__(self, app: Application, path: str) -> None:
        super().__init__(app)
        self._path = path

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != self._path:
            return await self._app(scope, receive, send)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for left in reversed(range(32)):
            await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": left > 0})


def test_a_response_that_is_too_large_fails_one_rule_and_the_run_continues(extcli):
    with live_server(wrap=lambda app: Huge(app, "/v1/e/rank")) as live:
        result = extcli("conform", "--only", "W3.empty-list", "--only", "W4", "--url", live.url, "-o", "json")

    found = {each["rule"]: each for each in result.json["rules"]}
    failed = found.pop("W3.empty-list")
    assert (7, "fail", "at most 16,777,216 bytes") == (result.exit_code, failed["status"], failed["expected"])
    assert "pass" in {each["status"] for each in found.values()}


# No connection


def test_a_service_that_does_not_respond_is_exit_code_3(extcli):
    assert 3 == extcli("conform", "--url", "http://127.0.0.1:9").exit_code


def test_another_program_is_exit_code_7(extcli, answering):
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"

    result = extcli("conform", "--url", answering(page, page))

    assert (7, True) == (result.exit_code, "is not an extension service" in result.stderr)


@pytest.mark.parametrize("effect", ["drop", "reset"])
def test_a_connection_that_breaks_is_exit_code_3_and_says_which_rules_were_done(extcli, live, effect):
    add_fault(live, "GET /v1/e/accumulate", effect)

    result = extcli("conform", "--only", "W3.empty-list", "--only", "W1.slashes", "-o", "json")

    assert (3, ["W1.slashes"]) == (result.exit_code, [each["rule"] for each in result.json["rules"]])
    assert "1 of 2 rules were done; W3.empty-list was not" in json.loads(result.stderr)["error"]["why"]


def test_a_busy_service_is_called_again_after_its_retry_after(extcli, live):
    add_fault(live, "GET /v1/e/rank", "status", status=429, retry_after=1, times=1)

    assert 0 == extcli("conform", "--only", "W3.empty-list").exit_code
    assert 1 == remove_faults(live)


# Formats


def test_the_table_shows_each_failure_with_both_responses(extcli, live):
    add_fault(live, "GET /v1/e/rank", "status", status=418)

    text = extcli("conform", "--only", "W3.empty-list", "-o", "table").stdout

    for part in (
        "W3.empty-list",
        "the status of rank",
        "expected  200",
        "seen      418",
        "request ",
        "1 fail (sandbox)",
    ):
        assert part in text


def test_the_table_counts_rules_that_are_skipped_for_one_reason(extcli):
    text = extcli("conform", "--only", "P*", "-o", "table").stdout

    assert re.search("^[0-9]+ skipped: changes data: --writes$", text, re.MULTILINE)
    assert ("P4.additive-votes" in text, "P1.poll-without-votes" in text) == (False, True)


def test_patterns_tell_upper_case_from_lower(extcli):
    names = [each["rule"] for each in extcli("conform", "--only", "P*", "-o", "json").json["rules"]]

    assert {"P1", "P2", "P3", "P4"} == {name.partition(".")[0] for name in names}


def test_junit_has_a_test_case_for_each_rule(extcli, live, tmp_path):
    add_fault(live, "GET /v1/e/rank", "status", status=418)
    file = tmp_path / "conform.xml"

    extcli("conform", "--only", "W3", "--only", "A1.wrong-signature", "--junit", str(file))

    (suite,) = Xml.parse(file).getroot()
    cases = {case.get("name"): [child.tag for child in case] for case in suite}
    assert {"W3.empty-list": ["failure"], "W3.empty-answer": ["skipped"], "A1.wrong-signature": ["skipped"]} == cases
    assert ("3", "1", "2") == (suite.get("tests"), suite.get("failures"), suite.get("skipped"))


def test_a_terminal_shows_how_many_rules_were_done(extcli, monkeypatch):
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0)

    result = extcli("conform", "--only", "W8", tty=True, env={"TERM": "xterm-256color"})

    assert (0, True) == (result.exit_code, "/5" in result.stderr)

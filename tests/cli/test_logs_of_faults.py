"""How the journal's commands show what faults did."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest

from support.faults import RawClient, add_fault
from support.har import har_errors
from support.journal import entries_of
from support.process import wait_until
from support.service import LiveServer

PATH = "/v1/e/vote?id=rps"


@pytest.fixture
def faulty(live: LiveServer, viewer) -> None:
    """A journal with a vote that a fault refused, a late one, and one without an answer."""
    for effect, members in (("status", {"status": 500}), ("delay", {"delay": 1}), ("drop", {})):
        add_fault(live, "POST /v1/e/vote", effect, id="first", **members)
        try:
            viewer().post("vote", params={"id": "rps"}, json={"value": 1})
        except httpx.RemoteProtocolError:
            assert "drop" == effect
    assert 3 == len(entries_of(live, path="/v1/e/vote"))


def test_exports_name_the_fault_of_each_request(extcli, faulty, tmp_path: Path):
    har, lines = tmp_path / "run.har", tmp_path / "run.jsonl"

    extcli("logs", "export", "--har", str(har), "--jsonl", str(lines), "--path", "/v1/e/vote")

    archive = json.loads(har.read_text())
    assert [] == har_errors(archive)
    expected = [(500, "first"), (200, "first"), (0, "first")]
    assert expected == [(each["response"]["status"], each["_fault"]) for each in archive["log"]["entries"]]
    entries = [json.loads(line) for line in lines.read_text().splitlines()]
    assert expected == [(each["status"], each["fault"]) for each in entries]


def test_logs_say_which_fault_acted(extcli, faulty):
    shown = extcli("logs", "--path", "/v1/e/vote", "-o", "plain").stdout.splitlines()

    assert "docs: Faults: fault first answered 500" in shown[0]
    assert shown[1].endswith("fault first")
    assert "docs: Faults: fault first gave no answer" in shown[2]


def test_logs_select_requests_without_an_answer(extcli, faulty):
    (line,) = extcli("logs", "--status", "none", "-o", "plain").stdout.splitlines()

    assert "fault first gave no answer" in line


def test_one_entry_names_its_fault(extcli, live: LiveServer, faulty):
    (late,) = entries_of(live, path="/v1/e/vote", status="200")

    assert re.search("^fault +first$", extcli("logs", "show", late["id"], "-o", "table").stdout, re.MULTILINE)


@pytest.mark.parametrize(("effect", "answer"), [("status", "503 Service Unavailable"), ("stall", "no answer")])
def test_explain_names_the_fault_and_how_to_remove_it(extcli, live: LiveServer, viewer, effect: str, answer: str):
    add_fault(live, "POST /v1/e/vote", effect)
    with RawClient(live) as raw:
        raw.send(viewer(), "POST", PATH, {"value": 1})
        wait_until(lambda: entries_of(live, path="/v1/e/vote"))
        text = extcli("explain", "-o", "table").stdout

    assert f"POST /v1/e/vote: {answer}" in text
    assert "A fault that you added caused this (rule docs: Faults)" in text
    assert "What to do: Remove it: `extcli fault rm f1`." in text

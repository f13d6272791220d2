"""`extcli logs export`: HAR and JSON lines, without secrets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.broadcasts import subscribed_game
from support.har import har_errors
from support.service import CLIENT_ID, Client, LiveServer

JWT = re.compile("eyJ")


def test_export_writes_requests_as_har(extcli, live: LiveServer, filled, tmp_path: Path):
    file = tmp_path / "run.har"

    result = extcli("logs", "export", "--har", str(file), "--path", "/v1/e/")

    archive = json.loads(file.read_text())
    assert "wrote 3 entries to" in result.stderr
    assert [] == har_errors(archive)
    vote = archive["log"]["entries"][0]
    assert ("POST", f"{live.url}/v1/e/vote?id=rps", 200) == (
        vote["request"]["method"],
        vote["request"]["url"],
        vote["response"]["status"],
    )
    assert '{"value":2}' == vote["request"]["postData"]["text"]
    assert [{"name": "id", "value": "rps"}] == vote["request"]["queryString"]


def test_export_writes_everything_as_json_lines(extcli, live: LiveServer, broadcaster: Client, tmp_path: Path):
    with subscribed_game(live, "admin", user="9001"):
        broadcaster.post("broadcast", json={"event": "e", "data": 1})
    files = tmp_path / "run.har", tmp_path / "run.jsonl"

    assert 0 == extcli("logs", "export", "--har", str(files[0]), "--jsonl", str(files[1])).exit_code

    lines = [json.loads(line) for line in files[1].read_text().splitlines()]
    archived = json.loads(files[0].read_text())["log"]["entries"]
    assert len(archived) == sum(line["kind"] == "request" for line in lines)


def test_export_to_standard_output(extcli, filled):
    lines = extcli("logs", "export", "--jsonl", "-", "--status", "403", "-q").jsonl

    assert [403] == [line["status"] for line in lines]


def test_an_empty_journal_is_a_valid_archive(extcli, live: LiveServer):
    archive = extcli("logs", "export", "--har", "-", "--path", "nothing").json

    assert [] == har_errors(archive)
    assert [] == archive["log"]["entries"]


@pytest.mark.parametrize("files", [[], ["--har", "x", "--jsonl", "x"]])
def test_an_export_names_different_files(extcli, files: list[str]):
    assert 2 == extcli("logs", "export", *files).exit_code


def test_no_secret_is_in_an_export(extcli, live: LiveServer, admin: Client, broadcaster: Client, tmp_path: Path):
    pin = broadcaster.post("link/pin").json()["pin"]
    broadcaster.post("validate_pin", json={"pin": pin})
    admin.put("codes", json={"codes": [["HAT-SECRET-1"]], "names": ["Hat"]})
    admin.post("codes/mark_from_list", json={"prizes": [0], "prize_limits": [1], "users": ["9001"]})
    admin.post("codes/redeem", json={"prize": 0})
    token = live._http.post("/v1/e/authtoken", json={"app_id": CLIENT_ID}).json()["token"]
    files = tmp_path / "run.har", tmp_path / "run.jsonl"

    extcli("logs", "export", "--har", str(files[0]), "--jsonl", str(files[1]))

    for file in files:
        text = file.read_text()
        assert "codes/redeem" in text
        assert [] == [secret for secret in (token, "HAT-SECRET-1") if secret in text]
        assert not re.search(rf"(?<!\d){pin}(?!\d)", text)
        assert not JWT.search(text)

"""`extcli logs replay`: repeats a request of the journal as its caller."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.journal import journal_of
from support.profile_files import write_profiles
from support.program import SECRET_BASE64
from support.service import CHANNEL, Client, LiveServer


def test_replay_repeats_a_request_as_its_caller(extcli, live: LiveServer, viewer, admin: Client):
    viewer(None, opaque="Aabc").post("vote?id=rps", json={"value": 2})

    result = extcli("logs", "replay", "latest", "-o", "json")

    (outcome,) = result.json["replays"]
    assert (200, 200, True) == (outcome["before"], outcome["status"], outcome["same_body"])
    assert 1 == admin.get("vote?id=rps").json()["count"]
    first, again = [entry for entry in extcli("logs", "--path", "vote?id=rps", "--method", "POST", "-o", "jsonl").jsonl]
    assert first["caller"] == again["caller"]
    assert first["request"] == again["request"]


def test_replay_says_that_the_answer_differs(extcli, viewer):
    viewer("1").get("vote?id=rps")
    id = extcli("logs", "-o", "json", "--limit", "1").json["entries"][0]["id"]
    viewer("2").post("vote?id=rps", json={"value": 1})

    assert "200 before, now 200; the body differs" in extcli("logs", "replay", id, "-o", "table").stdout


def test_replay_repeats_as_often_as_told(extcli, viewer, live: LiveServer):
    viewer().post("accumulate", json={"stars": 5})

    extcli("logs", "replay", "latest", "--times", "4")

    assert 5 == len(live.client("admin", user="1", channel=CHANNEL).get("accumulate").json()["data"])


def test_a_refusal_is_refused_again(extcli, viewer):
    viewer().get("vote_logs")

    assert [["403", "403", "true"]] == [row[:3] for row in extcli("logs", "replay", "latest", "-o", "plain").rows]


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (
            ("PUT", "/v1/e/codes", '{"codes": [["A"]], "names": ["Hat"]}'),
            "it has a secret, which the journal does not keep",
        ),
        (("POST", "/v1/e/json_store", json.dumps({"text": "x" * 5_000})), "keeps only the beginning"),
        (("POST", "/v1/e/vote", b"\xff\xfe"), "its body is not UTF-8"),
        (("POST", "/_emulator/clock", "{}"), "it is no request below /v1/e/"),
    ],
)
def test_a_request_that_the_journal_has_in_part_is_not_repeated(
    extcli, admin: Client, live: LiveServer, request_: tuple[str, str, Any], why: str
):
    method, path, body = request_
    admin.request(method, f"{live.url}{path}", content=body)
    id = extcli("logs", "--limit", "1", "-o", "json").json["entries"][0]["id"]

    result = extcli("logs", "replay", id, exits=2)

    assert why in result.stderr


def test_a_request_of_an_unknown_caller_is_not_repeated(extcli, live: LiveServer):
    live._http.get("/v1/e/user_info")

    assert "its caller is unknown" in extcli("logs", "replay", "latest").stderr


@pytest.mark.parametrize("chosen", [(), ("--profile", "live")], ids=["by its address", "by name"])
def test_nothing_is_repeated_for_a_profile_of_production(extcli, live: LiveServer, viewer, chosen: tuple[str, ...]):
    viewer().post("vote", json={"value": 1})
    write_profiles(live={"url": live.url, "production": True})
    before = journal_of(live)["mark"]

    result = extcli("logs", "replay", "latest", *chosen, env={"EXTCLI_SECRET": SECRET_BASE64}, exits=2)

    assert "requests are never repeated in production" in result.stderr
    assert before == journal_of(live)["mark"]


def test_a_production_service_repeats_nothing(extcli, production: LiveServer):
    assert 0 != extcli("logs", "replay", "latest", "--url", production.url).exit_code

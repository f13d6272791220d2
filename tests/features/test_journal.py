"""`GET /_emulator/journal`: what an entry has, how entries are selected and paged (operations, Controlling)."""

from __future__ import annotations

import pytest

from emulator.config.settings import Settings
from support.journal import entries_of, entry_of, journal_of
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server


def test_an_entry_has_the_request_its_caller_and_the_response(live: LiveServer, viewer):
    live.set(1_700_000_000_000)
    answer = viewer("5551", opaque="Uabc").post("vote?id=rps", content=b'{"value":2}')

    entry = entry_of(live, answer)

    assert {
        "kind": "request",
        "at": 1_700_000_000_000,
        "id": answer.headers["x-request-id"],
        "namespace": "default",
        "caller": {
            "client_id": CLIENT_ID,
            "role": "viewer",
            "channel_id": CHANNEL,
            "user_id": "5551",
            "opaque_id": "Uabc",
        },
        "endpoint": "POST /v1/e/vote",
        "path": "/v1/e/vote?id=rps",
        "status": 200,
        "request": {"text": '{"value":2}', "encoding": "text", "size": 11, "is_cut": False, "is_hidden": False},
        "response": {
            "text": answer.text,
            "encoding": "text",
            "size": len(answer.content),
            "is_cut": False,
            "is_hidden": False,
        },
        "reason": "",
        "detail": "",
        "code": "",
        "rule": "",
        "next_step": "",
        "fault": "",
        "hint": "",
        "recipients": [],
        "delivered": 0,
        "dropped": 0,
        "socket": 0,
    } == {
        name: value for name, value in entry.items() if name not in ("number", "system_at", "duration_ms", "production")
    }
    assert entry["system_at"] > 1_750_000_000_000
    assert 0 < entry["duration_ms"] < 10_000


def test_a_refusal_has_its_reason_and_its_explanation(live: LiveServer, viewer):
    answer = viewer().post("vote", json={"value": "x"})

    entry = entry_of(live, answer)

    assert (400, answer.json()["reason"], answer.json()["info"]) == (entry["status"], entry["reason"], entry["detail"])


def test_an_entry_is_found_by_its_request_id_and_its_number(live: LiveServer, stranger: Client, viewer):
    viewer().get("vote")
    newest = journal_of(live)["entries"][0]

    for id in (newest["number"], newest["id"], "latest"):
        assert newest == stranger.get("/_emulator/journal/entry", params={"id": id}).json()


@pytest.mark.parametrize("id", ["", "unknown", "999999999999", "0", "-1", "99999999999999999999"])
def test_an_unknown_entry_is_a_404_that_says_that_it_may_be_gone(stranger: Client, id: str):
    answer = stranger.get("/_emulator/journal/entry", params={"id": id})

    assert (404, "No such entry") == (answer.status_code, answer.json()["reason"])
    assert "too old" in answer.json()["info"]


def test_a_long_body_is_cut_at_4_kib_and_keeps_its_size(live: LiveServer, viewer):
    body = b'{"text":"' + "é".encode() * 3_000 + b'"}'

    sent = entry_of(live, viewer().post("accumulate", content=body))["request"]

    assert (True, len(body), "text") == (sent["is_cut"], sent["size"], sent["encoding"])
    assert body.decode().startswith(sent["text"])
    assert 4_090 <= len(sent["text"].encode()) <= 4_096


def test_a_body_that_is_not_utf_8_is_kept_as_base64(live: LiveServer, viewer):
    sent = entry_of(live, viewer().post("accumulate", content=b"\xff\xfe{}"))["request"]

    assert ("base64", "//57fQ==", 4) == (sent["encoding"], sent["text"], sent["size"])


def test_readers_of_the_journal_and_monitoring_are_not_recorded(live: LiveServer, stranger: Client):
    mark = journal_of(live)["mark"]
    for path in ("live", "ready", "metrics", "journal", "journal/entry?id=1", "journal/stream?timeout=0"):
        stranger.get(f"/_emulator/{path}")

    assert mark == journal_of(live)["mark"]


def test_a_reset_clears_the_journal_and_marks_go_on(live: LiveServer, viewer):
    viewer().get("vote")
    before = journal_of(live)["mark"]

    live.reset()

    after = journal_of(live)
    assert ["POST /_emulator/reset"] == [each["endpoint"] for each in after["entries"]]
    assert before + 1 == after["mark"]


@pytest.fixture
def filled(live: LiveServer, viewer, broadcaster: Client, admin: Client) -> LiveServer:
    """A service with five requests in its journal, by name."""
    viewer("1", opaque="Uone").post("vote?id=a", json={"value": 1})
    viewer("2").post("vote?id=b", json={"value": "SECOND"})
    broadcaster.post("channel_state", json={"round": "Third"})
    viewer("1").post("channel_state", json={"round": 4})
    live.client("admin", user="9", channel="888", client_id="other").get("vote?id=e")
    return live


NAMES = {
    "POST /v1/e/vote?id=a": "first",
    "POST /v1/e/vote?id=b": "second",
    "POST /v1/e/channel_state": "third",
    "GET /v1/e/vote?id=e": "fifth",
}


def selected(service: LiveServer, **query: object) -> list[str]:
    found = []
    for each in entries_of(service, **query):
        method = each["endpoint"].split(" ")[0]
        if each["path"].startswith("/v1/"):
            name = NAMES[f"{method} {each['path']}"]
            found.append("fourth" if name == "third" and each["status"] == 403 else name)
    return found


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["first", "second", "third", "fourth", "fifth"]),
        ({"status": "4xx"}, ["second", "fourth"]),
        ({"status": "403"}, ["fourth"]),
        ({"status": "400,403"}, ["second", "fourth"]),
        ({"status": "5xx"}, []),
        ({"status": "none"}, []),
        ({"status": "none,403"}, ["fourth"]),
        ({"path": "/v1/e/vote"}, ["first", "second", "fifth"]),
        ({"path": "id=b"}, ["second"]),
        ({"method": "get"}, ["fifth"]),
        ({"method": "GET,POST", "path": "/v1"}, ["first", "second", "third", "fourth", "fifth"]),
        ({"role": "broadcaster"}, ["third"]),
        ({"role": "broadcaster,admin"}, ["third", "fifth"]),
        ({"client_id": "other"}, ["fifth"]),
        ({"channel_id": "888"}, ["fifth"]),
        ({"user": "1"}, ["first", "fourth"]),
        ({"user": "Uone"}, ["first"]),
        ({"kind": "request"}, ["first", "second", "third", "fourth", "fifth"]),
        ({"kind": "frame"}, []),
        ({"search": "second"}, ["second"]),
        ({"search": "THIRD"}, ["third"]),
        ({"search": "not authorized"}, ["fourth"]),
        ({"search": "uone"}, ["first"]),
        ({"status": "2xx", "role": "viewer"}, ["first"]),
    ],
)
def test_a_query_selects_entries(filled: LiveServer, query: dict[str, str], names: list[str]):
    assert names == selected(filled, **query)


@pytest.mark.parametrize(
    ("query", "info"),
    [
        ("status=40", "status: '40' is not a status such as 403, 4xx or none"),
        ("status=", None),
        ("role=owner", "role: 'owner' is not one of viewer, broadcaster, admin, backend"),
        ("kind=socket", "kind: 'socket' is not one of request, frame, delivery"),
        ("limit=0", "limit: '0' is not within 1 to 1000"),
        ("limit=1001", "limit: '1001' is not within 1 to 1000"),
        ("order=up", "order: 'up' is not one of newest, oldest"),
        ("since=x", "since: 'x' is not a whole number of 0 or more"),
        ("before=-1", "before: '-1' is not a whole number of 0 or more"),
        ("stauts=400", "stauts: is unknown; use status, path,"),
        ("search=" + "x" * 1_025, "search: has over 1024 characters"),
    ],
)
def test_a_malformed_query_is_a_400_that_names_the_parameter(stranger: Client, query: str, info: str | None):
    answers = [stranger.get(f"/_emulator/journal?{query}")]
    if not query.startswith(("limit", "order", "before")):
        answers.append(stranger.get(f"/_emulator/journal/stream?timeout=0&{query}"))

    for answer in answers:
        assert answer.status_code == (400 if info else 200)
        assert info is None or info in answer.json()["info"]


def test_pages_go_back_from_the_newest_entry(live: LiveServer, viewer):
    voter = viewer()
    for number in range(5):
        voter.get(f"vote?id=p{number}")

    pages, before = [], None
    while before is not None or not pages:
        answer = journal_of(live, limit=2, path="vote", **({"before": before} if before else {}))
        pages.append([each["path"][-1] for each in answer["entries"]])
        before = answer["next"]

    assert [["4", "3"], ["2", "1"], ["0"]] == pages


def test_pages_since_a_mark_go_forward(live: LiveServer, viewer):
    voter, since = viewer(), journal_of(live)["mark"]
    for number in range(5):
        voter.get(f"vote?id=p{number}")

    pages, after = [], since
    while after is not None:
        answer = journal_of(live, limit=2, since=after)
        pages.append([each["path"][-1] for each in answer["entries"]])
        after = answer["next"]

    assert [["0", "1"], ["2", "3"], ["4"]] == pages
    assert since + 5 == answer["mark"]
    assert [] == journal_of(live, since=answer["mark"])["entries"]


def test_a_page_says_how_many_entries_since_a_mark_are_gone():
    with live_server(Settings(journal=20_000)) as live:
        voter = live.client("viewer", user="1", channel=CHANNEL)
        for _ in range(60):
            voter.get("vote").raise_for_status()

        answer = journal_of(live, since=10, limit=1_000)

    assert 60 == answer["mark"]
    assert 50 == answer["lost"] + len(answer["entries"])
    assert 5 < len(answer["entries"]) < 40
    assert 0 == answer["lost"] - (answer["entries"][0]["number"] - 11)


def test_without_a_journal_its_api_returns_403():
    with live_server(Settings(journal=0)) as live, Client(base_url=live.url) as client:
        live.client("viewer", user="1", channel=CHANNEL).get("vote").raise_for_status()
        answers = [client.get(f"/_emulator/journal{path}") for path in ("", "/entry?id=1", "/stream?timeout=0")]

    assert [(403, "No journal")] * 3 == [(each.status_code, each.json()["reason"]) for each in answers]
    assert "--journal 0" in answers[0].json()["info"]


def test_production_has_no_journal(production: LiveServer):
    with Client(base_url=production.url) as client:
        assert 404 == client.get("/_emulator/journal").status_code
    assert not production.service.journal.is_on


def test_each_namespace_has_its_own_journal(live: LiveServer, stranger: Client):
    blue = f"{live.url}/_ns/blue-journal"
    stranger.get(f"{blue}/v1/e/vote")

    entries = stranger.get(f"{blue}/_emulator/journal").json()["entries"]
    stranger.delete("/_ns/blue-journal")

    assert [("blue-journal", "GET /v1/e/vote", 401)] == [
        (each["namespace"], each["endpoint"], each["status"]) for each in entries
    ]
    assert [] == entries_of(live, path="vote")

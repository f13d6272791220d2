"""`GET /_emulator/journal`: what an entry has, how entries are selected and paged (operations, Controlling)."""

from __future__ import annotations

import pytest

from emulator.core.config.settings import Settings
from support.journal import entries_of, entry_of, journal_of
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server


def test_an_entry_has_the_request_its_caller_and_the_response(live: LiveServer, viewer):
    live.set(1_700_000_000_000)
    answer = viewer("5551", opaque="Uabc").post("vote?id=rps", content=b'{"value":2}')

    entry = entry_of(live, answer)

    whole = {"encoding": "text", "is_cut": False, "is_hidden": False}
    caller = {"client_id": CLIENT_ID, "role": "viewer", "channel_id": CHANNEL, "user_id": "5551", "opaque_id": "Uabc"}
    expected = {
        **{"kind": "request", "at": 1_700_000_000_000, "id": answer.headers["x-request-id"], "namespace": "default"},
        **{"caller": caller, "endpoint": "POST /v1/e/vote", "path": "/v1/e/vote?id=rps", "status": 200},
        "request": {"text": '{"value":2}', "size": 11, **whole},
        "response": {"text": answer.text, "size": len(answer.content), **whole},
        **dict.fromkeys(("reason", "detail", "code", "rule", "next_step", "fault", "hint"), ""),
        **{"recipients": [], "delivered": 0, "dropped": 0, "socket": 0},
    }
    varying = {name: entry.pop(name) for name in ("number", "system_at", "duration_ms", "production")}
    assert expected == entry
    assert varying["system_at"] > 1_750_000_000_000
    assert 0 < varying["duration_ms"] < 10_000


def test_an_entry_is_found_by_its_request_id_and_its_number(live: LiveServer, stranger: Client, viewer):
    viewer().get("vote")
    newest = journal_of(live)["entries"][0]

    for id in (newest["number"], newest["id"], "latest"):
        assert newest == stranger.get("/_emulator/journal/entry", params={"id": id}).json()


@pytest.mark.parametrize("id", ["", "unknown", "-1", "99999999999999999999"])
def test_an_unknown_entry_is_a_404_that_says_that_it_may_be_gone(stranger: Client, id: str):
    answer = stranger.get("/_emulator/journal/entry", params={"id": id})

    assert (404, "No such entry") == (answer.status_code, answer.json()["reason"])
    assert "too old" in answer.json()["info"]


def test_a_long_body_is_cut_at_4_kib_and_one_that_is_not_utf_8_is_kept_as_base64(live: LiveServer, viewer):
    body = b'{"text":"' + "é".encode() * 3_000 + b'"}'

    sent, binary = (
        entry_of(live, viewer().post("accumulate", content=each))["request"] for each in (body, b"\xff\xfe{}")
    )

    assert (True, len(body), "text") == (sent["is_cut"], sent["size"], sent["encoding"])
    assert body.decode().startswith(sent["text"])
    assert 4_090 <= len(sent["text"].encode()) <= 4_096
    assert ("base64", "//57fQ==", 4) == (binary["encoding"], binary["text"], binary["size"])


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
        ({"status": "none,403"}, ["fourth"]),
        ({"path": "/v1/e/vote"}, ["first", "second", "fifth"]),
        ({"path": "id=b"}, ["second"]),
        ({"method": "get"}, ["fifth"]),
        ({"method": "GET,POST", "path": "/v1"}, ["first", "second", "third", "fourth", "fifth"]),
        ({"role": "broadcaster,admin"}, ["third", "fifth"]),
        ({"client_id": "other"}, ["fifth"]),
        ({"channel_id": "888"}, ["fifth"]),
        ({"user": "1"}, ["first", "fourth"]),
        ({"user": "Uone"}, ["first"]),
        ({"kind": "frame"}, []),
        ({"search": "THIRD"}, ["third"]),
        ({"search": "not authorized"}, ["fourth"]),
        ({"status": "2xx", "role": "viewer"}, ["first"]),
    ],
)
def test_a_query_selects_entries(filled: LiveServer, query: dict[str, str], names: list[str]):
    assert names == selected(filled, **query)


@pytest.mark.parametrize(
    ("query", "is_of_stream"),
    [
        *(("status=40", True), ("role=owner", True), ("kind=socket", True), ("since=x", True), ("stauts=400", True)),
        *(("limit=0", False), ("limit=1001", False), ("order=up", False), ("before=-1", False)),
        ("search=" + "x" * 1_025, True),
    ],
)
def test_a_malformed_query_is_a_400_that_names_the_parameter(stranger: Client, query: str, is_of_stream: bool):
    for path in ("journal?", "journal/stream?timeout=0&")[: 1 + is_of_stream]:
        answer = stranger.get(f"/_emulator/{path}{query}")
        assert (400, query.partition("=")[0]) == (answer.status_code, answer.json()["info"].partition(": ")[0])


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


def test_each_namespace_has_its_own_journal(live: LiveServer, stranger: Client):
    blue = f"{live.url}/_ns/blue-journal"
    stranger.get(f"{blue}/v1/e/vote")

    entries = stranger.get(f"{blue}/_emulator/journal").json()["entries"]
    stranger.delete("/_ns/blue-journal")

    assert [("blue-journal", "GET /v1/e/vote", 401)] == [
        (each["namespace"], each["endpoint"], each["status"]) for each in entries
    ]
    assert [] == entries_of(live, path="vote")

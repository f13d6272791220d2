"""`GET /_emulator/journal` and its stream: what an entry has, and how entries are paged (operations, Controlling)."""

from __future__ import annotations

import pytest

from emulator.core.settings import Settings
from support.journal import entries_of, entry_of, following, journal_of
from support.process import wait_until
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, RunningService, live_server
from support.waits import held


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


# Bodies


def test_a_refused_request_is_recorded_with_its_body(live: LiveServer, viewer):
    viewer().post("extension_state", json={"round": 4})

    (entry,) = entries_of(live, status="403")
    assert ('{"round":4}', 11, False) == (
        entry["request"]["text"],
        entry["request"]["size"],
        entry["request"]["is_cut"],
    )


def test_a_refusal_does_not_wait_for_a_body_that_does_not_come(live: LiveServer):
    head = "POST /v1/e/extension_state HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
    with live.connect() as connection:
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 401")

    (entry,) = entries_of(live, status="401")
    assert ("", 100, True) == (entry["request"]["text"], entry["request"]["size"], entry["request"]["is_cut"])


@pytest.mark.parametrize("path", ["codes/mark_from_list"])
def test_a_streamed_body_has_its_size(live: LiveServer, admin: Client, path: str):
    body = b'{"prizes": [0], "prize_limits": [1], "users": ["5"]}'
    admin.post(path, content=body)

    entry = entries_of(live, path=path)[-1]
    assert (len(body), True) == (entry["request"]["size"], entry["request"]["is_cut"])


# The stream


def test_the_stream_sends_the_selected_entries_as_they_happen(live: LiveServer, viewer):
    with following(live, path="/v1/e/vote") as lines:
        mark = next(lines)
        viewer().get("vote?id=one")
        first = next(lines)
        viewer().get("rank")
        viewer().get("vote?id=two")
        second = next(lines)

    assert first["number"] - 1 == mark["mark"]
    assert ["/v1/e/vote?id=one", "/v1/e/vote?id=two"] == [first["path"], second["path"]]
    assert [first, second] == entries_of(live, path="/v1/e/vote")


@pytest.mark.slow
def test_the_stream_resumes_after_a_mark(live: LiveServer, viewer):
    voter, mark = viewer(), journal_of(live)["mark"]
    for number in range(150):
        voter.get(f"vote?id={number}")

    with following(live, since=mark, timeout=0) as lines:
        found = [each["path"] for each in lines if "path" in each]

    assert [f"/v1/e/vote?id={number}" for number in range(150)] == found


def test_a_mark_of_an_earlier_run_starts_at_the_beginning(live: LiveServer):
    live.reset()

    with following(live, since=10**9, timeout=0) as lines:
        assert [0, "POST /_emulator/reset"] == [
            line["mark"] if "mark" in line else line["endpoint"] for line in lines if "lost" not in line
        ]


def test_a_slow_reader_receives_the_number_of_missed_entries():
    with live_server(Settings(journal=100_000)) as live:
        voter = live.client("viewer", user="1", channel=CHANNEL)
        mark = journal_of(live)["mark"]
        for _ in range(300):
            voter.get("vote")

        with following(live, since=mark, timeout=0) as lines:
            first, lost, *rest = lines

        assert mark == first["mark"]
        assert 300 == lost["lost"] + len(rest)
        assert mark + lost["lost"] == lost["mark"] == rest[0]["number"] - 1


def test_a_client_that_leaves_ends_its_stream(live: LiveServer):
    before = held(live)
    with following(live) as lines:
        next(lines)
        assert before + 1 == held(live)

    assert wait_until(lambda: held(live) == before)


def test_dropping_a_namespace_ends_its_streams(live: LiveServer, stranger: Client):
    blue = RunningService(f"{live.url}/_ns/blue-stream")
    with following(blue) as lines:
        next(lines)

        stranger.delete("/_ns/blue-stream").raise_for_status()

        assert [] == [line for line in lines if "endpoint" not in line]


def test_each_run_of_the_service_has_another_name(live: LiveServer):
    runs = []
    with live_server() as other:
        for each in (live, live, other):
            with following(each, timeout=0) as lines:
                runs.append(next(lines)["run"])

    assert runs[0] == runs[1] != runs[2]

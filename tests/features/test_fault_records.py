"""What the journal and the verdict of production make of faults."""

from __future__ import annotations

from support.faults import add_fault
from support.journal import entries_of, entry_of
from support.service import Client, LiveServer

VOTE = "POST /v1/e/vote"
RPS = {"id": "rps"}


# The journal


def test_the_journal_and_its_readers_name_the_fault(live: LiveServer, stranger: Client, viewer):
    add_fault(live, VOTE, "status", status=500, id="broken", times=1)

    answer = viewer().post("vote", params=RPS, json={"value": 1})

    entry = entry_of(live, answer)
    assert ("broken", 500, "Fault", "docs: Faults") == tuple(
        entry[name] for name in ("fault", "status", "reason", "rule")
    )
    assert '{"value":1}' == entry["request"]["text"].replace(" ", "")
    explained = stranger.get("/_emulator/explain", params={"id": answer.headers["x-request-id"]}).json()
    assert "Remove it: `extcli fault rm broken`." == explained["explanation"]["next_step"]
    assert stranger.get("/_emulator/explain").json()["entry"]["id"] == answer.headers["x-request-id"]
    spared = viewer().post("vote", params=RPS, json={"value": 1})
    assert (False, "") == ("x-emulator-fault" in spared.headers, entry_of(live, spared)["fault"])


def test_a_late_response_is_recorded_with_the_fault(live: LiveServer, viewer):
    add_fault(live, VOTE, "delay", delay=1)

    answer = viewer().post("vote", params=RPS, json={"value": 1})

    assert (200, "f1; effect=delay") == (answer.status_code, answer.headers["x-emulator-fault"])
    entry = entry_of(live, answer)
    assert ("f1", 200, "") == (entry["fault"], entry["status"], entry["reason"])


def test_the_verdict_of_production_ignores_the_response_of_a_fault(live: LiveServer, stranger: Client, viewer):
    add_fault(live, VOTE, "status", role="viewer")

    answer = viewer().post("vote", params=RPS, json={"value": 1})

    assert "x-emulator-production" not in answer.headers
    assert "" == entry_of(live, answer)["production"]
    assert [] == entries_of(live, production="any", path="/v1/e/vote")

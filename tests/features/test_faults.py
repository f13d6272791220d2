"""Faults over REST: adding, listing and removing them, and what they do to requests."""

from __future__ import annotations

from support.service import Client

VOTE = "POST /v1/e/vote"


def test_a_fault_answers_in_place_of_the_endpoint(viewer, stranger: Client):
    fault = (
        stranger.post("/_emulator/faults", json={"match": VOTE, "effect": "status", "status": 502, "retry_after": 3})
        .raise_for_status()
        .json()
    )

    answer = viewer().post("vote", params={"id": "rps"}, json={"value": 1})

    assert ("f1", 0, None, None) == tuple(fault[name] for name in ("id", "hits", "left", "ends_at"))
    assert (502, "3", "f1; effect=status") == (
        answer.status_code,
        answer.headers["retry-after"],
        answer.headers["x-emulator-fault"],
    )
    assert {"status": 502, "title": "Bad Gateway"}.items() <= answer.json()["errors"][0].items()
    assert ("Fault", "fault f1 answered 502; remove it with `extcli fault rm f1`") == (
        answer.json()["reason"],
        answer.json()["info"],
    )
    assert 1 == stranger.get("/_emulator/faults").json()["faults"][0]["hits"]
    assert {"removed": 1} == stranger.delete("/_emulator/faults").json()
    assert 200 == viewer().post("vote", params={"id": "rps"}, json={"value": 1}).status_code

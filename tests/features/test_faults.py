"""Faults: adding, listing, replacing and removing them, and which requests they act on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulator.core.config.settings import Settings
from engines.redis_server import RedisServer
from support.faults import add_fault, faults_of, hits_of, remove_faults, status_of_vote
from support.service import CLIENT_ID, Client, LiveServer, live_server

VOTE = "POST /v1/e/vote"
RPS = {"id": "rps"}

Json = dict[str, Any]


@pytest.fixture
def api(stranger: Client):
    """Call the endpoint of faults with a method, and return the response."""
    return lambda method, body=None, **query: stranger.request(method, "/_emulator/faults", json=body, params=query)


# The control API


def test_adding_a_fault_returns_all_its_members(live: LiveServer, api):
    now = live.freeze()

    fault = api("POST", {"match": VOTE, "effect": "status", "status": 502, "times": 3, "lasts": 1_000}).json()

    assert {
        "id": "f1", "match": VOTE, "effect": "status", "status": 502, "retry_after": None, "delay": None,
        "delay_max": None, "bytes": None, "code": None, "role": "", "channel": "", "user": "", "client_id": "",
        "event": "", "times": 3, "share": None, "seed": 0, "lasts": 1_000, "hits": 0, "left": 3, "ends_at": now + 1_000,
    } == fault  # fmt: skip
    assert {"faults": [fault]} == api("GET").json()


def test_faults_without_an_id_get_the_first_free_one(live: LiveServer):
    ids = [add_fault(live, VOTE, "drop", **given)["id"] for given in ({}, {"id": "f3"}, {}, {}, {"id": "slow-vote_1"})]

    assert ["f1", "f3", "f2", "f4", "slow-vote_1"] == ids
    assert {"removed": 1} == {"removed": remove_faults(live, id="f1")}
    assert "f1" == add_fault(live, VOTE, "drop")["id"]


def test_the_same_id_replaces_a_fault_and_counts_anew(live: LiveServer, viewer):
    add_fault(live, VOTE, "status", id="x")
    add_fault(live, VOTE, "status", status=500, id="y")
    assert 503 == status_of_vote(viewer())

    add_fault(live, VOTE, "status", status=504, id="x")

    assert 504 == status_of_vote(viewer()), "it keeps its place before the others"
    assert [("x", 1), ("y", 0)] == [(fault["id"], fault["hits"]) for fault in faults_of(live)]


def test_a_list_replaces_all_faults_and_one_that_was_read_can_be_written_back(live: LiveServer, api, viewer):
    add_fault(live, VOTE, "drop", id="before")

    listed = api(
        "PUT",
        {"faults": [{"match": VOTE, "effect": "status", "times": 3}, {"match": "* *", "effect": "drop", "id": "f1"}]},
    )
    assert ["f2", "f1"] == [fault["id"] for fault in listed.json()["faults"]] == [f["id"] for f in faults_of(live)]
    assert 503 == status_of_vote(viewer())
    again = api("PUT", api("GET").json()).raise_for_status().json()

    assert (0, 3) == (again["faults"][0]["hits"], again["faults"][0]["left"])


@pytest.mark.parametrize(
    ("faults", "field"),
    [
        ([{"match": VOTE, "effect": "drop"}, {"match": VOTE, "effect": "lose"}], "faults[1].effect"),
        ([{"match": VOTE, "effect": "drop", "id": "a"}] * 2, "faults[1].id"),
        ([{"match": VOTE, "effect": "drop"}] * 101, "faults"),
        ([{"match": VOTE}], "faults[0].effect"),
    ],
)
def test_a_list_with_an_invalid_fault_changes_nothing(live: LiveServer, api, viewer, faults: list[Json], field: str):
    add_fault(live, VOTE, "status", id="before")

    refused = api("PUT", {"faults": faults})

    assert (400, field) == (refused.status_code, refused.json()["info"].partition(": ")[0])
    assert ["before"] == [fault["id"] for fault in faults_of(live)]
    assert 503 == status_of_vote(viewer())


def test_a_removal_says_how_many_faults_it_removed(live: LiveServer, api, viewer):
    for _ in range(3):
        add_fault(live, VOTE, "status")

    assert {"removed": 1} == api("DELETE", id="f2").json()
    assert ["f1", "f3"] == [fault["id"] for fault in faults_of(live)]
    assert (404, "No such fault") == ((refused := api("DELETE", id="f9")).status_code, refused.json()["reason"])
    assert [{"removed": 2}, {"removed": 0}] == [api("DELETE").json() for _ in range(2)]
    assert 200 == status_of_vote(viewer())


def test_an_empty_id_removes_no_fault(live: LiveServer, api, stranger: Client):
    add_fault(live, VOTE, "status")

    refused = [api("DELETE", id=""), stranger.post("/_emulator/faults/remove", json={"id": ""})]

    assert [(404, "No such fault")] * 2 == [(each.status_code, each.json()["reason"]) for each in refused]
    assert ["f1"] == [fault["id"] for fault in faults_of(live)]
    assert {"removed": 1} == stranger.post("/_emulator/faults/remove", json={}).json()


@pytest.mark.slow
def test_a_service_on_redis_refuses_faults(tmp_path: Path):
    with (
        RedisServer(tmp_path) as redis,
        live_server(Settings(data=redis.url())) as live,
        Client(base_url=live.url) as client,
    ):
        answers = [client.request(method, "/_emulator/faults", json={"faults": []}) for method in ("GET", "PUT")]
        answers.append(client.post("/_emulator/faults", json={"match": VOTE, "effect": "drop"}))
        answers.append(client.delete("/_emulator/faults"))

    assert {(409, "No faults")} == {(each.status_code, each.json()["reason"]) for each in answers}


# Answers


def test_a_fault_responds_before_the_credential_is_checked_as_other_errors_do(live: LiveServer, stranger: Client):
    add_fault(live, VOTE, "status", status=502, retry_after=3)

    answer = stranger.post("/v1/e/vote")

    assert (502, "3", "f1; effect=status", "*") == (
        answer.status_code,
        *(answer.headers[name] for name in ("retry-after", "x-emulator-fault", "access-control-allow-origin")),
    )
    (error,) = answer.json()["errors"]
    assert ("Fault", 502, "Bad Gateway", answer.json()["info"]) == (
        answer.json()["reason"], error["status"], error["title"], error["detail"],
    )  # fmt: skip


def test_a_request_with_a_faulty_response_does_no_work(live: LiveServer, viewer, broadcaster: Client):
    add_fault(live, VOTE, "status", times=1)

    assert 503 == status_of_vote(viewer())

    assert 0 == broadcaster.get("vote", params=RPS).json()["count"]


def test_an_endpoint_of_the_control_api_is_never_faulty(live: LiveServer, stranger: Client):
    add_fault(live, "* *", "drop")

    assert 200 == stranger.get("/_emulator/clock").status_code
    assert 200 == stranger.get("/_emulator/").status_code
    call = {"path": "/v1/e/vote", "client_id": CLIENT_ID}
    assert 200 == stranger.post("/_emulator/call", json=call).json()["status"]
    assert [0] == hits_of(live)


@pytest.mark.parametrize(
    ("method", "path", "match"),
    [
        ("GET", "/v1/e/polls", "get /v1/e/p*"),
        ("GET", "/v1/e/config", "GET /v1/e/all_config"),
        ("GET", "/v1/e/all_config", "GET /v1/e/config"),
        ("POST", "/v1/e/authtoken", "POST /v1/e/authtoken"),
        ("POST", "/v1/e/unauthed/pin", "POST /v1/e/unauthed/pin"),
        ("GET", "/v1/e//vote/", "GET /v1/e/vote/"),
    ],
)
def test_a_match_names_methods_and_paths_with_aliases_and_patterns(live: LiveServer, stranger, method, path, match):
    add_fault(live, match, "status", status=599)

    answer = stranger.request(method, path)

    assert (599, "f1; effect=status") == (answer.status_code, answer.headers["x-emulator-fault"])

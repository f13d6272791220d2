"""Faults: adding and removing them, which requests they act on, when they end, and how they are recorded."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from emulator.core.settings import Settings
from engines.redis_server import RedisServer
from support.connection import Connection
from support.faults import add_fault, faults_of, hits_of, remove_faults, status_of_vote
from support.journal import entries_of, entry_of
from support.seeds import PLACE
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, RunningService, live_server

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
        answers.append(client.put("/_emulator/seed", json=PLACE | {"faults": [{"match": VOTE, "effect": "drop"}]}))

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


def test_an_endpoint_of_the_control_api_is_never_faulty(live: LiveServer, stranger: Client):
    add_fault(live, "* *", "drop")

    assert 200 == stranger.get("/_emulator/clock").status_code
    assert 200 == stranger.get("/_emulator/").status_code
    assert [0] == hits_of(live)


@pytest.mark.parametrize(
    ("effect", "status", "info"),
    [
        ("status", 503, "fault f1 answered 503"), ("drop", 0, "fault f1 gave no response"),
        ("stall", 0, "fault f1 keeps the connection open and sends nothing"), ("delay", 200, ""),
        ("truncate", 0, "fault f1 cut the response short"),
    ],
)  # fmt: skip
def test_a_call_as_any_caller_meets_the_faults(live: LiveServer, stranger: Client, effect: str, status: int, info: str):
    add_fault(live, "GET /v1/e/vote", effect, times=1, **({"delay": 5} if effect == "delay" else {}))

    called = stranger.post("/_emulator/call", json={"path": "/v1/e/vote", "client_id": CLIENT_ID}).json()
    assert (status, [1]) == (called["status"], hits_of(live))
    assert info in called["body"].get("info", "")


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


# Choice


def test_the_oldest_fault_that_matches_acts_alone(live: LiveServer, viewer):
    add_fault(live, "POST /v1/e/rank", "drop")
    add_fault(live, VOTE, "status", status=500, times=1)
    add_fault(live, "* *", "status", status=501)

    assert [500, 501, 501] == [status_of_vote(viewer()) for _ in range(3)]
    assert [0, 1, 2] == hits_of(live)


def test_exactly_three_of_fifty_clients_at_once_hit_a_fault_with_three_times(live: LiveServer, viewer):
    add_fault(live, VOTE, "status", times=3)

    async def one(user: int) -> int:
        async with Connection(live, viewer(f"9{user}")) as connection:
            status, _ = await connection.send("vote?id=rps", {"value": 1})
            return status

    async def all_at_once() -> list[int]:
        return list(await asyncio.gather(*map(one, range(50))))

    statuses = asyncio.run(all_at_once())

    assert [200] * 47 + [503] * 3 == sorted(statuses)
    assert [(3, 0)] == [(fault["hits"], fault["left"]) for fault in faults_of(live)]
    assert 47 == viewer().get("vote", params=RPS).json()["count"]


def test_a_share_with_a_seed_makes_the_same_choices_again_until_its_number_of_hits(live: LiveServer, viewer):
    voter, runs = viewer(), []
    for seed, limit in ((7, {}), (7, {}), (8, {}), (7, {"times": 3})):
        add_fault(live, VOTE, "status", share=0.3, seed=seed, id="some", **limit)
        runs.append([at for at in range(60) if status_of_vote(voter) == 503])

    assert runs[0] == runs[1] != runs[2]
    assert 8 <= len(runs[0]) <= 28
    assert runs[0][:3] == runs[3]
    assert [(3, 0)] == [(fault["hits"], fault["left"]) for fault in faults_of(live)]


def test_a_fault_ends_by_the_clock_of_the_service(live: LiveServer, viewer):
    live.freeze()
    add_fault(live, VOTE, "status", lasts=1_000)

    statuses = []
    for step in (0, 999, 1):
        live.advance(step)
        statuses.append(status_of_vote(viewer()))
    now = live.now()
    live.set(now - 1_000)
    statuses.append(status_of_vote(viewer()))

    assert [503, 503, 200, 200] == statuses, "once over, it stays over"
    assert [(2, now)] == [(fault["hits"], fault["ends_at"]) for fault in faults_of(live)]


def test_the_channel_of_a_backend_is_the_one_that_it_names(live: LiveServer, backend: Client):
    add_fault(live, "GET /v1/e/vote", "status", channel="778")

    statuses = [backend.get("vote", params={"channel_id": channel}).status_code for channel in ("777", "778")]

    assert [200, 503] == statuses


def test_a_condition_on_the_caller_spares_requests_without_a_valid_token(live: LiveServer, stranger: Client):
    add_fault(live, VOTE, "status", status=500, role="viewer")

    answers = [stranger.post("/v1/e/vote", headers=headers) for headers in ({}, {"authorization": "x eyJ.bad.token"})]

    assert {401} == {answer.status_code for answer in answers}
    assert [0] == hits_of(live)


def test_a_client_id_without_a_token_meets_its_condition(live: LiveServer, stranger: Client):
    add_fault(live, "POST /v1/e/pin", "status", client_id=CLIENT_ID)

    answers = [stranger.post("/v1/e/pin", headers={"authorization": id}).status_code for id in (CLIENT_ID, "another")]

    assert 503 == answers[0] != answers[1]


# Reset and namespaces


@pytest.mark.parametrize("end", ["reset", "snapshot"])
def test_a_reset_and_a_loaded_snapshot_remove_all_faults(live: LiveServer, stranger: Client, viewer, end: str):
    document = stranger.get("/_emulator/snapshot").raise_for_status().content
    add_fault(live, VOTE, "status")
    add_fault(live, "BROADCAST *", "lose")

    if end == "reset":
        live.reset()
    else:
        stranger.put("/_emulator/snapshot", content=document).raise_for_status()

    assert [] == faults_of(live)
    assert 200 == status_of_vote(viewer())


def test_a_fault_of_a_namespace_stays_in_it(live: LiveServer):
    red, blue = (RunningService(f"{live.url}/_ns/faults-{name}") for name in ("red", "blue"))
    for service in (red, blue):
        service.reset()
    add_fault(red, VOTE, "status")

    statuses = [status_of_vote(each.client("viewer", user="5551", channel=CHANNEL)) for each in (live, red, blue)]

    assert [200, 503, 200] == statuses
    assert ([], [1], []) == (hits_of(live), hits_of(red), hits_of(blue))

"""Faults: adding, listing, replacing and removing them, and which requests they act on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from emulator.config.settings import Settings
from support.connection import Connection
from support.faults import add_fault, faults_of, hits_of, remove_faults
from support.journal import entries_of, entry_of
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, RunningService, live_server

VOTE = "POST /v1/e/vote"
RPS = {"id": "rps"}

Json = dict[str, Any]


def vote(client: Client, value: int = 1) -> int:
    """Cast a vote, and return the status."""
    return client.post("vote", params=RPS, json={"value": value}).status_code


@pytest.fixture
def api(stranger: Client):
    """Call the endpoint of faults with a method, and return the answer."""
    return lambda method, body=None, **query: stranger.request(method, "/_emulator/faults", json=body, params=query)


# The control API


def test_a_fault_is_answered_with_all_its_members(live: LiveServer, api):
    now = live.freeze()

    fault = api("POST", {"match": VOTE, "effect": "status", "status": 502, "times": 3, "lasts": 1_000}).json()

    assert {
        "id": "f1", "match": VOTE, "effect": "status", "status": 502, "retry_after": None, "delay": None,
        "delay_max": None, "bytes": None, "code": None, "role": "", "channel": "", "user": "", "client_id": "",
        "event": "", "times": 3, "share": None, "seed": 0, "lasts": 1_000, "hits": 0, "left": 3, "ends_at": now + 1_000,
    } == fault  # fmt: skip
    assert {"faults": [fault]} == api("GET").json()


def test_a_form_adds_a_fault(live: LiveServer, stranger: Client):
    form = {"match": VOTE, "effect": "delay", "delay": "0", "share": "0.5", "seed": "7", "role": "viewer", "user": ""}

    fault = stranger.post("/_emulator/faults", data=form).raise_for_status().json()

    assert (0, 0.5, 7, "viewer") == tuple(fault[name] for name in ("delay", "share", "seed", "role"))


def test_faults_without_an_id_get_the_first_free_one(live: LiveServer):
    ids = [add_fault(live, VOTE, "drop", **given)["id"] for given in ({}, {"id": "f3"}, {}, {}, {"id": "slow-vote_1"})]

    assert ["f1", "f3", "f2", "f4", "slow-vote_1"] == ids
    assert {"removed": 1} == {"removed": remove_faults(live, id="f1")}
    assert "f1" == add_fault(live, VOTE, "drop")["id"]


def test_the_same_id_replaces_a_fault_and_counts_anew(live: LiveServer, viewer):
    add_fault(live, VOTE, "status", id="x")
    add_fault(live, VOTE, "status", status=500, id="y")
    assert 503 == vote(viewer())

    add_fault(live, VOTE, "status", status=504, id="x")

    assert 504 == vote(viewer()), "it keeps its place before the others"
    assert [("x", 1), ("y", 0)] == [(fault["id"], fault["hits"]) for fault in faults_of(live)]


def test_a_list_replaces_all_faults(live: LiveServer, api):
    add_fault(live, VOTE, "drop", id="before")

    listed = api("PUT", {"faults": [{"match": VOTE, "effect": "drop"}, {"match": "* *", "effect": "drop", "id": "f1"}]})

    assert ["f2", "f1"] == [fault["id"] for fault in listed.json()["faults"]] == [f["id"] for f in faults_of(live)]


def test_a_list_that_was_read_can_be_written_back(live: LiveServer, api, viewer):
    add_fault(live, VOTE, "status", times=3)
    assert 503 == vote(viewer())

    again = api("PUT", api("GET").json()).raise_for_status().json()

    assert [(0, 3)] == [(fault["hits"], fault["left"]) for fault in again["faults"]]


@pytest.mark.parametrize(
    ("faults", "detail"),
    [
        ([{"match": VOTE, "effect": "drop"}, {"match": VOTE, "effect": "lose"}], "faults[1].effect: 'lose' is not one"),
        ([{"match": VOTE, "effect": "drop", "id": "a"}] * 2, "faults[1].id: 'a' is not unique"),
        ([{"match": VOTE, "effect": "drop"}] * 101, "faults: has 101 faults; the limit is 100"),
        ([{"match": VOTE}], "faults[0]: object missing required field `effect`"),
    ],
)
def test_a_list_with_an_invalid_fault_changes_nothing(live: LiveServer, api, viewer, faults: list[Json], detail: str):
    add_fault(live, VOTE, "status", id="before")

    refused = api("PUT", {"faults": faults})

    assert 400 == refused.status_code
    assert detail in refused.json()["info"]
    assert ["before"] == [fault["id"] for fault in faults_of(live)]
    assert 503 == vote(viewer())


def test_at_most_a_hundred_faults_are_kept(live: LiveServer, api):
    api("PUT", {"faults": [{"match": VOTE, "effect": "drop"}] * 100}).raise_for_status()

    refused = api("POST", {"match": VOTE, "effect": "drop"})

    assert (400, "Too many faults") == (refused.status_code, refused.json()["reason"])
    assert 200 == api("POST", {"match": VOTE, "effect": "drop", "id": "f7"}).status_code


def test_a_removal_says_how_many_faults_it_removed(live: LiveServer, api, viewer):
    for _ in range(3):
        add_fault(live, VOTE, "status")

    assert {"removed": 1} == api("DELETE", id="f2").json()
    assert ["f1", "f3"] == [fault["id"] for fault in faults_of(live)]
    assert {"removed": 2} == api("DELETE").json()
    assert {"removed": 0} == api("DELETE").json()
    assert 200 == vote(viewer())


def test_removing_an_unknown_fault_is_refused(live: LiveServer, api):
    add_fault(live, VOTE, "drop")

    refused = api("DELETE", id="f9")

    assert (404, "No such fault") == (refused.status_code, refused.json()["reason"])
    assert 1 == len(faults_of(live))


def test_production_has_no_faults(production: LiveServer):
    with Client(base_url=production.url) as client:
        assert {404} == {
            client.request(method, "/_emulator/faults").status_code for method in ("GET", "POST", "PUT", "DELETE")
        }


def test_several_workers_refuse_faults():
    with live_server(Settings(has_peers=True)) as live, Client(base_url=live.url) as client:
        answers = [client.request(method, "/_emulator/faults", json={"faults": []}) for method in ("GET", "PUT")]
        answers.append(client.post("/_emulator/faults", json={"match": VOTE, "effect": "drop"}))
        answers.append(client.delete("/_emulator/faults"))

    assert {(409, "No faults")} == {(each.status_code, each.json()["reason"]) for each in answers}
    assert "--workers 1" in answers[0].json()["info"]


# Answers


def test_a_fault_answers_as_the_service_words_its_errors(live: LiveServer, viewer):
    add_fault(live, VOTE, "status", status=502, retry_after=3)

    answer = viewer().post("vote", params=RPS, json={"value": 1})

    assert (502, "3", "f1; effect=status", "*") == (
        answer.status_code,
        *(answer.headers[name] for name in ("retry-after", "x-emulator-fault", "access-control-allow-origin")),
    )
    detail = "fault f1 answered 502; remove it with `extcli fault rm f1`"
    assert {
        "errors": [{"status": 502, "title": "Bad Gateway", "detail": detail}], "reason": "Fault", "info": detail,
    } == answer.json()  # fmt: skip


def test_a_faulty_answer_does_none_of_the_work(live: LiveServer, viewer, broadcaster: Client):
    add_fault(live, VOTE, "status")

    assert 503 == vote(viewer())

    remove_faults(live)
    assert 0 == broadcaster.get("vote", params=RPS).json()["count"]


def test_a_fault_answers_before_the_credential_is_checked(live: LiveServer):
    add_fault(live, VOTE, "status", status=500)

    with Client(base_url=live.url) as client:
        assert 500 == client.post("/v1/e/vote").status_code


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
        ("GET", "/v1/e/vote", "* /v1/e/vote"),
        ("GET", "/v1/e/polls", "GET /v1/e/p*"),
        ("GET", "/v1/e/polls", "get /v1/e/*"),
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


# Choice


def test_the_oldest_fault_that_matches_acts_alone(live: LiveServer, viewer):
    add_fault(live, "POST /v1/e/rank", "drop")
    add_fault(live, VOTE, "status", status=500, times=1)
    add_fault(live, "* *", "status", status=501)

    assert [500, 501, 501] == [vote(viewer()) for _ in range(3)]
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


def test_a_share_with_a_seed_makes_the_same_choices_again(live: LiveServer, viewer):
    voter, runs = viewer(), []
    for seed in (7, 7, 8):
        add_fault(live, VOTE, "status", share=0.3, seed=seed, id="some")
        runs.append([vote(voter) for _ in range(60)])

    assert runs[0] == runs[1] != runs[2]
    assert 8 <= runs[0].count(503) <= 28


def test_a_fault_ends_by_the_clock_of_the_service(live: LiveServer, viewer):
    live.freeze()
    add_fault(live, VOTE, "status", lasts=1_000)

    statuses = []
    for step in (0, 999, 1):
        live.advance(step)
        statuses.append(vote(viewer()))
    now = live.now()
    live.set(now - 1_000)
    statuses.append(vote(viewer()))

    assert [503, 503, 200, 200] == statuses, "once over, it stays over"
    assert [(2, now)] == [(fault["hits"], fault["ends_at"]) for fault in faults_of(live)]


@pytest.mark.parametrize(
    ("condition", "other"),
    [
        ({"role": "viewer"}, {"role": "admin"}),
        ({"channel": CHANNEL}, {"channel": "778"}),
        ({"user": "5551"}, {"user": "5552"}),
        ({"user": "U5551"}, {"user": "U5552"}),
        ({"client_id": CLIENT_ID}, {"client_id": "another"}),
        ({"role": "viewer", "user": "5551"}, {"role": "viewer", "user": "5552"}),
    ],
)
def test_conditions_choose_the_callers_that_a_fault_acts_on(live: LiveServer, viewer, condition: Json, other: Json):
    add_fault(live, VOTE, "status", status=500, **other)
    add_fault(live, VOTE, "status", status=501, **condition)

    assert 501 == vote(viewer("5551"))
    assert [0, 1] == hits_of(live)


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


def test_a_reset_removes_all_faults(live: LiveServer, viewer):
    add_fault(live, VOTE, "status")
    add_fault(live, "BROADCAST *", "lose")

    live.reset()

    assert [] == faults_of(live)
    assert 200 == vote(viewer())


def test_a_seed_leaves_the_faults(live: LiveServer, stranger: Client, viewer):
    add_fault(live, VOTE, "status")

    seed = {"extcli": 1, "client_id": CLIENT_ID, "channel": CHANNEL}
    stranger.put("/_emulator/seed", json=seed).raise_for_status()

    assert 503 == vote(viewer())


def test_a_snapshot_replaces_all_data_and_removes_the_faults(live: LiveServer, stranger: Client, viewer):
    document = stranger.get("/_emulator/snapshot").raise_for_status().content
    add_fault(live, VOTE, "status")

    stranger.put("/_emulator/snapshot", content=document).raise_for_status()

    assert 200 == vote(viewer())


def test_a_fault_of_a_namespace_stays_in_it(live: LiveServer):
    red, blue = (RunningService(f"{live.url}/_ns/faults-{name}") for name in ("red", "blue"))
    for service in (red, blue):
        service.reset()
    add_fault(red, VOTE, "status")

    statuses = [vote(each.client("viewer", user="5551", channel=CHANNEL)) for each in (live, red, blue)]

    assert [200, 503, 200] == statuses
    assert ([], [1], []) == (hits_of(live), hits_of(red), hits_of(blue))


# The journal


def test_the_journal_and_its_readers_name_the_fault(live: LiveServer, stranger: Client, viewer):
    add_fault(live, VOTE, "status", status=500, id="broken")

    answer = viewer().post("vote", params=RPS, json={"value": 1})

    entry = entry_of(live, answer)
    assert ("broken", 500, "Fault", "docs: Faults") == tuple(
        entry[name] for name in ("fault", "status", "reason", "rule")
    )
    assert '{"value":1}' == entry["request"]["text"].replace(" ", "")
    explained = stranger.get("/_emulator/explain", params={"id": answer.headers["x-request-id"]}).json()
    assert "fault broken answered 500; remove it with `extcli fault rm broken`" == explained["entry"]["detail"]
    assert "Remove it: `extcli fault rm broken`." == explained["explanation"]["next_step"]
    assert stranger.get("/_emulator/explain").json()["entry"]["id"] == answer.headers["x-request-id"]


def test_a_late_answer_is_recorded_with_the_fault(live: LiveServer, viewer):
    add_fault(live, VOTE, "delay", delay=1)

    answer = viewer().post("vote", params=RPS, json={"value": 1})

    assert (200, "f1; effect=delay") == (answer.status_code, answer.headers["x-emulator-fault"])
    entry = entry_of(live, answer)
    assert ("f1", 200, "") == (entry["fault"], entry["status"], entry["reason"])


def test_requests_that_no_fault_touches_name_none(live: LiveServer, viewer):
    add_fault(live, VOTE, "status", times=1)
    vote(viewer())

    answer = viewer().post("vote", params=RPS, json={"value": 1})

    assert "x-emulator-fault" not in answer.headers
    assert "" == entry_of(live, answer)["fault"]


def test_the_verdict_of_production_ignores_what_a_fault_answers(live: LiveServer, stranger: Client, viewer):
    add_fault(live, VOTE, "status", role="viewer")

    answer = viewer().post("vote", params=RPS, json={"value": 1})

    assert "x-emulator-production" not in answer.headers
    assert "" == entry_of(live, answer)["production"]
    assert [] == entries_of(live, production="any", path="/v1/e/vote")

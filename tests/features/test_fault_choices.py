"""Which requests a fault acts on, and when it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.connection import Connection
from support.faults import add_fault, faults_of, hits_of, status_of_vote
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, RunningService

VOTE = "POST /v1/e/vote"
RPS = {"id": "rps"}

Json = dict[str, Any]


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

    assert 501 == status_of_vote(viewer("5551"))
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

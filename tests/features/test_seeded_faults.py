"""Faults of a seed: they act once its data are in, and are refused with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulator.core.config.settings import Settings
from engines.redis_server import RedisServer
from support.records import records
from support.seeds import CHRISTMAS, CHRISTMAS_MS, PLACE, apply, details
from support.service import Client, LiveServer, live_server

REFUSED_VOTES = {"match": "POST /v1/e/vote", "effect": "status", "status": 503, "times": 3}
LOST_ROUND = {"match": "BROADCAST round-over", "effect": "lose", "lasts": 10_000, "id": "lost"}


def faults(live: LiveServer) -> list[dict[str, Any]]:
    with Client(base_url=live.url) as client:
        return list(client.get("/_emulator/faults").raise_for_status().json()["faults"])


def test_faults_of_a_seed_act_once_the_data_are_in(live: LiveServer, viewer):
    answer = apply(live, faults=[REFUSED_VOTES, LOST_ROUND], polls=[{"id": "lunch", "votes": {"U1": 0}}])

    assert 2 == answer["counts"]["faults"]
    assert ["seed-1", "lost"] == [each["id"] for each in faults(live)]
    assert [503, 503, 503, 200] == [viewer().post("vote", json={"value": 1}).status_code for _ in range(4)]
    assert 1 == viewer().get("vote", params={"id": "lunch"}).json()["count"]


def test_a_seed_applied_twice_leaves_the_same_faults_without_hits(live: LiveServer, viewer):
    apply(live, faults=[REFUSED_VOTES, LOST_ROUND])
    viewer().post("vote", json={"value": 1})
    assert [1, 0] == [each["hits"] for each in faults(live)]

    apply(live, faults=[REFUSED_VOTES, LOST_ROUND])

    assert [("seed-1", 0), ("lost", 0)] == [(each["id"], each["hits"]) for each in faults(live)]


def test_other_faults_stay_when_a_seed_is_applied_or_refused(live: LiveServer):
    with Client(base_url=live.url) as client:
        client.post("/_emulator/faults", json=LOST_ROUND | {"id": "mine"}).raise_for_status()

    apply(live, faults=[REFUSED_VOTES])
    apply(live)
    votes = {"faults": [LOST_ROUND], "polls": [{"id": "lunch", "votes": {"U1": 900}}]}
    for refused in (votes, {"faults": [REFUSED_VOTES] * 100}):
        assert details(live, PLACE | refused)

    assert ["mine", "seed-1"] == [each["id"] for each in faults(live)]


def test_a_seeded_fault_lasts_by_the_clock_of_the_seed(live: LiveServer):
    apply(live, clock={"at": CHRISTMAS, "frozen": True}, faults=[LOST_ROUND])

    assert CHRISTMAS_MS + 10_000 == faults(live)[0]["ends_at"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"match": "POST /v1/e/vot"}, "faults[1].match"),
        ({"effect": "lose"}, "faults[1].effect"),
        ({"status": "503"}, "faults[1].status"),
        ({"colour": 1}, "faults[1]"),
        *(({"id": each}, "faults[1].id") for each in ("lost", "a b", None, 0, {})),
    ],
)
def test_a_wrong_fault_refuses_the_whole_seed(live: LiveServer, wrong: dict[str, Any], field: str):
    before = records(live)
    seed = PLACE | {"faults": [LOST_ROUND, REFUSED_VOTES | wrong], "polls": [{"id": "lunch", "votes": {"U1": 0}}]}

    (found,) = details(live, seed)

    assert field == found.partition(": ")[0], found
    assert (before, []) == (records(live), faults(live))


@pytest.mark.slow
def test_a_service_on_redis_takes_no_seed_with_faults(tmp_path: Path):
    with RedisServer(tmp_path) as redis, live_server(Settings(data=redis.url())) as live:
        apply(live)
        with Client(base_url=live.url) as client:
            answer = client.put("/_emulator/seed", json=PLACE | {"faults": [LOST_ROUND]})

    assert (409, "No faults") == (answer.status_code, answer.json()["reason"])

"""The options of a fault, and the members of the API that they become."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.contract import faults
from emulator.core.faults import BROADCAST, CONNECT, MESSAGE, REQUEST
from extcli.faults import api_members, delay_members, option_problems

VOTE = "POST /v1/e/vote"


def of(**options: Any) -> dict[str, Any]:
    return {"match": VOTE, **options}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (of(status=503), {"effect": "status", "status": 503}),
        (of(status=503, retry_after=1, times=3), {"effect": "status", "status": 503, "retry_after": 1, "times": 3}),
        (of(delay="200ms"), {"effect": "delay", "delay": 200}),
        (of(delay="200ms..2s", seed=7), {"effect": "delay", "delay": 200, "delay_max": 2000, "seed": 7}),
        (of(drop=True), {"effect": "drop"}),
        (of(reset=True), {"effect": "reset"}),
        (of(truncate=50), {"effect": "truncate", "bytes": 50}),
        (of(stall=True), {"effect": "stall"}),
        (of(drop=True, times=5, share=0.1, seed=3), {"effect": "drop", "times": 5, "share": 0.1, "seed": 3}),
        (of(drop=True, **{"for": "1m30s"}), {"effect": "drop", "lasts": 90_000}),
        (
            of(drop=True, id="a", role="viewer", channel="1", user="U1", client_id="x"),
            {"effect": "drop", "id": "a", "role": "viewer", "channel": "1", "user": "U1", "client_id": "x"},
        ),
    ],
    ids=str,
)
def test_options_become_members_of_the_api(options: dict[str, Any], expected: dict[str, Any]):
    assert [] == list(option_problems(options, str))
    assert {"match": VOTE, **expected} == api_members(options)


def test_a_close_code_is_a_member_of_its_own():
    options = {"match": "SOCKET set state", "close": 1012}

    assert [] == list(option_problems(options, str))
    assert {"match": "SOCKET set state", "effect": "close", "code": 1012} == api_members(options)


VALUES = {"status": 503, "delay": "1s", "truncate": 5, "close": 1012}
MATCHES = {REQUEST: VOTE, MESSAGE: "SOCKET set state", CONNECT: "SOCKET connect", BROADCAST: "BROADCAST *"}


@pytest.mark.parametrize("kind", MATCHES)
def test_an_effect_or_condition_is_allowed_exactly_if_the_service_allows_it(kind: str):
    effects = [
        name
        for name in faults.EFFECTS
        if not list(option_problems({"match": MATCHES[kind], name: VALUES.get(name, True)}, str))
    ]
    conditions = [
        name
        for name in faults.MATCHES[BROADCAST].conditions
        if not list(option_problems({"match": MATCHES[kind], "delay": "1s", name: "x"}, str))
    ]

    assert (list(faults.MATCHES[kind].effects), list(faults.MATCHES[kind].conditions)) == (effects, conditions)


@pytest.mark.parametrize("effect", ["lose", "double", "reorder"])
def test_an_event_alone_means_its_broadcasts(effect: str):
    options = {"event": "round over", effect: True}

    assert [] == list(option_problems(options, str))
    assert {"match": "BROADCAST round over", "effect": effect} == api_members(options)


def test_an_event_next_to_a_match_is_a_condition():
    assert {"match": "BROADCAST *", "event": "e", "effect": "lose"} == api_members(
        {"match": "BROADCAST *", "event": "e", "lose": True}
    )


@pytest.mark.parametrize(
    ("options", "blamed"),
    [
        (of(), ""),
        (of(status=503, drop=True), "drop"),
        (of(lose=True, double=True), "double"),
        (of(drop=True, retry_after=1), "retry_after"),
        (of(drop=True, seed=1), "seed"),
        (of(delay="1s", seed=1), "seed"),
        (of(match="SOCKET set state", close=1005), "close"),
        ({"event": "news", "drop": True}, "drop"),
        ({"drop": True}, "match"),
        (of(delay="1"), "delay"),
        (of(delay="2s..1s"), "delay"),
        (of(delay="1s.."), "delay"),
        (of(drop=True, **{"for": "soon"}), "for"),
    ],
    ids=str,
)
def test_a_wrong_combination_names_the_option_to_blame(options: dict[str, Any], blamed: str):
    assert [blamed] == [name for name, _ in option_problems(options, str)]


def test_a_range_of_equal_delays_is_valid():
    assert {"delay": 5, "delay_max": 5} == delay_members("5ms..5ms")

"""The rules of faults: what a match means, which members go together, and the choice by conditions."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.control.faults import MatchTargets, checked_pattern, parse_match
from emulator.core.callers import Caller, Role
from emulator.core.errors import BadRequest
from emulator.core.faults import BROADCAST, CONNECT, MESSAGE, REQUEST, Fault, FaultSubject, meets_conditions

KNOWN = MatchTargets(
    [("GET", "/v1/e/vote"), ("POST", "/v1/e/vote"), ("GET", "/v1/e/all_config")],
    [("set", "state"), ("get", "state"), ("get", "poll"), ("broadcast", ""), ("authenticate", "")],
)
CALLER = Caller("ext", Role.VIEWER, "777", "5551", "U5551")


def attempt(kind: str, name: str, target: str = "", **more: Any) -> FaultSubject:
    return FaultSubject(kind, name, target, CALLER, "ext", "777")._replace(**more)


@pytest.mark.parametrize(
    ("match", "matched", "spared"),
    [
        ("GET /v1/e/vote", attempt(REQUEST, "GET", "/v1/e/vote"), attempt(REQUEST, "POST", "/v1/e/vote")),
        ("* /v1/e/vote", attempt(REQUEST, "POST", "/v1/e/vote"), attempt(REQUEST, "GET", "/v1/e/all_config")),
        ("get /v1/e/config", attempt(REQUEST, "GET", "/v1/e/all_config"), attempt(REQUEST, "GET", "/v1/e/vote")),
        ("GET /v1/e/v*", attempt(REQUEST, "GET", "/v1/e/vote"), attempt(REQUEST, "GET", "/v1/e/all_config")),
        ("* *", attempt(REQUEST, "GET", "/v1/e/vote"), attempt(MESSAGE, "get", "state")),
        ("SOCKET set state", attempt(MESSAGE, "set", "state"), attempt(MESSAGE, "get", "state")),
        ("SOCKET get *", attempt(MESSAGE, "get", "poll"), attempt(MESSAGE, "set", "state")),
        ("SOCKET get", attempt(MESSAGE, "get", "poll"), attempt(MESSAGE, "set", "state")),
        ("SOCKET * state", attempt(MESSAGE, "set", "state"), attempt(MESSAGE, "get", "poll")),
        ("SOCKET subscribe news", attempt(MESSAGE, "subscribe", "news"), attempt(MESSAGE, "unsubscribe", "news")),
        ("SOCKET *", attempt(MESSAGE, "broadcast"), attempt(CONNECT, "")),
        ("SOCKET connect", attempt(CONNECT, ""), attempt(MESSAGE, "get", "state")),
        ("BROADCAST *", attempt(BROADCAST, "any event"), attempt(REQUEST, "GET", "/v1/e/vote")),
        ("BROADCAST game_*", attempt(BROADCAST, "game_start"), attempt(BROADCAST, "game")),
        ("BROADCAST game start", attempt(BROADCAST, "game start"), attempt(BROADCAST, "game")),
    ],
)
def test_a_match_selects_attempts(match: str, matched: FaultSubject, spared: FaultSubject):
    pattern = parse_match(match, KNOWN)

    assert (True, False) == (pattern.matches(matched), pattern.matches(spared))


@pytest.mark.parametrize(
    ("fault", "detail"),
    [
        ({"match": ""}, "match: is missing: a pattern such as"),
        ({"match": "/v1/e/vote"}, "match: '/v1/e/vote' is not a method and a path, or a pattern with SOCKET"),
        ({"match": "POST /v1/e/vot"}, "not an endpoint of the service; did you mean POST /v1/e/vote or GET /v1/e/vote"),
        ({"match": "GET /nothing*"}, "match: 'GET /nothing*' is not an endpoint of the service"),
        ({"match": "GET /_emulator/clock"}, "match: 'GET /_emulator/clock' is not a path below /v1/e/"),
        ({"match": "SOCKET"}, "match: 'SOCKET' is not 'SOCKET <action> <target>' or 'SOCKET connect'"),
        ({"match": "SOCKET set stat"}, "is not a message of the service; did you mean SOCKET set state"),
        ({"match": "BROADCAST"}, "match: 'BROADCAST' is not BROADCAST followed by an event or '*'"),
        ({"match": f"BROADCAST {'x' * 247}"}, "match: has 257 characters; the limit is 256"),
        ({"effect": "explode"}, "effect: 'explode' is not one of status, delay, drop, reset, truncate, stall, close"),
        ({"effect": "close"}, "effect: 'close' is not one of status, delay, drop, reset, truncate, stall: the effects"),
        ({"match": "SOCKET set state", "effect": "truncate"}, "the effects for messages of games such as 'SOCKET set"),
        ({"match": "BROADCAST *", "effect": "status"}, "'status' is not one of delay, lose, double, reorder"),
        ({"effect": "delay"}, "delay: is missing: the effect 'delay' needs a delay of 0 to 600000 ms"),
        ({"effect": "delay", "delay": 5, "delay_max": 4}, "delay_max: 4 is not at least 5, the value of delay"),
        ({"effect": "delay", "delay": 600_001}, "delay: 600001 is not within 0 to 600000"),
        ({"status": 503}, "status: belongs to the effect 'status', not to 'drop'"),
        ({"effect": "status", "status": 200}, "status: 200 is not within 400 to 599"),
        ({"effect": "status", "retry_after": -1}, "retry_after: -1 is not within 0 to 86400"),
        ({"match": "SOCKET *", "effect": "close", "code": 1005}, "code: 1005 is not within 1000 to 1003"),
        ({"times": 0}, "times: 0 is not within 1 to 1000000000"),
        ({"share": 0}, "share: 0 is not above 0 and at most 1"),
        ({"lasts": 0}, "lasts: 0 is not within 1 to"),
        ({"id": "f 1"}, "id: 'f 1' is not 1 to 64 letters, digits, '-' and '_'"),
        ({"role": "boss"}, "role: 'boss' is not one of viewer, broadcaster, admin, backend"),
        ({"event": "news"}, "event: must be absent with 'POST /v1/e/vote'; requests have only the conditions role, ch"),
    ],
)
def test_an_invalid_fault_is_refused_and_the_member_named(fault: dict[str, Any], detail: str):
    with pytest.raises(BadRequest) as refused:
        checked_pattern(Fault(**{"match": "POST /v1/e/vote", "effect": "drop"} | fault), KNOWN)

    assert detail in refused.value.detail


@pytest.mark.parametrize(
    "members", [{"user": "x" * 256}, {"share": 1}, {"effect": "delay", "delay": 5, "delay_max": 5}]
)
def test_members_at_their_limits_are_valid(members: dict[str, Any]):
    fault = Fault(**{"match": "POST /v1/e/vote", "effect": "drop"} | members)

    assert checked_pattern(fault, KNOWN).matches(attempt(REQUEST, "POST", "/v1/e/vote"))


@pytest.mark.parametrize(
    ("conditions", "changed"),
    [
        ({"role": "viewer"}, {"caller": None}),
        ({"user": "5551"}, {"caller": None}),
        ({"user": "U5551"}, {"caller": Caller("ext", Role.VIEWER, "777", "5552", "U5552")}),
        ({"channel": "777"}, {"channel": None}),
        ({"client_id": "ext"}, {"client_id": "other"}),
        ({"event": "news"}, {"name": "other"}),
    ],
)
def test_all_conditions_of_a_fault_must_be_met(conditions: dict[str, str], changed: dict[str, Any]):
    fault, news = Fault("BROADCAST *", "lose", **conditions), attempt(BROADCAST, "news")

    assert (True, False) == (meets_conditions(fault, news), meets_conditions(fault, news._replace(**changed)))

"""`extcli doctor`: what the responses of a service mean."""

from __future__ import annotations

import pytest

from extcli.doctor import service as rules
from extcli.doctor.service import EmulatorClock, PollAge, Status

OK, NOTE, FAIL, SKIPPED = Status.OK, Status.NOTE, Status.FAIL, Status.SKIPPED
NOW = 1_800_000_000_000
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000


@pytest.mark.parametrize(
    ("date", "before", "after", "status"),
    [
        (NOW, NOW, NOW + 20, OK),
        (NOW, NOW + 900, NOW + 950, OK),  # `Date` is cut to seconds
        (NOW + 2_000, NOW, NOW, OK),
        (NOW + 3_000, NOW, NOW, FAIL),
        (NOW - 3_000, NOW, NOW, OK),  # the end of that second is 2 s ago
        (NOW - 4_000, NOW, NOW, FAIL),
        (NOW + 9_000, NOW, NOW + 9_000, OK),  # a response that took nine seconds
        (None, NOW, NOW, SKIPPED),
    ],
)
def test_a_clock_skew_above_two_seconds_fails(date, before, after, status):
    assert status == rules.clock(date, before, after, None).status


def test_a_moved_clock_does_not_hide_a_skew():
    assert FAIL is rules.clock(NOW + HOUR, NOW, NOW, EmulatorClock(NOW, 5, False)).status


@pytest.mark.parametrize(("length", "status"), [(0, FAIL), (31, FAIL), (32, OK), (64, OK)])
def test_a_secret_has_at_least_32_bytes(length, status):
    assert status is rules.secret("EXTCLI_SECRET", b"x" * length).status


HS256 = {"alg": "HS256"}
IN_A_MINUTE = (NOW + MINUTE) // SECOND


@pytest.mark.parametrize(
    ("claims", "in_production", "in_sandbox"),
    [
        ({"exp": IN_A_MINUTE, "role": "viewer"}, OK, OK),
        ({"exp": IN_A_MINUTE, "allowed_stage": "sandbox"}, FAIL, OK),
        ({"exp": IN_A_MINUTE, "allowed_stage": "production"}, OK, OK),
        ({"exp": NOW // SECOND}, FAIL, FAIL),
        ({"exp": IN_A_MINUTE, "nbf": IN_A_MINUTE}, FAIL, FAIL),
        ({"exp": IN_A_MINUTE, "use": "refresh"}, FAIL, FAIL),
        ({"role": "viewer"}, FAIL, OK),
    ],
)
def test_a_token_is_judged_by_its_claims(claims, in_production, in_sandbox):
    for production, status in ((True, in_production), (False, in_sandbox)):
        assert status is rules.token(HS256, claims, origin="it", now=NOW, production=production).status


def test_a_token_with_another_algorithm_fails():
    found = rules.token({"alg": "none"}, {"exp": IN_A_MINUTE}, origin="it", now=NOW, production=False)

    assert (FAIL, True) == (found.status, "HS256" in found.meaning)


def aged(name: str, age: int, channel: str = "1001") -> PollAge:
    return PollAge(name, channel, 3, NOW - age)


@pytest.mark.parametrize(
    ("found", "named", "status"),
    [
        ([], None, OK),
        ([], "rps", OK),
        ([aged("rps", HOUR)], "rps", OK),
        ([aged("rps", HOUR + 1)], "rps", FAIL),
        ([aged("rps", HOUR + 1), aged("lunch", 0)], None, NOTE),
        ([aged("rps", 5), aged("lunch", 0)], None, OK),
    ],
)
def test_votes_older_than_an_hour_fail_in_the_named_poll_only(found, named, status):
    assert status is rules.polls(found, now=NOW, named=named).status

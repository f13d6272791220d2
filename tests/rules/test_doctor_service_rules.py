"""`extcli doctor`: what the responses of a service mean."""

from __future__ import annotations

import pytest

from extcli.doctor import service as rules
from extcli.doctor.service import EmulatorClock, PollAge, Status

OK, NOTE, FAIL, SKIPPED = Status.OK, Status.NOTE, Status.FAIL, Status.SKIPPED
NOW = 1_800_000_000_000
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000


@pytest.mark.parametrize(
    ("name", "profile", "marked", "status", "words"),
    [
        ("sandbox", None, False, OK, "accepts any token"),
        ("sandbox", "dev", False, OK, "accepts any token"),
        ("sandbox", "live", True, FAIL, "profile live is marked production"),
        ("production", None, False, OK, "verifies tokens"),
        ("production", "live", True, OK, "verifies tokens"),
        ("production", "live", False, NOTE, "not marked production"),
        (None, "live", True, OK, "a deployment"),
    ],
)
def test_the_environment_matches_the_profile(name, profile, marked, status, words):
    found = rules.environment(name, profile=profile, marked_production=marked)

    assert (status, True) == (found.status, words in found.meaning)


def test_a_sandbox_that_refuses_its_control_api_names_the_option():
    found = rules.environment("sandbox", profile=None, marked_production=False, control_host="extcli")

    assert (NOTE, True) == (found.status, "--control-host extcli" in found.action)


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


def test_the_clock_that_is_ahead_is_named():
    assert "1h ahead of this one" in rules.clock(NOW + HOUR, NOW, NOW, None).meaning
    assert "59m 59s behind this one" in rules.clock(NOW - HOUR, NOW, NOW, None).meaning


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        (EmulatorClock(NOW + 8 * 24 * HOUR, 8 * 24 * HOUR, False), "moved by +8d: no fault"),
        (EmulatorClock(NOW - HOUR, -HOUR, True), "moved by -1h, frozen: no fault"),
        (EmulatorClock(NOW, 0, True), "not moved, frozen: no fault"),
    ],
)
def test_a_moved_clock_of_a_sandbox_is_not_a_fault(clock, words):
    found = rules.clock(NOW, NOW, NOW, clock)

    assert (NOTE, True) == (found.status, words in found.meaning)


def test_a_moved_clock_does_not_hide_a_skew():
    assert FAIL is rules.clock(NOW + HOUR, NOW, NOW, EmulatorClock(NOW, 5, False)).status


@pytest.mark.parametrize(("length", "status"), [(0, FAIL), (31, FAIL), (32, OK), (64, OK)])
def test_a_secret_has_at_least_32_bytes(length, status):
    assert status is rules.secret("EXTCLI_SECRET", b"x" * length).status


def test_a_secret_that_others_can_read_is_a_note():
    found = rules.secret("file", b"x" * 32, warning="other users can read file: chmod 600 file")

    assert (NOTE, "other users can read file", "chmod 600 file") == (found.status, found.meaning, found.action)


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


def test_the_oldest_of_many_old_polls_are_named_with_how_to_delete_one():
    found = rules.polls([aged(f"p{hours}", hours * HOUR) for hours in range(2, 8)], now=NOW, named=None)

    assert "p7 (7h), p6 (6h), p5 (5h) and 3 more" in found.meaning
    assert "`extcli vote rm p7 --channel 1001`" in found.action


def test_a_poll_of_no_channel_is_deleted_without_one():
    found = rules.polls([aged("global-rps", 2 * HOUR, channel="")], now=NOW, named=None)

    assert "`extcli vote rm global-rps`" in found.action

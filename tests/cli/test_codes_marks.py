"""`extcli codes mark-from-poll` and `mark-from-list`: which users get how many codes (rulings C3, C4, C8)."""

from __future__ import annotations

import re

import pytest

from support.program import http_response

SECOND = 1_000


@pytest.fixture(autouse=True)
def sets(backend):
    """Upload ten codes at each of the indices 0, 1 and 3."""
    codes = [[f"{name}{number}" for number in range(10)] for name in "ABD"]
    backend.put("codes", json={"codes": codes, "names": ["A", "B", "D"], "indices": [0, 1, 3]}).raise_for_status()


@pytest.fixture
def mark(extcli):
    return lambda *args, **settings: extcli("codes", *args, **settings)


@pytest.fixture
def eligible(extcli):
    """Return how many codes of each of the sets 0 to 3 a user may redeem."""

    def read(user: str) -> list[int]:
        return [int(count) for _, count in extcli("codes", "eligible", "--as", f"viewer:{user}").rows]

    return read


def test_users_on_the_command_line_are_marked(mark, eligible):
    for newly in (2, 0):
        result = mark("mark-from-list", "U1", "U2", "--prize", "0", "--prize", "3", "--prize", "3", exits=0)
        assert ("", f"2 users sent; {newly} newly marked\n") == (result.stdout, result.stderr)

    assert [[1, 0, 0, 2], [1, 0, 0, 2], [0, 0, 0, 0]] == [eligible(user) for user in ("U1", "U2", "U3")]


@pytest.mark.parametrize(
    ("limits", "granted"),
    [
        ((), [2, 1, 0, 0]),
        (("1",), [1, 1, 0, 0]),
        (("0=1",), [1, 1, 0, 0]),
        (("0=2", "1=0"), [2, 0, 0, 0]),
    ],
)
def test_a_limit_applies_to_every_prize_or_to_one(mark, eligible, limits, granted):
    args = ("--prize", "0", "--prize", "1", "--prize", "0")

    assert 0 == mark("mark-from-list", "U1", *args, *[f"--limit={limit}" for limit in limits]).exit_code

    assert granted == eligible("U1")


@pytest.mark.parametrize(
    ("command", "answers"),
    [
        ("mark-from-list U1 U2", [http_response("200 OK")]),
        ("mark-from-poll quiz --correct 2 --cutoff 1000000000000", [http_response("200 OK", extcli_marked="3")]),
    ],
    ids=["no count", "the marked only"],
)
def test_a_deployment_that_does_not_count_marks_as_well(mark, answering, command, answers):
    there = ("--url", answering(*answers))

    mark(*command.split(), "--prize", "0", *there, env={"EXTCLI_TOKEN": "a.b.c"}, exits=0)


# From a poll


def test_the_default_cutoff_is_the_service_s_time(extcli, mark, eligible, live):
    """This machine's time would be a year too early."""
    live.advance(365 * 24 * 3600 * SECOND)
    extcli("codes", "upload", "--set", "Z=-", "--index", "1", input="Z1\n")
    extcli("vote", "cast", "quiz", "--value", "2")

    assert 0 == mark("mark-from-poll", "quiz", "--correct", "2", "--prize", "1").exit_code

    assert 1 == eligible("U1")[1]


@pytest.mark.parametrize(
    ("typed", "unit", "sent"),
    [
        ("1893456060001", (), 1_893_456_061),
        ("2030-01-01T00:01:00.999Z", (), 1_893_456_061),
        ("1893456060", ("--cutoff-unit", "s"), 1_893_456_060),
        ("1893456060001", ("--cutoff-unit", "ms"), 1_893_456_060_001),
        ("1971-01-01T00:00:00Z", ("--cutoff-unit", "ms"), 31_536_000),
    ],
)
def test_a_cutoff_is_sent_in_whole_seconds_rounded_up_or_in_ms(mark, extcli, typed, unit, sent):
    extcli("codes", "upload", "--set", "Z=-", input="Z1\n")
    arguments = ("quiz", "--correct", "2", "--prize", "0", "--cutoff", typed, *unit, "-v")

    assert f'"cutoff_timestamp":{sent}}}' in mark("mark-from-poll", *arguments, exits=0).stderr


# From a file


def test_errors_are_named_by_line_and_no_user_is_marked(mark, eligible, file):
    result = mark("mark-from-list", "--from", file(b"U1\n" + b"x" * 257 + b"\n\xff\n"), "--prize", "0", "-v", exits=2)

    assert ["2", "3"] == re.findall(r"file\.txt:(\d+): ", result.stderr)
    assert ">" not in result.stderr
    assert 0 == eligible("U1")[0]

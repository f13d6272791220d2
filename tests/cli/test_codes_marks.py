"""`extcli codes mark-from-poll` and `mark-from-list`: which users get how many codes (rulings C3, C4, C8)."""

from __future__ import annotations

import gzip
import re

import pytest

from support.program import SECRET_BASE64, http_response

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
        assert ("", f"2 users sent, {newly} newly marked\n") == (result.stdout, result.stderr)

    assert [[1, 0, 0, 2], [1, 0, 0, 2], [0, 0, 0, 0]] == [eligible(user) for user in ("U1", "U2", "U3")]


@pytest.mark.parametrize(
    ("limits", "granted"),
    [
        ((), [2, 1, 0, 0]),
        (("1",), [1, 1, 0, 0]),
        (("9",), [2, 1, 0, 0]),
        (("0=1",), [1, 1, 0, 0]),
        (("0", "0=2"), [2, 0, 0, 0]),
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
        (
            "mark-from-poll quiz --correct 2 --cutoff 1000000000000",
            [http_response(each) for each in ("200 OK", "404 Not Found")],
        ),
    ],
    ids=["no count", "the marked only", "no vote log"],
)
def test_a_deployment_that_does_not_count_marks_as_well(mark, answering, command, answers):
    there = ("--url", answering(*answers))

    mark(*command.split(), "--prize", "0", *there, env={"EXTCLI_TOKEN": "a.b.c"}, exits=0)


# From a poll


def test_users_with_the_correct_vote_are_marked(extcli, mark, eligible):
    for user, value, channel in (("U1", 2, "5"), ("U2", 1, "5"), ("U3", 2, "5"), ("U4", 2, "6")):
        extcli("vote", "cast", "quiz", "--value", str(value), "--as", f"viewer:{user}", "--channel", channel)

    for newly in (2, 0):
        result = mark("mark-from-poll", "quiz", "--correct", "2", "--prize", "1", "--channel", "5", exits=0)
        assert "" == result.stdout
        assert f"; {newly} newly marked\n" in result.stderr
    assert [1, 0, 1, 0] == [eligible(user)[1] for user in ("U1", "U2", "U3", "U4")]
    assert "no votes" in mark("mark-from-poll", "none", "--correct", "2", "--prize", "1", exits=0).stderr


def test_the_default_cutoff_is_the_service_s_time(extcli, mark, eligible, live):
    """This machine's time would be a year too early."""
    live.advance(365 * 24 * 3600 * SECOND)
    extcli("codes", "upload", "--set", "Z=-", "--index", "1", input="Z1\n")
    extcli("vote", "cast", "quiz", "--value", "2")

    assert 0 == mark("mark-from-poll", "quiz", "--correct", "2", "--prize", "1").exit_code

    assert 1 == eligible("U1")[1]


def test_the_default_cutoff_in_production_is_this_machine_s_time(extcli, production):
    variables = {"EXTCLI_URL": production.url, "EXTCLI_SECRET": SECRET_BASE64}
    extcli("codes", "upload", "--set", "Z=-", input="Z1\n", env=variables)
    extcli("vote", "cast", "quiz", "--value", "2", env=variables)

    extcli("codes", "mark-from-poll", "quiz", "--correct", "2", "--prize", "0", env=variables, exits=0)

    assert [["0", "1"]] == extcli("codes", "eligible", env=variables).rows


@pytest.mark.parametrize("shown", ["{ms}", "{s}", "2030-01-01T00:01:00Z", "1s"])
def test_a_cutoff_is_a_time_in_any_form(extcli, mark, eligible, live, shown):
    cutoff = 1_893_456_060_000  # 2030-01-01T00:01:00Z
    for user, at in (("U1", cutoff - SECOND), ("U2", cutoff), ("U3", cutoff + SECOND)):
        live.set(at)
        extcli("vote", "cast", "quiz", "--value", "2", "--as", f"viewer:{user}")
    extcli("codes", "upload", "--set", "Z=-", input="Z1\n")

    instant = shown.format(ms=cutoff, s=cutoff // SECOND)
    assert 0 == mark("mark-from-poll", "quiz", "--correct", "2", "--prize", "0", "--cutoff", instant).exit_code

    assert [1, 1, 0] == [eligible(user)[0] for user in ("U1", "U2", "U3")]


@pytest.mark.parametrize(
    ("typed", "unit", "sent"),
    [
        ("1893456060001", (), 1_893_456_061),
        ("1893456060000", (), 1_893_456_060),
        ("2030-01-01T00:01:00.999Z", (), 1_893_456_061),
        ("1893456060", ("--cutoff-unit", "s"), 1_893_456_060),
        ("1893456060001", ("--cutoff-unit", "ms"), 1_893_456_060_001),
        ("1971-01-01T00:00:00.5Z", (), 31_536_001),
        ("1971-01-01T00:00:00Z", ("--cutoff-unit", "ms"), 31_536_000),
    ],
)
def test_a_cutoff_is_sent_in_whole_seconds_rounded_up_or_in_ms(mark, extcli, typed, unit, sent):
    extcli("codes", "upload", "--set", "Z=-", input="Z1\n")
    arguments = ("quiz", "--correct", "2", "--prize", "0", "--cutoff", typed, *unit, "-v")

    assert f'"cutoff_timestamp":{sent}}}' in mark("mark-from-poll", *arguments, exits=0).stderr


# From a file


@pytest.mark.parametrize(
    ("name", "content", "args"),
    [
        ("users.txt", "17\r\n\r\n 18 \r\n", ()),
        ("users.csv", "user,value\n17,4\n18,5\n", ("--column", "user")),
        ("users.csv", "user\n17\n18\n", ()),
        ("users.json", '["17", 18]', ()),
        ("users.txt", gzip.compress(b"17\n18\n", mtime=0), ()),
        ("votes.jsonl", '{"identifier":"17"}\n{"identifier":"18"}\n', ("--column", "identifier")),
    ],
)
def test_users_can_come_from_a_file_of_any_format(mark, eligible, file, name, content, args):
    mark("mark-from-list", "--from", file(content, name), *args, "--prize", "0", exits=0)

    assert [1, 1, 0] == [eligible(user)[0] for user in ("17", "18", "19")]


@pytest.mark.long
def test_a_million_users_are_marked(mark, eligible, lines):
    users = lines(*[f"{number:07d}" for number in range(1_000_000)])

    mark("mark-from-list", "--from", users, "--prize", "0", tty=True, env={"TERM": "xterm-256color"}, exits=0)

    assert [1, 1, 0] == [eligible(user)[0] for user in ("0000000", "0999999", "1000000")]


def test_errors_are_named_by_line_and_no_user_is_marked(mark, eligible, file):
    result = mark("mark-from-list", "--from", file(b"U1\n" + b"x" * 257 + b"\n\xff\n"), "--prize", "0", "-v", exits=2)

    assert ["2", "3"] == re.findall(r"file\.txt:(\d+): ", result.stderr)
    assert ">" not in result.stderr
    assert 0 == eligible("U1")[0]

"""`extcli codes mark-from-poll` and `mark-from-list`: which users get how many codes (rulings C3, C4)."""

from __future__ import annotations

import gzip

import pytest

from extcli.output import progress
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
    result = mark("mark-from-list", "U1", "U2", "--prize", "0", "--prize", "3", "--prize", "3")

    assert (0, "", "2 users sent, 2 newly marked\n") == (result.exit_code, result.stdout, result.stderr)
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


def test_a_deployment_that_does_not_count_gets_a_report_of_the_users_sent(mark, answering):
    url = answering(http_response("200 OK"))

    result = mark("mark-from-list", "U1", "U2", "--prize", "0", "--url", url, env={"EXTCLI_TOKEN": "a.b.c"})

    assert (0, "sent 2 users; the service does not say how many it marked\n") == (result.exit_code, result.stderr)


# From a poll


def test_users_with_the_correct_vote_are_marked(extcli, mark, eligible):
    for user, value in (("U1", 2), ("U2", 1), ("U3", 2)):
        extcli("vote", "cast", "quiz", "--value", str(value), "--as", f"viewer:{user}")

    result = mark("mark-from-poll", "quiz", "--correct", "2", "--prize", "1", "-o", "table")

    assert (0, "") == (result.exit_code, result.stdout)
    assert result.stderr.startswith("2 users voted 2 in poll quiz by 20")
    assert result.stderr.endswith("; 2 newly marked\n")
    assert [1, 0, 1] == [eligible(user)[1] for user in ("U1", "U2", "U3")]


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


def test_a_cutoff_before_1973_excludes_every_later_vote(extcli, mark, eligible):
    """The service reads numbers below 1e11 as Unix seconds."""
    extcli("vote", "cast", "quiz", "--value", "2")
    extcli("codes", "upload", "--set", "Z=-", input="Z1\n")

    arguments = ("quiz", "--correct", "2", "--prize", "0", "--cutoff", "1971-01-01T00:00:00Z")
    assert 0 == mark("mark-from-poll", *arguments).exit_code

    assert 0 == eligible("U1")[0]


def test_a_poll_without_votes_is_reported(extcli, mark):
    arguments = ("mark-from-poll", "quiz", "--correct", "2", "--prize", "0")

    result = mark(*arguments)
    assert (0, "poll quiz has no votes; no user was marked\n") == (result.exit_code, result.stderr)

    extcli("vote", "cast", "quiz", "--value", "3", "--channel", "5")
    result = mark(*arguments)
    assert (0, True) == (result.exit_code, result.stderr.startswith("0 users voted 2 in poll quiz by "))


def test_voters_who_were_marked_before_are_reported_apart(extcli, mark):
    arguments = ("mark-from-poll", "quiz", "--correct", "1", "--prize", "0")
    extcli("vote", "cast", "quiz", "--value", "1", "--as", "viewer:U1")
    mark(*arguments)
    extcli("vote", "cast", "quiz", "--value", "1", "--as", "viewer:U2", "--channel", "5")

    report = mark(*arguments).stderr

    assert report.startswith("2 users voted 1 in poll quiz by 20")
    assert report.endswith("; 1 newly marked\n")


def test_a_deployment_that_counts_only_the_marked_users_gets_that_count(mark, answering):
    url = answering(http_response("200 OK", extcli_marked="3"))
    arguments = ("--correct", "2", "--prize", "0", "--cutoff", "1000000000000", "--url", url)

    result = mark("mark-from-poll", "quiz", *arguments, env={"EXTCLI_TOKEN": "a.b.c"})

    assert "marked 3 users who voted 2 in poll quiz by 2001-09-09 01:46:40Z\n" == result.stderr


def test_a_missing_vote_log_does_not_fail_a_mark(mark, answering):
    url = answering(http_response("200 OK"), http_response("404 Not Found"))
    arguments = ("--correct", "2", "--prize", "0", "--cutoff", "1000000000000", "--url", url)

    result = mark("mark-from-poll", "quiz", *arguments, env={"EXTCLI_TOKEN": "a.b.c"}, exits=0)

    assert "marked all users who voted 2 in poll quiz by 2001-09-09 01:46:40Z\n" == result.stderr


def test_channel_limits_the_votes_to_one_channel(extcli, mark, eligible):
    for channel, user in (("5", "U1"), ("6", "U2")):
        extcli("vote", "cast", "quiz", "--value", "2", "--channel", channel, "--as", f"viewer:{user}")

    mark("mark-from-poll", "quiz", "--correct", "2", "--prize", "0", "--channel", "5")

    assert [1, 0] == [eligible(user)[0] for user in ("U1", "U2")]


# From a file


@pytest.mark.parametrize(
    ("name", "content", "args"),
    [
        ("users.txt", "U1\r\n\r\n U2 \r\n", ()),
        ("users.csv", "user,value\nU1,4\nU2,5\n", ("--column", "user")),
        ("users.csv", "user\nU1\nU2\n", ()),
        ("users.json", '["U1", "U2"]', ()),
        ("users.txt", gzip.compress(b"U1\nU2\n", mtime=0), ()),
        ("votes.jsonl", '{"identifier":"U1"}\n{"identifier":"U2"}\n', ("--column", "identifier")),
    ],
)
def test_users_can_come_from_a_file_of_any_format(mark, eligible, file, name, content, args):
    result = mark("mark-from-list", "--from", file(content, name), *args, "--prize", "0")

    assert (0, "") == (result.exit_code, result.stdout)
    assert result.stderr.startswith("2 users sent (")
    assert [1, 1, 0] == [eligible(user)[0] for user in ("U1", "U2", "U3")]


def test_users_can_come_from_a_vote_log(extcli, mark, eligible):
    extcli("vote", "cast", "quiz", "--value", "2")
    log = extcli("vote", "logs", "quiz", "-o", "jsonl").stdout

    args = ("mark-from-list", "--from", "-", "--format", "jsonl", "--column", "identifier", "--prize", "0")

    assert 0 == mark(*args, input=log).exit_code
    assert 1 == eligible("U1")[0]


def test_user_ids_in_json_may_be_numbers(mark, eligible, file):
    assert 0 == mark("mark-from-list", "--from", file("[17, 18]", "u.json"), "--prize", "0").exit_code

    assert 1 == eligible("17")[0]


@pytest.mark.long
def test_a_million_users_are_marked(mark, eligible, lines):
    users = lines(*[f"{number:07d}" for number in range(1_000_000)])

    result = mark("mark-from-list", "--from", users, "--prize", "0")

    assert (0, True) == (result.exit_code, result.stderr.startswith("1,000,000 users sent")), result.stderr
    assert [1, 1, 0] == [eligible(user)[0] for user in ("0000000", "0999999", "1000000")]


def test_errors_are_named_by_line_and_no_user_is_marked(mark, eligible, file):
    result = mark("mark-from-list", "--from", file(b"U1\n" + b"x" * 257 + b"\n\xff\n"), "--prize", "0", "-v", exits=2)

    assert ["2: has 257 characters; an id has 1 to 256", "3: is not UTF-8 text"] == [
        line.partition("file.txt:")[2] for line in result.stderr.splitlines()[1:3]
    ]
    assert ">" not in result.stderr
    assert 0 == eligible("U1")[0]


def test_a_terminal_shows_the_progress_of_long_work(mark, lines, monkeypatch):
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0)
    users = lines(*[f"{number:07d}" for number in range(200_000)])

    result = mark("mark-from-list", "--from", users, "--prize", "0", tty=True, env={"TERM": "xterm-256color"}, exits=0)

    shown = [result.stderr.find(text) for text in ("checking", "sending", "200,000 users sent")]
    assert -1 not in shown
    assert sorted(shown) == shown

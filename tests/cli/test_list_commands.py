"""`extcli vote list`, `rank list` and `accumulate list`."""

from __future__ import annotations

import json

import pytest
from rich.cells import cell_len

from support.profile_files import write_profiles
from support.program import http_response

NOUNS = ("vote", "rank", "accumulate")
every_noun = pytest.mark.parametrize("noun", NOUNS)
MEMBERS = {"vote": "polls", "rank": "rankings", "accumulate": "buffers"}


def add(extcli, noun: str, thing: str, channel: str = "1001") -> None:
    """Vote, answer or add an entry."""
    args = {
        "vote": ("cast", thing, "--value", "1"),
        "rank": ("submit", thing, "--key", "a"),
        "accumulate": ("add", thing, "1"),
    }[noun]
    assert 0 == extcli(noun, *args, "--channel", channel).exit_code


@every_noun
def test_all_channels_are_listed_unless_one_is_chosen(extcli, live, noun):
    live.freeze()
    add(extcli, noun, "a", "2002")
    add(extcli, noun, "b")
    status = ["active"] if noun == "vote" else []
    rows = [["b", "1001", "1", *status, str(live.now())], ["a", "2002", "1", *status, str(live.now())]]

    assert rows == extcli(noun, "list").rows
    assert rows[1:] == extcli(noun, "list", "--channel", "2002").rows
    assert rows[:1] == extcli(noun, "list", "--as", "broadcaster").rows


@every_noun
def test_a_table_shows_the_time_of_the_latest(extcli, live, noun):
    live.set(1_700_000_000_000)
    add(extcli, noun, "lunch")

    [head, row] = extcli(noun, "list", "-o", "table").stdout.splitlines()
    assert "latest (UTC)" in head
    assert ["lunch", "1001", "2023-11-14"] == [row.split()[0], row.split()[1], row.split()[-2]]


@every_noun
def test_an_empty_list_is_reported_as_empty(extcli, noun):
    assert f"no {MEMBERS[noun]}\n" == extcli(noun, "list", "-o", "table").stdout
    assert "" == extcli(noun, "list").stdout


def test_all_pages_are_printed(extcli, live):
    for number in range(120):
        live.client("viewer", user="1", channel="1001").post(f"vote?id=p{number:03}", json={"value": 1})
    expected = [f"p{number:03}" for number in range(120)]

    assert expected == [row[0] for row in extcli("vote", "list").rows]
    assert expected == [each["id"] for each in extcli("vote", "list", "-o", "jsonl").jsonl]
    listed = extcli("vote", "list", "-o", "json").json
    assert (expected, "0") == ([each["id"] for each in listed["polls"]], listed["next"])
    assert expected == [each["id"] for each in extcli("contents", "polls", "-o", "json").json["rows"]]
    table = extcli("vote", "list", "-o", "table").stdout.splitlines()
    assert ["id", *expected] == [line.split()[0] for line in table]


def test_a_poll_shows_its_status(extcli):
    extcli("vote", "define", "soon", "--prompt", "Which?", "--starts-in", "1h")

    assert [["soon", "1001", "0", "pending", "0"]] == extcli("vote", "list").rows


@pytest.mark.parametrize("body", ["[]", '{"polls": []}', '{"polls": 1, "next": "0"}', "x"])
def test_an_unexpected_list_is_a_failure_of_the_service(extcli, answering, body):
    url = answering(http_response("200 OK", body))

    assert 5 == extcli("vote", "list", env={"EXTCLI_URL": url, "EXTCLI_TOKEN": "a.b.c"}).exit_code


# `extcli contents` and `extcli clock next`


DAY = 86_400_000


def vote(extcli, poll: str, *options: str) -> None:
    assert 0 == extcli("vote", "cast", poll, "--value", "1", "--channel", "777", *options).exit_code


def test_contents_counts_the_emulators_records(extcli):
    vote(extcli, "lunch")

    counts = dict(extcli("contents").rows)
    assert ("1", "0") == (counts["polls"], counts["pins"])
    assert ["polls", "1"] == extcli("contents", "-o", "table").stdout.splitlines()[0].split()


def test_polls_of_all_extensions_are_listed(extcli, live):
    now = live.freeze()
    vote(extcli, "lunch")
    vote(extcli, "dinner", "--client-id", "other-extension")

    lunch = ["lunch", "my-extension", "777", "1", "active", str(now), str(now + 7 * DAY)]
    dinner = ["dinner", "other-extension", *lunch[2:]]
    assert [lunch, dinner] == extcli("contents", "polls").rows
    assert [dinner] == extcli("contents", "polls", "--client-id", "other-extension").rows
    assert [dinner] == extcli("contents", "polls", "--search", "inn").rows
    assert [] == extcli("contents", "polls", "--channel", "888").rows


def test_all_pages_of_a_list_are_printed(extcli, live):
    viewer = live.client("viewer", user="1", channel="777")
    for number in range(210):
        viewer.post(f"json_store?id=j{number}", json={})
        viewer.post(f"vote?id=p{number}", json={"value": 1})

    assert 210 == len(extcli("contents", "polls").rows)


def test_a_table_shows_the_columns_of_its_kind(extcli):
    vote(extcli, "lunch")

    head, row = extcli("contents", "polls", "-o", "table").stdout.splitlines()
    assert ["id", "client", "id", "channel", "votes", "status", "expires"] == head.split()[:7]
    assert ["lunch", "my-extension", "777", "1", "active"] == row.split()[:5]
    assert "no json stores\n" == extcli("contents", "json-stores", "-o", "table").stdout


def test_clock_next_lists_the_records_that_expire_next(extcli, live):
    now = live.freeze()
    vote(extcli, "lunch")

    assert [[str(now + 7 * DAY), "poll", "lunch", "my-extension", "777"]] == extcli("clock", "next").rows
    head, row = extcli("clock", "next", "-o", "table").stdout.splitlines()
    assert "expires (UTC)" in head
    assert "7d" in row


def test_the_table_of_coming_expiries_breaks_no_client_id_in_80_columns(extcli):
    extcli("vote", "cast", "a-poll-with-a-long-name-of-many-words", "--value", "1", "--channel", "123456789")
    table = extcli("clock", "next", "-o", "table", env={"COLUMNS": "80"}).stdout

    assert "  my-extension  123456789" in table
    assert 80 >= max(map(len, table.splitlines()))


def test_a_jump_advances_the_clock_to_the_next_expiry(extcli, live):
    now = live.freeze()
    vote(extcli, "lunch")

    assert [["poll", "lunch", str(now + 7 * DAY)]] == extcli("clock", "next", "--jump").rows
    assert now + 7 * DAY == live.now()


def test_a_jump_exits_7_if_nothing_will_expire(extcli, live):
    now = live.freeze()

    result = extcli("clock", "next", "--jump", exits=7)
    assert "nothing will expire" in result.stderr
    assert now == live.now()
    assert "nothing will expire\n" == extcli("clock", "next", "-o", "table").stdout


# Every table fits a terminal of 80 and of 200 columns, and at 40 columns nothing breaks. The data have long names


LONG = "a-name-" + "x" * 57
"""As long as a poll's id may be."""
TEXTS = [
    "Which of the many teams that play tonight will win? " * 2,
    "日本語のとても長い文章です。" * 3,
    "👍 " * 25,
    "n" * 120,
]
"""As long as an option may be."""

FILLED_BY = [
    ("vote", "define", LONG, "--prompt", TEXTS[0], *(f"--option={each}" for each in TEXTS), "--ends-in", "2d"),
    *(("vote", "cast", LONG, "--value", str(value), "--as", f"viewer:{LONG}{value}") for value in (0, 1, 2)),
    ("vote", "cast", "short", "--value=-5", "--channel", "1002"),
    *(("rank", "submit", LONG, f"--key={text}", "--as", f"viewer:U{at}") for at, text in enumerate(TEXTS)),
    *(("accumulate", "add", LONG, json.dumps({"text": text})) for text in TEXTS),
    ("state", "set", "channel", json.dumps({LONG: TEXTS}), "--yes"),
    ("store-config", "set", "channel", json.dumps({LONG: TEXTS})),
    ("json-store", "set", LONG, json.dumps({LONG: TEXTS})),
    ("trivia", "define", LONG, f"--name={TEXTS[1]}"),
    ("trivia", "define-option", LONG, "red", f"--name={TEXTS[2]}"),
    ("trivia", "move", LONG, "unlocked"),
    ("trivia", "join"),
    ("bits", "purchase", LONG, "--id", LONG, "--buyer", TEXTS[1][:40]),
    ("codes", "mark-from-list", "U1", "--prize", "0"),
]
TABLES = """
vote get LONG; vote get short --channel 1002; vote list; vote logs LONG; vote config LONG; rank get LONG; rank list
accumulate get LONG; accumulate list; state get channel; state all; store-config get channel; json-store get LONG
trivia list; trivia get LONG; trivia leaderboard; trivia team; bits list; user list; user info; codes list
codes eligible; codes redeemed; link list; clock now; ns list; profile list; profile show LONG
config list --show-origin; extension list; pin status; doctor
"""


@pytest.fixture
def filled(extcli, lines, folder):
    """A service with data of every kind, two profiles and two registered extensions."""
    write_profiles(**{LONG: {"url": f"http://{LONG}.example:8282", "production": True}, "b": {"channel": "1"}})
    upload = ("codes", "upload", "--set", f"{TEXTS[0][:60]}={lines('A-1', 'A-2')}", "--yes")
    for command in (*FILLED_BY[:-1], upload, FILLED_BY[-1], ("extension", "init", "--owner", "7"), ("link", "list")):
        result = extcli(*command)
        assert 0 == result.exit_code, (command, result.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_tables_fit_the_terminal(extcli, filled, columns):
    for command in map(str.strip, TABLES.strip().replace("\n", ";").split(";")):
        result = extcli(*command.replace("LONG", LONG).split(), "-o", "table", env={"COLUMNS": str(columns)})

        assert result.exit_code in (0, 7), (command, result.stderr)
        assert "Traceback" not in result.stderr
        if columns >= 80:
            assert [] == [line for line in result.stdout.splitlines() if cell_len(line) > columns], command


@pytest.mark.parametrize("columns", [80, 200])
def test_a_long_option_leaves_the_numbers_of_a_poll_readable(extcli, filled, columns):
    shown = extcli("vote", "get", LONG, "-o", "table", env={"COLUMNS": str(columns)}).stdout

    assert 3 == shown.count("33.3%")
    assert 3 == shown.count("█████████▍")
    assert "closes at " in shown.splitlines()[-1]

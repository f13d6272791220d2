"""`extcli vote list`, `rank list` and `accumulate list`."""

from __future__ import annotations

import pytest

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
def test_an_empty_list_says_so(extcli, noun):
    assert f"no {MEMBERS[noun]}\n" == extcli(noun, "list", "-o", "table").stdout
    assert "" == extcli(noun, "list").stdout


@every_noun
def test_a_viewer_may_not_list(extcli, noun):
    assert 4 == extcli(noun, "list", "--as", "viewer:U1").exit_code


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

"""`extcli vote list`, `rank list` and `accumulate list`."""

from __future__ import annotations

import pytest

NOUNS = ("vote", "rank", "accumulate")
every_noun = pytest.mark.parametrize("noun", NOUNS)


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


def test_all_pages_are_printed(extcli, live):
    viewer = live.client("viewer", user="1", channel="1001")
    for number in range(120):
        viewer.post(f"vote?id=p{number:03}", json={"value": 1})
    expected = [f"p{number:03}" for number in range(120)]

    for noun in (("vote", "list"), ("contents", "polls")):
        assert expected == [row[0] for row in extcli(*noun).rows]
        assert expected == [each["id"] for each in extcli(*noun, "-o", "jsonl").jsonl]
        assert expected == [line.split()[0] for line in extcli(*noun, "-o", "table").stdout.splitlines()[1:]]
    listed = extcli("vote", "list", "-o", "json").json
    assert (expected, "0") == ([each["id"] for each in listed["polls"]], listed["next"])


# `extcli contents` and `extcli clock next`


DAY = 86_400_000


def vote(extcli, poll: str, *options: str) -> None:
    assert 0 == extcli("vote", "cast", poll, "--value", "1", "--channel", "777", *options).exit_code


def test_contents_counts_the_emulators_records(extcli):
    vote(extcli, "lunch")

    counts = dict(extcli("contents").rows)
    assert ("1", "0") == (counts["polls"], counts["pins"])


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


def test_clock_next_lists_the_records_that_expire_next(extcli, live):
    now = live.freeze()
    vote(extcli, "lunch")

    assert [[str(now + 7 * DAY), "poll", "lunch", "my-extension", "777"]] == extcli("clock", "next").rows


def test_a_jump_advances_the_clock_to_the_next_expiry(extcli, live):
    now = live.freeze()
    extcli("clock", "next", "--jump", exits=7)
    assert now == live.now()
    vote(extcli, "lunch")

    assert [["poll", "lunch", str(now + 7 * DAY)]] == extcli("clock", "next", "--jump").rows
    assert now + 7 * DAY == live.now()

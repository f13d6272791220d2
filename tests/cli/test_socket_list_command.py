"""`extcli socket list`, `close` and `stall`."""

from __future__ import annotations

import pytest

from support.pusher_client import pusher_channel, subscribed_page
from support.service import CHANNEL, CLIENT_ID


@pytest.fixture
def number(extcli, game) -> str:
    """The number of a game that follows the state of its channel."""
    game.data("subscribe", "state", {"topic_id": "channel"})
    return str(extcli("socket", "list").rows[-1][0])


def test_the_list_has_one_row_per_socket(extcli, live, number):
    with subscribed_page(live):
        game, page = extcli("socket", "list").rows[-2:]

    assert [number, "game", CLIENT_ID, "broadcaster", CHANNEL] == game[:5]
    assert ["open", "state:channel", CHANNEL] == game[-3:]
    assert ["page", CLIENT_ID, "", CHANNEL] == page[1:5]
    assert [f"{pusher_channel()} {pusher_channel('all')}", ""] == page[-2:]


@pytest.mark.long
def test_a_table_says_what_each_socket_follows_and_which_is_stalled(extcli, number):
    extcli("socket", "stall", number)

    table = extcli("socket", "list", "-o", "table", env={"COLUMNS": "200"}).stdout

    assert "opened" in table
    assert f"{number} is stalled, and follows state:channel" in table


def test_the_table_shows_all_of_a_socket_in_80_columns(extcli, game):
    for topic in ("extension", "channel"):
        game.data("subscribe", "state", {"topic_id": topic})
    table = extcli("socket", "list", "--channel", CHANNEL, "-o", "table", env={"COLUMNS": "80"}).stdout

    assert "…" not in table
    assert "follows state:channel, state:extension" in table
    assert 80 >= max(map(len, table.splitlines()))


def test_the_list_is_limited_by_client_id_and_channel(extcli, number):
    assert [number] == [row[0] for row in extcli("socket", "list", "--client-id", CLIENT_ID).rows if row[0] == number]
    assert [] == extcli("socket", "list", "--client-id", "another").rows
    assert [] == extcli("socket", "list", "--channel", "4").rows


def test_json_is_the_answer_of_the_service(extcli, number):
    listed = extcli("socket", "list", "-o", "json").json["sockets"]

    assert {"number": int(number), "stalled": False}.items() <= listed[-1].items()
    assert listed == extcli("socket", "list", "-o", "jsonl").jsonl


def test_watch_prints_the_list_again_only_when_it_changes(extcli, number):
    lines = extcli("socket", "list", "--watch", "--timeout", "600ms").jsonl

    assert [int(number)] == [each["sockets"][-1]["number"] for each in lines]


def test_close_ends_a_socket_with_its_code(extcli, game, number):
    assert f"{number}\n" == extcli("socket", "close", number, "--code", "4100", "--reason", "again").stdout

    assert (4100, "again") == (game.close_code(), game.socket.close_reason)


def test_stall_holds_a_socket_until_the_release(extcli, game, number):
    assert f"{number}\n" == extcli("socket", "stall", number).stdout
    assert "stalled" == extcli("socket", "list").rows[-1][-3]

    assert [number] in extcli("socket", "stall", "--all", "--release").rows
    assert game.no_update()


@pytest.mark.parametrize("arguments", [(), ("1", "--all")])
@pytest.mark.parametrize("verb", ["close", "stall"])
def test_one_socket_or_all_must_be_named(extcli, verb, arguments):
    result = extcli("socket", verb, *arguments, exits=2)

    assert "give the number of one socket, or --all" in result.stderr


def test_a_socket_that_is_not_open_exits_4(extcli):
    result = extcli("socket", "close", "999999", exits=4)

    assert "no open socket 999999" in result.stderr


def test_a_dry_run_closes_nothing(extcli, game, number):
    assert "/_emulator/sockets/close" in extcli("socket", "close", number, "--dry-run").stdout

    assert game.no_update()

"""`extcli contents` and `extcli clock next`."""

from __future__ import annotations

DAY = 86_400_000


def vote(extcli, poll: str, *options: str) -> None:
    assert 0 == extcli("vote", "cast", poll, "--value", "1", "--channel", "777", *options).exit_code


def test_what_the_emulator_holds_is_counted(extcli):
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


def test_an_unknown_kind_is_a_usage_error(extcli):
    assert 2 == extcli("contents", "cats").exit_code


def test_the_coming_expiries_are_listed(extcli, live):
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


def test_a_jump_without_a_coming_expiry_exits_7(extcli, live):
    now = live.freeze()

    result = extcli("clock", "next", "--jump", exits=7)
    assert "nothing will expire" in result.stderr
    assert now == live.now()
    assert "nothing will expire\n" == extcli("clock", "next", "-o", "table").stdout

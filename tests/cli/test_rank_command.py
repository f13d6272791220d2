"""`extcli rank`."""

from __future__ import annotations


def test_the_answer_that_was_replaced_is_printed(extcli):
    answers = [extcli("rank", "submit", "colour", "--key", key).rows for key in ("blue", "red")]

    assert [[["accepted", "true"]], [["accepted", "true"], ["original", "blue"]]] == answers


def test_the_most_frequent_answers_come_first(extcli, live):
    for user, key in (("U1", "red"), ("U2", "blue"), ("U3", "blue")):
        extcli("rank", "submit", "--key", key, "--as", f"viewer:{user}", "--channel", "777")
    get = ("rank", "get", "--channel", "777")

    assert [["blue", "2"], ["red", "1"]] == extcli(*get).rows
    assert [["blue", "2"]] == extcli(*get, "--top", "1").rows
    assert f"{live.client('broadcaster', channel='777').get('rank').text}\n" == extcli(*get, "-o", "json").stdout


def test_control_characters_in_answers_are_escaped_and_markup_is_text(extcli):
    extcli("rank", "submit", "--key", "a\tb\nc\\d\x1b[31m\u202e[red]:smile:[/red]")

    assert [["a\\tb\\nc\\d\\x1b[31m\\u202e[red]:smile:[/red]", "1"]] == extcli("rank", "get").rows
    table = extcli("rank", "get", "-o", "table").stdout
    assert (False, True) == ("\x1b" in table, "[red]:smile:[/red]" in table)


def test_a_deleted_ranking_is_empty(extcli):
    extcli("rank", "submit", "--key", "blue")

    assert 0 == extcli("rank", "rm").exit_code
    assert "" == extcli("rank", "get").stdout
    assert "no answers yet\n" == extcli("rank", "get", "-o", "table").stdout

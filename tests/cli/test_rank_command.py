"""`extcli rank`."""

from __future__ import annotations


def test_the_answer_that_was_replaced_is_printed(extcli):
    answers = [extcli("rank", "submit", "colour", "--key", key).rows for key in ("blue", "red")]

    assert [[["accepted", "true"]], [["accepted", "true"], ["original", "blue"]]] == answers


def test_the_most_frequent_answers_come_first(extcli):
    for user, key in (("U1", "red"), ("U2", "blue"), ("U3", "blue")):
        extcli("rank", "submit", "--key", key, "--as", f"viewer:{user}")

    assert [["blue", "2"], ["red", "1"]] == extcli("rank", "get").rows
    assert [["blue", "2"]] == extcli("rank", "get", "--top", "1").rows


def test_json_output_is_the_response_of_the_service(extcli, live):
    for user, key in (("U1", "red"), ("U2", "blue")):
        extcli("rank", "submit", "--key", key, "--as", f"viewer:{user}", "--channel", "777")

    body = live.client("broadcaster", channel="777").get("rank").text

    assert f"{body}\n" == extcli("rank", "get", "-o", "json", "--top", "1", "--channel", "777").stdout


def test_control_characters_in_answers_are_escaped(extcli):
    extcli("rank", "submit", "--key", "a\tb\nc\\d\x1b[31m\u202e")

    assert [["a\\tb\\nc\\\\d\\x1b[31m\\u202e", "1"]] == extcli("rank", "get").rows
    assert "\x1b" not in extcli("rank", "get", "-o", "table").stdout


def test_markup_in_answers_is_not_interpreted(extcli):
    extcli("rank", "submit", "--key", "[red]:smile:[/red]")

    assert "[red]:smile:[/red]" in extcli("rank", "get", "-o", "table").stdout


def test_a_deleted_ranking_is_empty(extcli):
    extcli("rank", "submit", "--key", "blue")

    assert 0 == extcli("rank", "rm").exit_code
    assert "" == extcli("rank", "get").stdout
    assert "no answers yet\n" == extcli("rank", "get", "-o", "table").stdout


def test_a_ranking_that_never_was_is_not_called_deleted(extcli):
    extcli("rank", "submit", "colour", "--key", "blue")

    notes = [extcli("rank", "rm", "colour", "-o", "table").stderr for _ in range(2)]

    assert ["ranking colour is deleted\n", "there was no ranking colour\n"] == notes

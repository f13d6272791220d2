"""`--query`: prints a part of a JSON result."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def polls(extcli):
    for poll, value in (("lunch", 1), ("lunch", 2), ("dinner", 3)):
        extcli("vote", "cast", poll, "--value", str(value), "--as", f"viewer:U{value}")


@pytest.mark.parametrize(
    ("line", "query", "form", "printed"),
    [
        ("vote get lunch", "stats.count", "plain", "2\n"),
        ("vote get lunch", "stats.{count: count}", "plain", '{"count":2}\n'),
        ("vote list", "polls[?id=='lunch'].id | [0]", "plain", "lunch\n"),
        ("vote list", "polls[?id=='lunch'].id | [0]", "json", '"lunch"\n'),
        ("vote list", "polls[].[id, count]", "plain", "dinner\t1\nlunch\t2\n"),
        ("vote list", "polls[].id", "jsonl", '"dinner"\n"lunch"\n'),
        ("vote list", "polls[0].count", "table", "1\n"),
        ("vote list", "absent", "plain", ""),
        ("vote list", "absent", "json", "null\n"),
        ("vote logs lunch", "length(result)", "plain", "2\n"),
        ("api GET vote?id=lunch", "stats.count", "json", "2\n"),
    ],
)
def test_a_part_of_a_response_is_printed(extcli, line, query, form, printed):
    result = extcli(*line.split(), "--query", query, "-o", form, exits=0)

    assert printed == result.stdout
    assert (printed == "") == ("--query selects nothing" in result.stderr)


@pytest.mark.parametrize("query", ["[", "length(absent)", "nothing(@)"])
def test_a_bad_expression_exits_2_and_a_malformed_one_before_anything_is_sent(extcli, query):
    extcli("vote", "list", "--query", query, fails=2)

    extcli("vote", "cast", "breakfast", "--value", "1", "--query", "[", fails=2)
    assert "0\n" == extcli("vote", "get", "breakfast", "--query", "stats.count").stdout

"""`--query`: prints a part of a JSON result."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from support.program import PROGRAM


@pytest.fixture(autouse=True)
def polls(extcli):
    for poll, value in (("lunch", 1), ("lunch", 2), ("dinner", 3)):
        extcli("vote", "cast", poll, "--value", str(value), "--as", f"viewer:U{value}")


def test_a_part_of_a_response_is_printed(extcli):
    assert "2\n" == extcli("vote", "get", "lunch", "--query", "stats.count").stdout
    assert '{"count":2}\n' == extcli("vote", "get", "lunch", "--query", "stats.{count: count}").stdout


def test_text_is_printed_without_quotes_except_as_json(extcli):
    query = ("vote", "list", "--query", "polls[?id=='lunch'].id | [0]")

    assert "lunch\n" == extcli(*query).stdout
    assert '"lunch"\n' == extcli(*query, "-o", "json").stdout


def test_plain_output_has_a_line_for_each_item(extcli):
    assert "dinner\t1\nlunch\t2\n" == extcli("vote", "list", "--query", "polls[].[id, count]").stdout
    assert ["dinner", "lunch"] == extcli("vote", "list", "--query", "polls[].id", "-o", "jsonl").jsonl
    assert "" == extcli("vote", "list", "--query", "absent").stdout
    assert "null\n" == extcli("vote", "list", "--query", "absent", "-o", "json").stdout


@pytest.mark.parametrize("form", ["table", "plain", "jsonl"])
def test_a_query_that_selects_nothing_is_reported(extcli, form: str):
    note = "--query selects nothing in the response; -o json without it shows what there is\n"

    for query in ("absent", "polls[?id=='absent'].id"):
        assert note == extcli("vote", "list", "--query", query, "-o", form).stderr
    assert "" == extcli("vote", "list", "--query", "absent", "-o", form, "--quiet").stderr
    assert "" == extcli("vote", "list", "--query", "absent", "-o", "json").stderr


def test_a_table_is_json(extcli):
    shown = extcli("vote", "list", "--query", "polls[0]", "-o", "table").stdout

    assert "dinner" == json.loads(shown)["id"]


def test_streams_and_all_pages_are_searched(extcli):
    assert "2\n" == extcli("vote", "logs", "lunch", "--query", "length(result)").stdout
    assert 2 == extcli("api", "GET", "vote?id=lunch", "--query", "stats.count", "-o", "json").json


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("length(absent)", "invalid type"),
        ("nothing(@)", "Unknown function"),
    ],
)
def test_a_bad_expression_exits_2(extcli, expression, message):
    result = extcli("vote", "list", "--query", expression, fails=2)

    assert message in result.stderr


def test_a_bad_expression_is_found_before_anything_is_sent(extcli):
    extcli("vote", "cast", "breakfast", "--value", "1", "--query", "[")

    assert "0\n" == extcli("vote", "get", "breakfast", "--query", "stats.count").stdout


def test_jmespath_is_imported_only_for_a_query(environment):
    for query, expected in (([], False), (["--query", "stats"], True)):
        command = [sys.executable, "-X", "importtime", PROGRAM, "vote", "get", "lunch", *query]
        log = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stderr
        assert expected == ("jmespath" in log)

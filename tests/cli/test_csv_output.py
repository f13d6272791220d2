"""Results in every format: a cell of CSV is the value, and no control character reaches a terminal. And `--watch`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.examples import examples
from support.listen_process import TIMEOUT
from support.terminal import Terminal

LISTS = {
    "vote list": "id,channel,votes,status,latest vote",
    "vote get lunch": "value,option,count",
    "vote logs lunch": "identifier,opaque,value,timestamp,count",
    "rank list": "id,channel,answers,latest answer",
    "rank get colour": "key,score",
    "accumulate list": "id,channel,entries,latest entry",
    "accumulate get ratings": "observed,channel_id,user,data",
    "codes list": "index,name",
    "trivia list": "id,state,name,own vote,winner",
    "trivia get q1 --as backend": "option,name,mark",
    "bits list": "id,sku,cost,currency,user,posted",
    "state get channel": "key,JSON",
    "socket list": "number,kind,client id,role,channel,in,out,unread,state,subscriptions,user",
    "fault list": "id,match,conditions,effect,hits,left",
    "user list": "user",
    "ns list": "name",
    "contents": "kind,count",
    "contents polls": "id,client_id,channel_id,count,status,latest,expires_at",
    "clock next": "Unix ms,kind,id,client id,channel",
    "logs": "time,status,request,caller,ms,id,note",
    "config list": "key,value",
    "config list --show-origin": "key,value,origin",
    "profile list": "name,url,production,current",
    "link list": "service,client id,channel,since,until",
    "explain --rulings": "id,text,why",
}
"""Every list, with the names of its columns."""


@pytest.mark.usefixtures("one_of_each")
def test_csv_output_of_each_list_begins_with_column_names_and_json_is_one_document(extcli):
    found = {}
    for line in LISTS:
        [names, *rows] = csv.reader(extcli(*line.split(), "-o", "csv").stdout.splitlines(), strict=True)
        found[line] = ",".join(names)
        assert {len(names)} >= {len(row) for row in rows}, line
        json.loads(extcli(*line.split(), "-o", "json").stdout)

    assert LISTS == found


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize("form", ["table", "plain"])
def test_no_list_prints_a_control_character_or_takes_a_text_for_markup(extcli, form: str):
    printed = {line: extcli(*line.split(), "-o", form).stdout for line in LISTS}

    assert {"\n", "\t"} >= {each for text in printed.values() for each in text if not each.isprintable()}
    assert "\\x1b[2Jdark" in printed["rank get colour"]
    assert "[red]:smile:[/red]" in printed["rank get colour"]


def test_all_pages_are_printed(extcli, live):
    viewer = live.client("viewer", user="1", channel="1001")
    for number in range(120):
        viewer.post(f"vote?id=p{number:03}", json={"value": 1})
    expected = [f"p{number:03}" for number in range(120)]

    for noun in (("vote", "list"), ("contents", "polls")):
        assert expected == [row[0] for row in extcli(*noun).rows]
        assert expected == [each["id"] for each in extcli(*noun, "-o", "jsonl").jsonl]
    listed = extcli("vote", "list", "-o", "json").json
    assert (expected, "0") == ([each["id"] for each in listed["polls"]], listed["next"])


# What a command exports is what it was given, and reads back equal


PIECES = [
    *("\\", "\\n", "\\\\", '"', '""', "\n", "\n\n", "\r", "\r\n", "\t", ",", ";", "=1+1", "'", " ", "  ", "\x1b[31m"),
    *("\x00", "\x07", "\x7f", "\x85", "\u2028", "\u202e", "é", "日本", "🎉", "a", "B-1", "7", "null", "user", "key"),
]
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
MANY = st.lists(HOSTILE, min_size=1, max_size=25, unique=True)
ALL_AT_ONCE = [
    *PIECES,
    *(f" {each} " for each in PIECES),
    *(f"a{each}b" for each in PIECES),
    'C:\\temp\\new "x"\n\n, y',
]

with_hostile_texts = settings(
    max_examples=examples(32), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def cells(text: str) -> list[list[str]]:
    """Return the rows of CSV without their heading, as any program reads them."""
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))[1:]


def csv_of(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as another program writes them, which quotes cells with line breaks."""
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\r\n").writerows(rows)
    return file.getvalue()


def answers(extcli: Callable[..., Any], ranking: str) -> list[list[str]]:
    found = extcli("rank", "get", ranking, "-o", "json", exits=0).json["data"]
    return [[each["key"], str(each["score"])] for each in found]


@with_hostile_texts
@given(texts=MANY)
@example(texts=ALL_AT_ONCE[:100])
def test_answers_are_exported_and_read_back_as_they_are(extcli, live, texts: list[str]):
    live.empty()
    given = "".join(f"{json.dumps({'user': f'U{at}', 'key': text})}\n" for at, text in enumerate(texts, 1))
    extcli("rank", "submit", "first", "--from", "-", input=given)
    stored = answers(extcli, "first")

    exported = cells(extcli("rank", "get", "first", "-o", "csv").stdout)
    assert stored == exported

    rows = [("user", "key"), *((f"U{at}", key) for at, (key, _) in enumerate(exported, 1))]
    extcli("rank", "submit", "second", "--from", "-", input=csv_of(rows), exits=0)
    assert sorted(stored) == sorted(answers(extcli, "second"))


@with_hostile_texts
@given(texts=MANY)
@example(texts=ALL_AT_ONCE)
def test_documents_are_exported_and_read_back_as_they_are(extcli, live, texts: list[str]):
    live.empty()
    given = [{"text": text} for text in texts]
    extcli(
        "accumulate", "add", "first", "--from", "-", input="".join(f"{json.dumps(each)}\n" for each in given), exits=0
    )

    exported = [row[3] for row in cells(extcli("accumulate", "get", "first", "-o", "csv").stdout)][::-1]
    assert given == [json.loads(each) for each in exported]

    extcli("accumulate", "add", "second", "--from", "-", input="\n".join(exported), exits=0)
    again = extcli("accumulate", "get", "second", "-o", "csv").stdout
    assert given == [json.loads(row[3]) for row in cells(again)][::-1]


@pytest.mark.parametrize("text", ALL_AT_ONCE[:: max(1, examples(4, part=4) * 3)])
def test_members_and_parts_are_exported_as_they_are(extcli, text: str):
    extcli("state", "set", "channel", json.dumps({text: {"list": [text, "b"]}}), exits=0)

    [[name, value]] = cells(extcli("state", "get", "channel", "-o", "csv").stdout)
    part = extcli("state", "get", "channel", "-o", "csv", "--query", "values(@)[].list").stdout

    assert (text, {"list": [text, "b"]}) == (name, json.loads(value))
    assert [[text, "b"]] == cells(f"heading\n{part}")


@pytest.mark.parametrize("output", [("-o", "plain"), ("-o", "plain", "--query", "data[].[key, score]")])
def test_plain_output_escapes_control_characters_and_keeps_backslashes(extcli, output):
    extcli("rank", "submit", "--key", "C:\\temp\\new\ta\nb\x1b[31m\u202e")

    assert "C:\\temp\\new\\ta\\nb\\x1b[31m\\u202e\t1\n" == extcli("rank", "get", *output).stdout


def test_csv_on_a_terminal_moves_no_cursor(extcli):
    extcli("rank", "submit", "--key", "a\x1b[31m")

    assert "a\\u001b[31m,1" in extcli("rank", "get", "-o", "csv", screen=True).stdout


def test_a_vote_with_several_counts_has_its_count_in_lists(extcli):
    extcli("vote", "define", "many", "--total-votes", "9", "--votes-per-option", "9", exits=0)
    extcli("vote", "cast", "many", "3", "--count", "4", exits=0)

    assert "4" == cells(extcli("vote", "logs", "many", "-o", "csv").stdout)[0][4]
    assert "4" == extcli("vote", "logs", "many").rows[0][4]


# `--watch`: each result looks as it does without it, one below the other; a terminal is redrawn


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize(
    ("command", "form"),
    [
        *(("vote get lunch", form) for form in ("table", "plain", "csv", "jsonl")),
        ("rank get colour", "table"),
        ("vote get lunch --query stats.count", "plain"),
    ],
)
def test_a_watched_result_has_the_chosen_format(extcli, command: str, form: str):
    watched = extcli(*command.split(), "-o", form, "--watch", "--timeout", "200ms", exits=0).stdout

    assert extcli(*command.split(), env={"EXTCLI_OUTPUT": form}).stdout == watched != ""


def test_watched_csv_has_the_names_of_its_columns_once(extcli, shell):
    extcli("rank", "submit", "colour", "--key", "blue")
    process = shell("rank", "get", "colour", "--watch", "-o", "csv")
    first = [process.stdout.readline() for _ in range(2)]
    extcli("rank", "submit", "colour", "--key", "red", "--as", "viewer:U2")
    second = [process.stdout.readline() for _ in range(2)]
    process.terminate()
    rest, _ = process.communicate(timeout=60)

    assert ["key,score\n", "blue,1\n"] == first
    assert {"blue,1\n", "red,1\n"} == {*second}
    assert "" == rest


@pytest.mark.slow
def test_a_pipe_gets_a_json_line_for_each_change(extcli, shell):
    process = shell("vote", "get", "lunch", "--watch", "--query", "stats.specific[3]")
    seen = [json.loads(process.stdout.readline())]
    extcli("vote", "cast", "lunch", "--value", "3")
    seen.append(json.loads(process.stdout.readline()))
    process.kill()
    rest, _ = process.communicate(timeout=TIMEOUT)

    assert ([0, 1], "") == (seen, rest)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "code", "lines"), [("--timeout 200ms", 0, 1), ("--url http://127.0.0.1:1", 3, 0)])
def test_a_watch_ends_after_its_timeout_or_without_a_service(extcli, words, code, lines):
    assert lines == len(extcli("vote", "get", "lunch", "--watch", *words.split(), exits=code).stdout.splitlines())


@pytest.mark.slow
def test_a_terminal_is_redrawn(extcli):
    with Terminal("vote", "get", "lunch", "--watch", TERM="xterm") as terminal:
        terminal.read_until("no votes yet")
        extcli("vote", "cast", "lunch", "--value", "3")
        terminal.read_until("1 vote")

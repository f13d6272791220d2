"""A cell of CSV is the value: what a command exports is what it was given, and reads back equal."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.examples import examples

PIECES = [
    *("\\", "\\n", "\\\\", '"', '""', "\n", "\n\n", "\r", "\r\n", "\t", ",", ";", "=1+1", "'", " ", "  ", "\x1b[31m"),
    *("\x00", "\x07", "\x7f", "\x85", "\u2028", "\u202e", "é", "日本", "🎉", "a", "B-1", "7", "null", "user", "key"),
]
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
LISTS = st.lists(HOSTILE, min_size=1, max_size=25, unique=True)
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
@given(texts=LISTS)
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
@given(texts=LISTS)
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


def test_csv_on_a_terminal_moves_no_cursor(extcli, shell):
    extcli("rank", "submit", "--key", "a\x1b[31m")
    reader, writer = pty.openpty()
    with shell("rank", "get", "-o", "csv", stdout=writer) as process:
        process.wait(20)
    os.close(writer)

    assert b"a\\u001b[31m,1" in os.read(reader, 1000)
    os.close(reader)


def test_a_vote_with_several_counts_has_its_count_in_lists(extcli):
    extcli("vote", "define", "many", "--total-votes", "9", "--votes-per-option", "9", exits=0)
    extcli("vote", "cast", "many", "3", "--count", "4", exits=0)

    assert "4" == cells(extcli("vote", "logs", "many", "-o", "csv").stdout)[0][4]
    assert "4" == extcli("vote", "logs", "many").rows[0][4]

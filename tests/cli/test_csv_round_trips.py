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


def csv_of(rows: Iterable[Iterable[object]], end: str = "\n") -> str:
    """Return rows as another program writes them, which quotes cells with line breaks."""
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\r\n").writerows(rows)
    return file.getvalue() if end == "\r\n" else _with_line_feeds(file.getvalue())


def _with_line_feeds(text: str) -> str:
    """Replace the ends of rows, outside of quotes."""
    parts = text.split('"')
    return '"'.join(part.replace("\r\n", "\n") if at % 2 == 0 else part for at, part in enumerate(parts))


def answers(extcli: Callable[..., Any], ranking: str) -> list[list[str]]:
    found = extcli("rank", "get", ranking, "-o", "json", exits=0).json["data"]
    return [[each["key"], str(each["score"])] for each in found]


@with_hostile_texts
@given(texts=LISTS, end=st.sampled_from(["\n", "\r\n"]))
@example(texts=ALL_AT_ONCE[:100], end="\n")
def test_answers_are_exported_and_read_back_as_they_are(extcli, live, texts: list[str], end: str):
    live.empty()
    given = "".join(f"{json.dumps({'user': f'U{at}', 'key': text})}\n" for at, text in enumerate(texts, 1))
    extcli("rank", "submit", "first", "--from", "-", input=given)
    stored = answers(extcli, "first")

    exported = cells(extcli("rank", "get", "first", "-o", "csv").stdout)
    assert stored == exported

    rows = [("user", "key"), *((f"U{at}", key) for at, (key, _) in enumerate(exported, 1))]
    extcli("rank", "submit", "second", "--from", "-", input=csv_of(rows, end), exits=0)
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


@with_hostile_texts
@given(values=st.lists(st.integers(-(2**15), 2**15 - 1), min_size=1, max_size=20), texts=LISTS)
@example(values=[0, 1], texts=ALL_AT_ONCE)
def test_votes_and_options_are_exported_and_read_back_as_they_are(extcli, live, values: list[int], texts: list[str]):
    live.empty()
    rows = csv_of([("user", "value"), *((f"U{at}", value) for at, value in enumerate(values, 1))])
    extcli("vote", "cast", "first", "--from", "-", input=rows)
    definition = json.dumps({"id": "first", "config": {"options": texts[:64]}})
    defined = extcli("api", "POST", "vote_config", "--input", "-", input=definition)

    log = extcli("vote", "logs", "first", "-o", "csv").stdout
    extcli("vote", "cast", "second", "--from", "-", "--columns", "identifier,value", input=log, exits=0)
    again = extcli("vote", "logs", "second", "-o", "csv").stdout

    # Parallel votes of different users may be in the log in any order.
    assert sorted(row[:3] for row in cells(log)) == sorted(row[:3] for row in cells(again))
    assert {"1"} >= {row[4] for row in cells(log)}
    if defined.exit_code == 0:
        options = extcli("vote", "config", "first", "-o", "json").json["options"]
        for value, option, _ in cells(extcli("vote", "get", "first", "-o", "csv").stdout):
            assert option == (options[int(value)] if 0 <= int(value) < len(options) else "")


CODES = HOSTILE.map(lambda text: f"c{''.join(c for c in text if c.isprintable())}c"[:63])


@with_hostile_texts
@given(codes=st.lists(CODES, min_size=1, max_size=5, unique=True))
@example(codes=["A\\B-1"])
@example(codes=['c"c', "c,c", "c;c"])
def test_codes_are_exported_and_read_back_as_they_are(extcli, live, file, codes: list[str]):
    live.empty()
    body = json.dumps({"codes": [codes], "names": ["Hat"]})
    extcli("api", "PUT", "codes", "--as", "backend", "--input", "-", input=body, exits=0)
    extcli("codes", "mark-from-list", "U1", *["--prize", "0"] * len(codes), exits=0)
    redeemed = [cells("code\n" + extcli("codes", "redeem", "0", "-o", "csv").stdout)[0][0] for _ in codes]
    assert sorted(codes) == sorted(redeemed)

    exported = extcli("codes", "redeemed", "-o", "csv").stdout
    assert sorted(codes) == sorted(row[1] for row in cells(exported))

    live.empty()
    extcli("codes", "upload", "--set", f"Hat={file(exported, 'codes.csv')}", "--column", "code", exits=0)
    extcli("codes", "mark-from-list", "U1", *["--prize", "0"] * len(codes), exits=0)
    for _ in codes:
        extcli("codes", "redeem", "0", exits=0)
    assert sorted(codes) == sorted(row[1] for row in cells(extcli("codes", "redeemed", "-o", "csv").stdout))


def test_exported_voters_can_be_marked(extcli, file):
    extcli("vote", "cast", "quiz", "--from", "-", input="U1,2\nU2,2\n7,2\n", exits=0)
    extcli("codes", "upload", "--set", "Z=-", input="Z1\nZ2\nZ3\n", exits=0)
    voters = file(extcli("vote", "logs", "quiz", "-o", "csv").stdout, "voters.csv")

    result = extcli("codes", "mark-from-list", "--prize", "0", "--from", voters, "--column", "identifier", exits=0)

    assert "3 newly marked\n" in result.stderr


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

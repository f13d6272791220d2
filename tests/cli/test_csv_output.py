"""Lists in every format: CSV with a line of names, one JSON document, and no control character on a terminal."""

from __future__ import annotations

import csv
import json

import pytest

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


@pytest.fixture
def filled(extcli) -> None:
    """One thing of each kind, with texts that CSV must quote, and characters that a terminal would obey."""
    for line in (
        ("vote", "define", "lunch", "--option", 'Soup, "\x1b[31mhot"', "--option", "\u202eSalad"),
        ("vote", "cast", "lunch", "--value", "0"),
        ("rank", "submit", "colour", "--key", 'blue, "\x1b[2Jdark" [red]:smile:[/red]'),
        ("accumulate", "add", "ratings", '{"stars": 5, "text": "a\\nb\\u001b[2J"}'),
        ("state", "set", "channel", '{"\\u001b[2J": "\\u009b"}'),
        ("trivia", "define", "q1", "--name", "Which\x1b[2J team, then?"),
        ("trivia", "define-option", "q1", "red", "--name", "\u202eRed"),
        ("fault", "add", "--match", "POST /v1/e/rank", "--status", "503"),
        ("ns", "new", "blue"),
    ):
        assert 0 == extcli(*line).exit_code


@pytest.mark.usefixtures("filled")
def test_csv_output_of_each_list_begins_with_column_names_and_json_is_one_document(extcli):
    found = {}
    for line in LISTS:
        [names, *rows] = csv.reader(extcli(*line.split(), "-o", "csv").stdout.splitlines(), strict=True)
        found[line] = ",".join(names)
        assert {len(names)} >= {len(row) for row in rows}, line
        json.loads(extcli(*line.split(), "-o", "json").stdout)

    assert LISTS == found


@pytest.mark.usefixtures("filled")
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

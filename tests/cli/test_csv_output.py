"""Lists in formats for other programs: CSV with a line of names, and one JSON document."""

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
    """One thing of each kind, with texts that CSV must quote."""
    for line in (
        ("vote", "define", "lunch", "--prompt", "Which?", "--option", 'Soup, "hot"', "--option", "Salad"),
        ("vote", "cast", "lunch", "--value", "0"),
        ("rank", "submit", "colour", "--key", 'blue, "dark"'),
        ("accumulate", "add", "ratings", '{"stars": 5, "text": "a\\nb"}'),
        ("state", "set", "channel", '{"round": 4}'),
        ("trivia", "define", "q1", "--name", "Which team, then?"),
        ("trivia", "define-option", "q1", "red", "--name", "Red"),
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

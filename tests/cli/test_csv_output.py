"""Lists in formats for other programs: CSV with a line of names, and one JSON document."""

from __future__ import annotations

import csv
import json

import pytest

from support.program import http_response

LISTS = {
    "vote list": "id,channel,votes,status,latest vote",
    "vote get lunch": "value,option,count",
    "vote logs lunch": "identifier,opaque,value,timestamp",
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
    "policies": "id,seen,text,why",
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
def test_csv_output_of_each_list_begins_with_column_names(extcli):
    found = {}
    for line in LISTS:
        [names, *rows] = csv.reader(extcli(*line.split(), "-o", "csv").stdout.splitlines(), strict=True)
        found[line] = ",".join(names)
        assert {len(names)} >= {len(row) for row in rows}, line

    assert LISTS == found


@pytest.mark.usefixtures("filled")
def test_each_list_as_json_is_one_document(extcli):
    for line in LISTS:
        json.loads(extcli(*line.split(), "-o", "json").stdout)


@pytest.mark.usefixtures("filled")
def test_texts_in_csv_are_quoted(extcli):
    assert 'value,option,count\n0,"Soup, ""hot""",1\n' == extcli("vote", "get", "lunch", "-o", "csv").stdout
    assert 'key,score\n"blue, ""dark""",1\n' == extcli("rank", "get", "colour", "-o", "csv").stdout


def test_a_list_of_several_pages_has_one_line_of_names(extcli, live):
    for number in range(120):
        live.client("viewer", user=str(number + 1), channel="1001").post(f"vote?id=p{number:03}", json={"value": 1})

    assert ["id,channel,votes,status,latest vote"] == [
        each for each in extcli("vote", "list", "-o", "csv").stdout.splitlines() if not each.startswith("p")
    ]


def test_users_of_several_pages_are_one_document(extcli, answering):
    pages = (
        http_response("200 OK", json.dumps({"next": following, "results": [{"twitch_id": user}]}))
        for following, user in (("c5", "U1"), ("0", "U2"))
    )
    env = {"EXTCLI_TOKEN": "a.b.c"}

    listed = json.loads(extcli("user", "list", "-o", "json", "--url", answering(*pages), env=env).stdout)

    assert {"next": "0", "results": [{"twitch_id": "U1"}, {"twitch_id": "U2"}]} == listed

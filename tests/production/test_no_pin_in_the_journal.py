"""No PIN enters the journal, wherever a client puts it, and no member with the name of a secret."""

from __future__ import annotations

import json

import pytest

from support.journal import entries_of
from support.journal_leaks import leaks
from support.leak_detector import LeakDetector
from support.service import Client, LiveServer
from support.socket_client import SocketClient

BODIES = {
    "as it should be": '{"pin": "%s"}',
    "cut off": '{"pin": "%s"',
    "cut off after an escape": '{"x": "\\u12", "pin": "%s"}',
    "not quoted": "{pin: %s}",
    "as a form": "pin=%s",
    "in a list": '[{"pin": "%s"}]',
    "in a member": '{"a": {"b": [{"pin": "%s"}]}}',
    "as a member of another type": '{"pin": ["%s", {"x": "%s"}]}',
    "in a JSON string": json.dumps(json.dumps({"pin": "%s"})),
    "in a JSON string, twice": json.dumps(json.dumps(json.dumps({"pin": "%s"}))),
    "in a JSON string, cut off": json.dumps('{"pin": "%s"'),
    "beside a long text": '{"x": "' + "x" * 4_080 + '", "pin": "%s"}',
    "too large": '{"x": "' + "x" * 70_000 + '", "pin": "%s"}',
    "with a byte order mark": '\ufeff{"pin": "%s"}',
    "with another case": '{"PIN": "%s"}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("path", ["validate_pin", "unauthed/validate_pin", "link/pin"])
def test_a_pin_in_a_body_stays_out(live: LiveServer, seen: LeakDetector, broadcaster: Client, path: str, body: str):
    pin = seen.add("7T3W9Q", "a PIN")

    broadcaster.post(path, content=body.replace("%s", pin).encode())

    [entry] = [each for each in entries_of(live, path=path)]
    assert set() == seen.found_in(json.dumps(entry))


@pytest.mark.parametrize("body", ['{"pin": %s}', '{"PIN": [%s, {"x": %s}]}', '{"x": "{\\"pin\\": %s}"}', "{'pin': %s}"])
def test_a_pin_that_is_a_number_stays_out(live: LiveServer, seen: LeakDetector, broadcaster: Client, body: str):
    content = body.replace("%s", seen.add("734926", "a PIN"))

    for path in ("channel_state", "vote", "broadcast", "accumulate?id=a"):
        broadcaster.post(path, content=content)
    with SocketClient(live) as game:
        game.socket.send(content)
        game.reply()

    assert set() == leaks(live, seen)


def test_small_numbers_called_pin_and_quoted_words_are_shown(live: LiveServer, broadcaster: Client):
    body = {"pin": 3, "pins": [10, 1], "x": "the 'pin' and the 'token' are words here", "is": {"pin": True}}

    broadcaster.post("channel_state", json=body).raise_for_status()

    [entry] = entries_of(live, path="channel_state")
    assert body == json.loads(entry["request"]["text"])


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_pin_in_the_body_of_a_refused_request_stays_out(live: LiveServer, seen: LeakDetector, viewer, body: str):
    content = body.replace("%s", seen.add("7T3W9Q", "a PIN")).encode()

    refused = [
        viewer().post("validate_pin", content=content),
        live.bearer("no-token").post("validate_pin", content=content),
    ]

    assert [403, 401] == [each.status_code for each in refused] or 413 in [each.status_code for each in refused]
    assert set() == leaks(live, seen)


@pytest.mark.parametrize("body", [each for name, each in BODIES.items() if name not in ("as a form", "not quoted")])
@pytest.mark.parametrize("path", ["vote", "accumulate", "nothing"])
def test_a_member_called_pin_is_also_hidden_by_other_endpoints(
    live: LiveServer, seen: LeakDetector, broadcaster: Client, path: str, body: str
):
    pin = seen.add("7T3W9Q", "a PIN")
    if "x" * 4_080 in body or "twice" in body:
        body = BODIES["in a member"]

    broadcaster.post(path, content=body.replace("%s", pin).encode())

    [entry] = [each for each in entries_of(live, path=path)]
    assert set() == seen.found_in(json.dumps(entry))


@pytest.mark.parametrize(
    "place",
    [
        "/v1/e/vote?pin=%s",
        "/v1/e/vote?id=a&%s",
        "/v1/e/vote?%s=1",
        "/v1/e/vote?id=a&pin=%s&id=b",
        "/v1/e/validate_pin?pin=%s",
        "/v1/e/validate_pin/%s",
        "/v1/e/%s",
        "/%s",
        "/_emulator/%s",
        "/_ns/%s!/v1/e/vote",
        "/schema/%s",
    ],
)
def test_a_pin_in_an_address_does_not_enter_the_journal(
    live: LiveServer, seen: LeakDetector, stranger: Client, place: str
):
    pin = seen.add("7T3W9Q", "a PIN")

    stranger.get(place.replace("%s", pin))
    stranger.post(place.replace("%s", pin), content=b"{}")

    assert 1 <= len([each for each in entries_of(live) if not each["endpoint"].endswith("reset")])
    assert set() == leaks(live, seen)


@pytest.mark.parametrize(
    "body",
    [
        r'{"t\u006fken": "%s"}',
        r'{"t\u006fken": "%s',
        '{"TOKEN": "%s"}',
        '{"Pin": "%s"}',
        '{"accessToken": "%s"}',
        '{"client_secret": "%s"}',
        json.dumps({"x": ' {"token": "%s"}'}),
        json.dumps({"x": 'data = {"token": "%s"}'}),
        json.dumps({"x": r'{"t\u006fken": "%s"}'}),
        '{"authorization": "%s"}',
        '{"headers": {"Authorization": ["my-extension %s"]}}',
        '{"AUTHORIZATION": "%s"',
        "{'token': '%s'}",
        "{'Pin' : '%s', 'x': 1}",
        "access_token='%s', 'client_secret'='%s'",
        json.dumps({"x": "{'token': '%s'}"}),
        json.dumps({"x": "error in {'clientSecret': '%s'}"}),
    ],
)
def test_a_member_with_a_secret_name_stays_out_however_it_is_written(
    live: LiveServer, seen: LeakDetector, broadcaster: Client, body: str
):
    secret = seen.add("not-a-jwt-4711", "a token")

    broadcaster.post("channel_state", content=body.replace("%s", secret))
    broadcaster.post("vote", content=body.replace("%s", secret))

    assert 2 == len(entries_of(live, kind="request", role="broadcaster"))
    assert set() == leaks(live, seen)


@pytest.mark.parametrize(
    "frame",
    [
        '{"action": "authenticate", "data": {"client_id": "x", "pin": "%s"}}',
        '{"action": "authenticate", "params": {"target": "%s"}, "data": {"pin": "%s"}}',
        '{"action": "authenticate", "data": {"client_id": "x", "pin": "%s"',
        '{"action": "authenticate", "data": {"refresh": "%s", "jwt": "%s", "pin": "%s"}}',
        '{"action": "Authenticate", "data": {"pin": "%s"}}',
        '{"data": {"pin": "%s"}}',
        '[{"pin": "%s"}]',
    ],
)
def test_a_pin_in_a_frame_stays_out(live: LiveServer, seen: LeakDetector, frame: str):
    pin = seen.add("7T3W9Q", "a PIN")
    with SocketClient(live) as game:
        game.socket.send(frame.replace("%s", pin))
        game.reply()

    assert 1 == len(entries_of(live, kind="frame"))
    assert set() == leaks(live, seen)

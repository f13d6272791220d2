"""No token enters the journal, wherever a client puts it (ruling B7)."""

from __future__ import annotations

import base64
from collections.abc import Callable
from urllib.parse import quote

import pytest

from support.journal import entries_of
from support.journal_leaks import leaks
from support.leak_detector import LeakDetector
from support.pusher_client import PusherClient, pusher_channel
from support.scenario import Scenario
from support.service import CLIENT_ID, Client, LiveServer
from support.socket_client import linked_game

Encode = Callable[[bytes], bytes]


def test_a_token_in_unicode_escapes_stays_out(live: LiveServer, scenario: Scenario, viewer):
    token = scenario.token("admin")
    escaped = "".join(f"\\u{ord(character):04x}" for character in token[:300])

    viewer().post("vote", content=f'{{"value": "{escaped}"}}')

    [entry] = entries_of(live, path="vote")
    assert "\\u" not in entry["request"]["text"]
    assert token[:100] not in entry["request"]["text"]


@pytest.mark.parametrize("member", ["user_id", "channel_id", "opaque_user_id"])
def test_a_token_in_place_of_an_id_of_the_caller_stays_out(
    live: LiveServer, scenario: Scenario, seen: LeakDetector, stranger: Client, member: str
):
    token = scenario.token("admin")
    call = {"method": "POST", "path": "/v1/e/broadcast", "client_id": CLIENT_ID, "channel_id": "1", "role": "admin"}
    body = {"event": "e", "data": {}, "target": "broadcast"}

    stranger.post("/_emulator/call", json={**call, member: token[:255], "body": body}).raise_for_status()

    assert entries_of(live, path="broadcast")
    assert set() == leaks(live, seen)


def test_a_token_in_place_of_the_client_id_of_the_caller_is_refused_and_stays_out(
    live: LiveServer, scenario: Scenario, seen: LeakDetector, stranger: Client
):
    call = {"method": "POST", "path": "/v1/e/broadcast", "client_id": scenario.token("admin")[:100]}

    assert 400 == stranger.post("/_emulator/call", json=call).status_code

    assert set() == leaks(live, seen)


def test_a_token_as_the_name_of_an_event_stays_out(
    live: LiveServer, scenario: Scenario, seen: LeakDetector, broadcaster: Client
):
    with linked_game(live):
        broadcaster.post("broadcast", json={"event": scenario.token("admin"), "data": {}, "target": "broadcast"})

    assert entries_of(live, kind="delivery")
    assert set() == leaks(live, seen)


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("place", ["/v1/e/vote?id=%s", "/v1/e/%s", "/v1/e/vote?channel_id=x%s", "/_ns/%s/v1/e/vote"])
def test_a_token_in_an_address_stays_out(
    live: LiveServer, seen: LeakDetector, scenario: Scenario, stranger: Client, place: str, quoted: bool
):
    token = scenario.token("admin")

    stranger.get(place.replace("%s", token.replace("e", "%65") if quoted else token))

    assert set() == leaks(live, seen)


@pytest.mark.parametrize(
    "body",
    ['{"x": "%s"}', "%s", '"%s"', '{"x": "Bearer %s"', '{"%s": 1}', '[["a", "%s"]]', '{"x": "' + "x" * 4_080 + '%s"}'],
)
def test_a_token_in_any_body_stays_out(live: LiveServer, scenario: Scenario, seen: LeakDetector, viewer, body: str):
    sent = body.replace("%s", scenario.token("admin"))

    viewer().post("accumulate?id=a", content=sent)
    viewer().post("vote", content=sent)
    with linked_game(live) as game:
        game.socket.send(sent)
        game.reply()

    assert set() == leaks(live, seen)


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("body", ['{"x": "%s"}', "%s", "token %s", '{"%s": 1}', '{"x": "{\\"y\\": \\"%s\\"}"}'])
def test_a_token_in_base64_stays_out(
    live: LiveServer, scenario: Scenario, seen: LeakDetector, viewer, stranger: Client, body: str, encode: Encode
):
    text = encode(scenario.token("admin").encode()).decode()
    seen.add(text[40:80], "a token in base64")
    seen.add(text[-40:-4], "the end of a token in base64")

    viewer().post("accumulate?id=a", content=body.replace("%s", text))
    viewer().post("vote", content=body.replace("%s", text))
    viewer().get("vote", params={"id": text, "channel_id": text})
    stranger.get(f"/v1/e/{text}", headers={"X-Request-Id": text[:64]})
    live.client("viewer", opaque=text, channel=text).get("vote")

    assert set() == leaks(live, seen)


def test_a_token_as_a_request_id_stays_out(live: LiveServer, scenario: Scenario, seen: LeakDetector, stranger: Client):
    token = scenario.token("admin")

    stranger.get("/v1/e/vote", headers={"X-Request-Id": token[:64]})

    assert set() == leaks(live, seen)


def test_a_token_in_a_frame_of_a_page_stays_out(live: LiveServer, seen: LeakDetector, scenario: Scenario):
    token = scenario.token("viewer")
    with PusherClient(live, f"?protocol=7&token={token}") as page:
        page.send("pusher:subscribe", {"channel": f"private-{token}"[:200]})
        page.reply()
        page.send(token[:80], {"auth": token})
        page.error()

    assert 2 == len(entries_of(live, kind="frame"))
    assert set() == leaks(live, seen)


@pytest.mark.parametrize("encoded", [True, False], ids=["percent", "plain"])
def test_the_credential_of_a_page_stays_out(live: LiveServer, seen: LeakDetector, scenario: Scenario, encoded: bool):
    token = scenario.token("viewer")
    broken = f"{token.rpartition('.')[0]}.\u00e9"  # masking of texts does not take this for a token
    seen.add(broken[-60:-2], "a broken token")
    credential = quote(f"{CLIENT_ID} {token}") if encoded else f"{CLIENT_ID}+{token}"
    with PusherClient(live, f"?protocol=7&token={credential}") as page:
        for auth in (f"{CLIENT_ID} {token}", f"{CLIENT_ID} {broken}", broken):
            page.send("pusher:subscribe", {"channel": pusher_channel(), "auth": auth})
            page.reply()

    assert 3 == len(entries_of(live, kind="frame"))
    assert set() == leaks(live, seen)

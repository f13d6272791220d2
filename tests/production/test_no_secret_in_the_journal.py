"""No token, PIN, code or secret enters the journal, wherever a client puts it, and in whatever form it is read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from emulator.dashboard.pages import screens
from emulator.features.journal.snippets import FORMS
from extcli.journal.har import har_lines
from support.journal import entries_of, following, journal_of
from support.leak_detector import LeakDetector
from support.pusher_client import PusherClient
from support.scenario import Scenario
from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer
from support.socket_client import SocketClient, linked_game

CONTENT = {
    "an answer", "a text in a buffer", "a viewer's state", "a channel's state", "a patch", "a JSON store",
    "a broadcast", "a whisper", "a question", "a bad body", "a large body", "a state over the socket",
    "a broadcast over the socket",
    "a value of the whole extension",
    "an action", "a target", "data", "an event's name", "a frame of text", "a frame of JSON", "a large frame",
}  # fmt: skip
"""What the scenario plants in bodies that hold no secret. The journal keeps bodies."""


@pytest.fixture
def seen() -> LeakDetector:
    seen = LeakDetector()
    seen.add_key(SECRET, "the extension's secret")
    return seen


@pytest.fixture
def scenario(live: LiveServer, seen: LeakDetector) -> Scenario:
    return Scenario(live, seen, SECRET)


def everything(service: LiveServer) -> Iterator[str]:
    """Yield the whole journal in each form."""
    with Client(base_url=service.url) as client:
        since: int | None = 0
        while since is not None:
            page = journal_of(service, since=since, limit=200)
            since = page["next"]
            yield json.dumps(page, ensure_ascii=False)
            yield from har_lines(page["entries"], service.url)
            for number in (each["number"] for each in page["entries"]):
                yield client.get("/_emulator/journal/entry", params={"id": number}).text
                yield client.get("/_emulator/explain", params={"id": number}).text
                for form in FORMS:
                    yield client.get("/_emulator/journal/entry", params={"id": number, "as": form}).text
    with following(service, since=0, timeout=0) as lines:
        yield json.dumps(list(lines), ensure_ascii=False)


def pages(service: LiveServer) -> Iterator[str]:
    """Yield the pages of the dashboard: each screen, and what it shows of each entry and each socket."""
    with Client(base_url=service.url) as client:
        for name in screens():
            yield client.get(f"/_emulator/ui/{name}" if name != "overview" else "/_emulator").text
        for each in entries_of(service, limit=1_000):
            yield client.get("/_emulator/ui/requests", params={"entry": each["number"]}).text
        for name in ("contents/pins", "contents/codes", "sockets", "parity", "clock/next"):
            yield client.get(f"/_emulator/{name}").text


def leaks(service: LiveServer, seen: LeakDetector) -> set[str]:
    return {label for text in everything(service) for label in seen.found_in(text)} - CONTENT


def test_every_kind_of_call_leaves_no_secret_in_the_journal(live: LiveServer, scenario: Scenario, seen: LeakDetector):
    scenario.run()

    kinds = [each["kind"] for each in entries_of(live, limit=1_000)]
    assert kinds.count("request") > 100
    assert kinds.count("frame") > 15
    assert set() == leaks(live, seen)
    assert seen.found_in("".join(everything(live))) >= {"an answer", "a patch", "a state over the socket"}


@pytest.mark.slow
def test_every_kind_of_call_leaves_no_secret_in_the_dashboard(live: LiveServer, scenario: Scenario, seen: LeakDetector):
    scenario.run()

    shown = list(pages(live))

    as_client_id = {"a bad credential"}  # the sandbox accepts any client id without a token
    assert set() == {label for text in shown for label in seen.found_in(text)} - CONTENT - as_client_id
    assert "an answer" in seen.found_in("".join(shown))


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
def test_a_member_called_pin_stays_out_of_other_endpoints_too(
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
def test_a_pin_in_an_address_stays_out(live: LiveServer, seen: LeakDetector, stranger: Client, place: str):
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


def test_a_token_in_unicode_escapes_stays_out(live: LiveServer, scenario: Scenario, viewer):
    token = scenario.token("admin")
    escaped = "".join(f"\\u{ord(character):04x}" for character in token[:300])

    viewer().post("vote", content=f'{{"value": "{escaped}"}}')

    [entry] = entries_of(live, path="vote")
    assert "\\u" not in entry["request"]["text"]
    assert token[:100] not in entry["request"]["text"]


@pytest.mark.parametrize("member", ["client_id", "user_id", "channel_id", "opaque_user_id"])
def test_a_token_in_place_of_an_id_of_the_caller_stays_out(
    live: LiveServer, scenario: Scenario, seen: LeakDetector, stranger: Client, member: str
):
    token = scenario.token("admin")
    call = {"method": "POST", "path": "/v1/e/broadcast", "client_id": CLIENT_ID, "channel_id": "1", "role": "admin"}
    body = {"event": "e", "data": {}, "target": "broadcast"}

    stranger.post("/_emulator/call", json={**call, member: token[:255], "body": body}).raise_for_status()

    assert entries_of(live, path="broadcast")
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


def test_a_token_as_a_request_id_stays_out(live: LiveServer, scenario: Scenario, seen: LeakDetector, stranger: Client):
    token = scenario.token("admin")

    stranger.get("/v1/e/vote", headers={"X-Request-Id": token[:64]})

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


def test_a_token_in_a_frame_of_a_page_stays_out(live: LiveServer, seen: LeakDetector, scenario: Scenario):
    token = scenario.token("viewer")
    with PusherClient(live, f"?protocol=7&token={token}") as page:
        page.send("pusher:subscribe", {"channel": f"private-{token}"[:200]})
        page.reply()
        page.send(token[:80], {"auth": token})
        page.error()

    assert 2 == len(entries_of(live, kind="frame"))
    assert set() == leaks(live, seen)


def test_what_is_issued_redeemed_and_uploaded_stays_out(
    live: LiveServer,
    seen: LeakDetector,
    scenario: Scenario,
    stranger: Client,
    broadcaster: Client,
    viewer,
    admin: Client,
):
    for path in ("link/pin", "pin"):
        issued = stranger.post(f"/v1/e/{path}", json={"identifier": CLIENT_ID}).json()
        seen.add(issued["pin"], "a PIN")
        seen.add(issued["token"], "a token or PIN")
    issued = stranger.post("/v1/e/authtoken", json={"user_ids": ["1", "2"], "role": "viewer"}).json()
    for token in issued["tokens"]:
        seen.add_token(token, "a token of authtoken")
    codes = [seen.make("a code") for _ in range(5)]
    admin.put("codes", json={"codes": [codes[:3]], "names": ["Hat"]}).raise_for_status()
    admin.put("codes", content=json.dumps({"codes": [[codes[3]]]})[:-4])
    admin.put("codes", json={"codes": [[codes[4], codes[4]]], "names": ["Hat"]})
    admin.post("codes/mark_from_list", json={"users": ["5551"], "prizes": [0], "prize_limits": [2]}).raise_for_status()
    assert viewer().post("codes/redeem", json={"prize": 0}).json()["code"] in codes
    assert viewer().get("codes/redeemed").json()["redeemed"][0]
    receipt = seen.sign(SECRET, "a receipt", data={"transactionId": "t", "userId": "5", "product": {"sku": "hat"}})
    viewer().post("bits/transactions", json={"transactionReceipt": receipt})

    assert set() == leaks(live, seen)


def test_seeds_and_snapshots_stay_out(live: LiveServer, seen: LeakDetector, stranger: Client):
    code = seen.make("a code")
    seed = {
        "extcli": 1, "client_id": CLIENT_ID, "channel": CHANNEL,
        "codes": [{"index": 0, "name": "Hat", "codes": [code]}], "links": [{}],
    }  # fmt: skip
    seeded = stranger.put("/_emulator/seed", json=seed).raise_for_status().json()
    for link in seeded["links"]:
        seen.add_token(link["refresh"], "a refresh token of a seed")
    stranger.put("/_emulator/seed", json={**seed, "codes": [{"index": code}]})
    snapshot = stranger.get("/_emulator/snapshot?keys=true").raise_for_status()
    assert code in snapshot.text
    for key in re.findall(r'"value":"([^"]{20,})"', snapshot.text):
        seen.add(key, "a key in a snapshot")
    stranger.put("/_emulator/snapshot", content=snapshot.content).raise_for_status()
    stranger.put("/_emulator/snapshot", content=snapshot.content[:-20])

    assert set() == leaks(live, seen)


def test_a_call_as_any_caller_leaves_no_secret(live: LiveServer, seen: LeakDetector, stranger: Client):
    pin = seen.add("7T3W9Q", "a PIN")
    caller = {"client_id": CLIENT_ID, "role": "broadcaster", "channel_id": CHANNEL, "user_id": CHANNEL}
    stranger.post(
        "/_emulator/call", json={**caller, "method": "POST", "path": "/v1/e/validate_pin", "body": {"pin": pin}}
    )
    issued = stranger.post("/_emulator/call", json={**caller, "method": "POST", "path": "/v1/e/link/pin"}).json()
    seen.add(issued["body"]["pin"], "a PIN")
    stranger.post("/_emulator/call", content=json.dumps({**caller, "method": "POST", "body": {"pin": pin}})[:-1])

    assert 2 <= len(entries_of(live, path="pin"))
    assert set() == leaks(live, seen)


def test_deliveries_about_pins_hold_no_secret(
    live: LiveServer, seen: LeakDetector, broadcaster: Client, stranger: Client
):
    issued = stranger.post("/v1/e/pin", json={"identifier": CLIENT_ID}).json()
    seen.add(issued["pin"], "a PIN")
    seen.add_token(issued["token"], "a token")
    with SocketClient(live) as game:
        game.data("subscribe", "authentication")
        broadcaster.post("validate_pin", json={"pin": issued["pin"]}).raise_for_status()
        game.update()

    assert 1 == len(entries_of(live, kind="delivery", path="authentication"))
    assert set() == leaks(live, seen)

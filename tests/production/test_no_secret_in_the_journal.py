"""No token, PIN, code or secret enters the journal, in whatever form it is read."""

from __future__ import annotations

import json
import re

import pytest

from support.journal import entries_of
from support.journal_leaks import CONTENT, everything, leaks, pages
from support.leak_detector import LeakDetector
from support.scenario import Scenario
from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer
from support.socket_client import SocketClient


def test_every_kind_of_call_leaves_no_secret_in_the_journal(live: LiveServer, scenario: Scenario, seen: LeakDetector):
    scenario.run()

    kinds = [each["kind"] for each in entries_of(live, limit=1_000)]
    assert kinds.count("request") > 100
    assert kinds.count("frame") > 15
    assert set() == leaks(live, seen)
    assert seen.found_in("".join(everything(live))) >= {"an answer", "a patch", "a state over the socket"}


@pytest.mark.slow
def test_the_dashboard_shows_no_secret_after_calls_of_every_kind(
    live: LiveServer, scenario: Scenario, seen: LeakDetector
):
    scenario.run()

    shown = list(pages(live))

    as_client_id = {"a bad credential"}  # the sandbox accepts any client id without a token
    assert set() == {label for text in shown for label in seen.found_in(text)} - CONTENT - as_client_id
    assert "an answer" in seen.found_in("".join(shown))


def test_tokens_pins_and_codes_stay_out_of_the_journal(
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


@pytest.mark.parametrize("form", ['"{}"', '["{}"]', '[["{}"]]', '"\\"{}\\""', '"[\\"{}\\"]"'])
def test_a_pin_that_is_not_in_its_member_stays_out(
    live: LiveServer, seen: LeakDetector, broadcaster: Client, form: str
):
    text = form.format(seen.add("7T3W9Q", "a PIN"))
    broadcaster.post("validate_pin", content=text)
    with SocketClient(live) as game:
        game.socket.send(f'{{"action": "authenticate", "data": {text}}}')
        game.message()

    assert 2 == len(entries_of(live, status="400"))
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

"""Each response of the sandbox says what production would have done differently."""

from __future__ import annotations

from base64 import b64encode

import httpx
import jwt
import pytest

from support.journal import entries_of, entry_of
from support.service import (
    CHANNEL,
    CLIENT_ID,
    OTHER_ID,
    SECRET,
    LiveServer,
    real_seconds,
)
from support.socket_client import SocketClient
from support.verdicts import rules, verdict, vote

DAY = 86_400_000
EXP = real_seconds() + 86_400


@pytest.mark.parametrize(
    ("expected", "claims"),
    [
        ("", {}),
        ("refuse; rule=signature", {"key": b"a secret that no extension has, at all"}),
        ("refuse; rule=secret", {"key": b64encode(SECRET)}),
        ("refuse; rule=exp", {"exp": EXP * 1000}),
        ("refuse; rule=claims", {"allowed_stage": 7}),
    ],
)
def test_a_verdict_names_the_rule_that_refuses_the_token(known: LiveServer, expected: str, claims: dict[str, object]):
    client = known.client("viewer", **{"user": "1", "channel": CHANNEL, "exp": EXP, **claims})

    assert [expected, expected] == [vote(client), vote(client)]  # the second time from the cache


def test_without_a_secret_the_verdict_is_unknown(live: LiveServer):
    assert "unknown; rule=signature" == vote(live.client("viewer", user="1", channel=CHANNEL, exp=EXP))


def test_verdicts_are_counted_with_the_first_and_the_latest_request(known: LiveServer):
    client = known.client("viewer", user="1", channel=CHANNEL)
    for number in range(3):
        client.get("vote", headers={"X-Request-Id": f"request-{number}"})

    answer = httpx.get(f"{known.url}/_emulator/parity").json()

    [seen] = answer["rules"]
    assert ("exp", "refuse", 3) == (seen["rule"], seen["verdict"], seen["count"])
    assert ["request-0", "request-2"] == [each["request_id"] for each in seen["examples"]]
    assert {"GET /v1/e/vote"} == {each["endpoint"] for each in seen["examples"]}


def test_calls_of_the_control_api_have_a_verdict_that_is_not_counted(known: LiveServer):
    answer = httpx.get(f"{known.url}/_emulator/clock")

    assert "refuse; rule=endpoint" == verdict(answer)
    assert {} == rules(known)


def test_each_namespace_counts_for_itself_until_its_reset(known: LiveServer):
    client = known.client("viewer", user="1", channel=CHANNEL)
    before = rules(known, "service").get("refuse exp", 0)

    answers = [httpx.get(f"{known.url}{path}/v1/e/vote", headers=client.headers) for path in ("/_ns/parity", "")]
    assert ["refuse; rule=exp"] * 2 == [verdict(each) for each in answers]
    assert {"refuse exp": 1} == rules(known)
    known.reset()

    assert {} == rules(known)
    assert before + 2 == rules(known, "service")["refuse exp"]
    inside = httpx.get(f"{known.url}/_ns/parity/_emulator/parity").json()["rules"]
    assert ["exp"] == [each["rule"] for each in inside]
    httpx.delete(f"{known.url}/_ns/parity").raise_for_status()


def test_a_query_for_other_counts_is_refused(known: LiveServer):
    answer = httpx.get(f"{known.url}/_emulator/parity?of=all")

    assert (400, 'Malformed "of" parameter') == (answer.status_code, answer.json()["reason"])


def test_a_bare_client_id_must_be_registered_in_production(known: LiveServer, live: LiveServer):
    answers = [
        httpx.post(f"{url}/v1/e/link/pin", headers={"Authorization": client_id})
        for url, client_id in ((known.url, CLIENT_ID), (known.url, OTHER_ID), (live.url, OTHER_ID))
    ]

    assert ["", "refuse; rule=registration", "unknown; rule=registration"] == [verdict(each) for each in answers]


def test_a_caller_has_the_rate_of_production(known: LiveServer):
    client = known.client("viewer", user="1", channel=CHANNEL, exp=EXP)

    verdicts = [verdict(client.get("user_info")) for _ in range(501)]

    assert [""] * 500 + ["refuse; rule=caller-rate"] == verdicts
    known.let_pass(1_000)
    assert "" == verdict(client.get("user_info"))


def test_refused_tokens_do_not_count_toward_the_rate(known: LiveServer):
    endless = known.client("viewer", user="1", channel=CHANNEL)
    for _ in range(501):
        endless.get("user_info")

    assert "" == verdict(known.client("viewer", user="1", channel=CHANNEL, exp=EXP).get("user_info"))


def test_production_keeps_state_for_longer(known: LiveServer):
    known.freeze()
    client = known.client("admin", channel=CHANNEL)  # without exp, so that the clock may move
    for store in ("channel_state", "channel_config"):
        client.post(store, json={"round": 1}).raise_for_status()

    def verdicts(*stores: str) -> list[str]:
        return [verdict(client.get(store)) for store in stores]

    lapsed = "differ; rule=lifetime"
    assert ["", ""] == verdicts("channel_state", "channel_config")
    known.advance(DAY)
    assert [lapsed] * 3 == verdicts("channel_state", "channel_config", "all_state")
    assert 409 == client.post(f"channel_state?expected={'0' * 64}", json={"round": 2}).status_code
    assert lapsed == verdict(client.patch("channel_state", json={"score": 1}).raise_for_status())
    assert [lapsed] == verdicts("channel_state")
    assert "" == verdict(client.post("channel_state", json={"round": 2}).raise_for_status())
    known.advance(29 * DAY)
    assert [lapsed] == verdicts("channel_config")


def test_the_journal_keeps_the_verdict_on_requests_and_messages(known: LiveServer):
    refused = known.client("viewer", user="1", channel=CHANNEL).get("vote")
    token = jwt.encode({"role": "viewer", "channel_id": CHANNEL}, SECRET)
    with SocketClient(known) as game:
        game.data("authenticate", data={"client_id": CLIENT_ID, "jwt": token})

    assert "refuse; rule=exp" == entry_of(known, refused)["production"]
    assert ["refuse; rule=exp"] == [each["production"] for each in entries_of(known, kind="frame")]


def test_calls_that_the_service_makes_itself_get_no_verdict(known: LiveServer):
    body = {"method": "POST", "path": "/v1/e/vote", "body": {"value": 1}, "client_id": CLIENT_ID, "role": "viewer"}

    answer = httpx.post(f"{known.url}/_emulator/call", json={**body, "user_id": "1", "channel_id": CHANNEL})

    assert 200 == answer.json()["status"]
    assert {} == rules(known)
    [entry] = entries_of(known, path="/v1/e/vote")
    assert "" == entry.get("production", "")


def test_an_unbound_pin_is_wrong_in_production(known: LiveServer):
    pin = httpx.post(f"{known.url}/v1/e/link/pin", headers={"Authorization": CLIENT_ID}).json()["pin"]

    with SocketClient(known) as game:
        game.data("authenticate", data={"client_id": CLIENT_ID, "pin": pin})

    assert {"refuse pin-channel": 1} == rules(known)

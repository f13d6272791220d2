"""Each response of the sandbox says what production would have done differently."""

from __future__ import annotations

import httpx
import jwt

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


# Helpers of the emulator


def issued(live: LiveServer, query: str = "") -> httpx.Response:
    """Request a token of the sandbox."""
    body = {"user_id": "1", "channel_id": CHANNEL, "extension_id": CLIENT_ID}
    return httpx.post(f"{live.url}/v1/e/authtoken{query}", json=body)


def test_without_extensions_the_stage_of_tokens_is_stated_once(live: LiveServer):
    before = rules(live, "service").get("unknown stage", 0)
    client = live.bearer(issued(live).json()["token"])

    assert ["", ""] == [vote(client), vote(client)]
    assert {"refuse endpoint": 1, "unknown stage": 1} == rules(live)
    assert 1 == rules(live, "service")["unknown stage"]
    assert before <= 1


def test_without_extensions_later_rules_are_applied_to_tokens_of_the_sandbox(live: LiveServer):
    client = live.bearer(issued(live).json()["token"])

    answer = client.post("pusher_broadcast", json={"event": "a", "target": "broadcast", "data": {}})

    assert "refuse; rule=role" == verdict(answer)


def test_a_token_for_a_helper_stands_for_one_of_the_platform(known: LiveServer):
    answer = issued(known, "?role=viewer&helper=1")

    assert ("", "") == (verdict(answer), vote(known.bearer(answer.json()["token"])))
    assert {} == rules(known)


def test_the_claim_of_helpers_has_no_effect_in_a_token_that_another_key_signed(known: LiveServer):
    other = {"key": b"a secret that no extension has, at all", "allowed_stage": "sandbox"}
    client = known.client("viewer", user="1", channel=CHANNEL, exp=EXP, helper=True, **other)

    assert "refuse; rule=signature" == vote(client)
    registered = known.client("viewer", user="1", channel=CHANNEL, exp=EXP, helper=True, allowed_stage="sandbox")
    assert "refuse; rule=stage" == vote(registered)


def test_a_token_for_a_helper_of_another_extension_is_judged(known: LiveServer):
    other = {"user_id": "1", "channel_id": CHANNEL, "extension_id": OTHER_ID}
    token = httpx.post(f"{known.url}/v1/e/authtoken?helper=1", json=other).json()["token"]

    assert "refuse; rule=claims" == vote(known.bearer(token))

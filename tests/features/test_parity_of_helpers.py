"""What production does with the tokens of the sandbox, and of what is not judged: the helpers of the emulator."""

from __future__ import annotations

import httpx
import pytest

from support.service import CHANNEL, CLIENT_ID, OTHER_ID, LiveServer, real_seconds
from support.verdicts import rules, verdict, vote

EXP = real_seconds() + 86_400


def issued(live: LiveServer, query: str = "") -> httpx.Response:
    """Request a token of the sandbox."""
    body = {"user_id": "1", "channel_id": CHANNEL, "extension_id": CLIENT_ID}
    return httpx.post(f"{live.url}/v1/e/authtoken{query}", json=body)


def test_production_has_no_authtoken_and_refuses_its_tokens(known: LiveServer):
    answer = issued(known)

    assert "refuse; rule=endpoint" == verdict(answer)
    assert "refuse; rule=stage" == vote(known.bearer(answer.json()["token"]))


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


@pytest.mark.parametrize("path", ["/_emulator/sdk.js", "/_emulator/platform-helper.js"])
def test_the_scripts_for_pages_are_not_judged(known: LiveServer, path: str):
    assert "" == verdict(httpx.get(f"{known.url}{path}"))
    assert {} == rules(known)


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

"""Each response of the sandbox says what production would have done differently."""

from __future__ import annotations

from base64 import b64encode

import httpx
import jwt
import pytest

from emulator.config.extensions import Extension
from emulator.config.settings import Limits, Settings
from support.journal import entries_of, entry_of
from support.pins import create_pin, validate
from support.service import (
    CHANNEL,
    CLIENT_ID,
    OTHER_ID,
    OTHER_SECRET,
    SECRET,
    LiveServer,
    live_server,
    real_seconds,
)
from support.socket_client import SocketClient, linked_game
from support.verdicts import rules, verdict, vote

DAY = 86_400_000
EXP = real_seconds() + 86_400


def test_a_valid_token_has_no_verdict(known: LiveServer):
    assert "" == vote(known.client("viewer", user="1", channel=CHANNEL, exp=EXP))


@pytest.mark.parametrize(
    ("expected", "claims"),
    [
        ("refuse; rule=signature", {"key": b"a secret that no extension has, at all"}),
        ("refuse; rule=secret", {"key": b64encode(SECRET)}),
        ("refuse; rule=secret", {"key": b64encode(SECRET).rstrip(b"=")}),
        ("refuse; rule=registration", {"client_id": OTHER_ID}),
        ("refuse; rule=stage", {"allowed_stage": "sandbox"}),
        ("refuse; rule=exp", {"exp": None}),
        ("refuse; rule=exp", {"exp": EXP * 1000}),
        ("refuse; rule=claims", {"extension_id": OTHER_ID}),
        ("refuse; rule=claims", {"allowed_stage": 7}),
    ],
)
def test_a_verdict_names_the_rule_that_refuses_the_token(known: LiveServer, expected: str, claims: dict[str, object]):
    client = known.client("viewer", **{"user": "1", "channel": CHANNEL, "exp": EXP, **claims})

    assert [expected, expected] == [vote(client), vote(client)]  # the second time from the cache


def test_without_a_secret_the_verdict_is_unknown(live: LiveServer):
    assert "unknown; rule=signature" == vote(live.client("viewer", user="1", channel=CHANNEL, exp=EXP))


def test_the_same_refusal_in_both_has_no_verdict(known: LiveServer):
    expired = known.client(
        "viewer", user="1", channel=CHANNEL, exp=real_seconds() - 3_600, key=b"no secret of the extension, 32 b"
    )

    answer = expired.get("vote")

    assert (401, "") == (answer.status_code, verdict(answer))


def test_verdicts_are_counted_with_the_first_and_the_latest_request(known: LiveServer):
    client = known.client("viewer", user="1", channel=CHANNEL)
    for number in range(3):
        client.get("vote", headers={"X-Request-Id": f"request-{number}"})

    answer = httpx.get(f"{known.url}/_emulator/parity").json()

    [seen] = answer["rules"]
    assert ("exp", "refuse", 3) == (seen["rule"], seen["verdict"], seen["count"])
    assert ["request-0", "request-2"] == [each["request_id"] for each in seen["examples"]]
    assert {"GET /v1/e/vote"} == {each["endpoint"] for each in seen["examples"]}


def test_a_reset_clears_the_counts_of_its_namespace_only(known: LiveServer):
    client = known.client("viewer", user="1", channel=CHANNEL)
    before = rules(known, "service").get("refuse exp", 0)
    client.get("vote")

    known.reset()

    assert {} == rules(known)
    assert before + 1 == rules(known, "service")["refuse exp"]


def test_calls_of_the_control_api_have_a_verdict_that_is_not_counted(known: LiveServer):
    answer = httpx.get(f"{known.url}/_emulator/clock")

    assert "refuse; rule=endpoint" == verdict(answer)
    assert {} == rules(known)


def test_a_method_that_production_does_not_know_gets_404_there(known: LiveServer):
    answer = httpx.put(f"{known.url}/v1/e/authtoken")

    assert (405, "refuse; rule=endpoint") == (answer.status_code, verdict(answer))


def test_the_control_of_namespaces_does_not_exist_in_production(known: LiveServer):
    assert "refuse; rule=endpoint" == verdict(httpx.get(f"{known.url}/_ns"))


def test_each_namespace_counts_for_itself(known: LiveServer):
    client = known.client("viewer", user="1", channel=CHANNEL)
    before = rules(known, "service").get("refuse exp", 0)

    answer = httpx.get(f"{known.url}/_ns/parity/v1/e/vote", headers=client.headers)

    assert "refuse; rule=exp" == verdict(answer)
    assert {} == rules(known)
    assert before + 1 == rules(known, "service")["refuse exp"]
    inside = httpx.get(f"{known.url}/_ns/parity/_emulator/parity").json()["rules"]
    assert ["exp"] == [each["rule"] for each in inside]
    httpx.delete(f"{known.url}/_ns/parity").raise_for_status()


def test_a_query_for_other_counts_is_refused(known: LiveServer):
    answer = httpx.get(f"{known.url}/_emulator/parity?of=all")

    assert (400, "Malformed of parameter") == (answer.status_code, answer.json()["reason"])


def test_a_bare_client_id_must_be_registered_in_production(known: LiveServer, live: LiveServer):
    answers = [
        httpx.post(f"{url}/v1/e/link/pin", headers={"Authorization": client_id})
        for url, client_id in ((known.url, CLIENT_ID), (known.url, OTHER_ID), (live.url, OTHER_ID))
    ]

    assert ["", "refuse; rule=registration", "unknown; rule=registration"] == [verdict(each) for each in answers]


def test_a_viewer_may_not_broadcast_as_a_page_in_production(known: LiveServer):
    body = {"event": f"sandbox:{CLIENT_ID}:hello", "data": {}, "target": "broadcast"}

    answers = [
        known.client(role, user="1", channel=CHANNEL, exp=EXP).post("pusher_broadcast", json=body).raise_for_status()
        for role in ("viewer", "broadcaster")
    ]

    assert ["refuse; rule=role", ""] == [verdict(each) for each in answers]


def test_a_caller_has_the_rate_of_production(known: LiveServer):
    known.freeze()
    client = known.client("viewer", user="1", channel=CHANNEL, exp=EXP)

    verdicts = [verdict(client.get("user_info")) for _ in range(501)]

    assert [""] * 500 + ["refuse; rule=caller-rate"] == verdicts
    known.advance(1_000)
    assert "" == verdict(client.get("user_info"))


def test_refused_tokens_do_not_count_toward_the_rate(known: LiveServer):
    known.freeze()
    endless = known.client("viewer", user="1", channel=CHANNEL)
    for _ in range(501):
        endless.get("user_info")

    assert "" == verdict(known.client("viewer", user="1", channel=CHANNEL, exp=EXP).get("user_info"))


def test_wrong_pins_are_limited_in_production(known: LiveServer):
    known.freeze()
    broadcaster = known.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=EXP)

    guesses = [broadcaster.post("validate_pin", json={"pin": "AAAAAA"}) for _ in range(11)]

    assert [(400, "")] * 10 + [(400, "refuse; rule=pin-guesses")] == [
        (each.status_code, verdict(each)) for each in guesses
    ]
    assert 200 == validate(broadcaster, create_pin(broadcaster))
    assert {"refuse pin-guesses": 2} == rules(known)


def test_an_unbound_pin_is_wrong_in_production(known: LiveServer):
    pin = httpx.post(f"{known.url}/v1/e/link/pin", headers={"Authorization": CLIENT_ID}).json()["pin"]

    with SocketClient(known) as game:
        game.data("authenticate", data={"client_id": CLIENT_ID, "pin": pin})

    assert {"refuse pin-channel": 1} == rules(known)


def test_a_linked_game_has_no_verdict(known: LiveServer):
    with linked_game(known, exp=EXP) as game:
        game.data("get", "state", {"state_id": "channel"})

    assert {} == rules(known)


def test_production_refuses_all_messages_after_a_token_that_it_refuses(known: LiveServer):
    token = jwt.encode({"role": "broadcaster", "channel_id": CHANNEL}, SECRET)
    with SocketClient(known) as game:
        game.data("authenticate", data={"client_id": CLIENT_ID, "jwt": token})
        game.data("get", "state", {"state_id": "channel"})
        game.data("subscribe", "authentication")  # needs no rights

    assert {"refuse exp": 2} == rules(known)


def test_production_keeps_state_for_longer(known: LiveServer):
    known.freeze()
    client = known.client("admin", channel=CHANNEL)  # without exp, so that the clock may move
    for store in ("channel_state", "channel_config"):
        client.post(store, json={"round": 1}).raise_for_status()

    assert ["", ""] == [verdict(client.get(store)) for store in ("channel_state", "channel_config")]
    known.advance(DAY)
    assert ["differ; rule=lifetime"] * 3 == [
        verdict(client.get(store)) for store in ("channel_state", "channel_config", "all_state")
    ]
    known.advance(29 * DAY)
    assert ["", "differ; rule=lifetime"] == [
        verdict(client.get(store)) for store in ("channel_state", "channel_config")
    ]


def test_a_store_written_again_is_the_same_in_production(known: LiveServer):
    known.freeze()
    client = known.client("admin", channel=CHANNEL)
    client.post("channel_state", json={"round": 1}).raise_for_status()
    known.advance(DAY)

    patched = client.patch("channel_state", json={"score": 1}).raise_for_status()
    read = client.get("channel_state")
    replaced = client.post("channel_state", json={"round": 2}).raise_for_status()

    assert ["differ; rule=lifetime"] * 2 + [""] * 2 == [
        verdict(each) for each in (patched, read, replaced, client.get("channel_state"))
    ]


def test_a_refused_write_of_a_store_replaces_nothing(known: LiveServer):
    known.freeze()
    client = known.client("admin", channel=CHANNEL)
    client.post("channel_state", json={"round": 1}).raise_for_status()
    known.advance(DAY)

    refused = client.post(f"channel_state?expected={'0' * 64}", json={"round": 2})

    assert (409, "differ; rule=lifetime") == (refused.status_code, verdict(refused))
    assert "differ; rule=lifetime" == verdict(client.get("channel_state"))


def test_production_keeps_questions_of_trivia_for_longer(known: LiveServer):
    known.freeze()
    client = known.client("admin", channel=CHANNEL)
    client.post("curated_poll_edit", json={"id": "q", "name": "?", "options": [{"id": "a"}]}).raise_for_status()
    known.advance(DAY)

    answer = client.get("curated_poll?id=q")

    assert (404, "differ; rule=lifetime") == (answer.status_code, verdict(answer))


def purchase(known: LiveServer, transaction: str, *, buyer: str, poster: str, key: bytes = SECRET) -> tuple[int, str]:
    """Post a receipt; return the status and the verdict."""
    data = {"transactionId": transaction, "userId": buyer, "product": {"sku": "hat"}}
    token = jwt.encode({"data": data, "exp": EXP}, key)
    role = "admin" if poster == "admin" else "viewer"
    client = known.client(role, user=poster, channel=CHANNEL, exp=EXP)
    answer = client.post("bits/transactions", json={"transactionReceipt": token})
    return answer.status_code, verdict(answer)


def test_production_checks_receipts(known: LiveServer):
    assert (201, "") == purchase(known, "t1", buyer="5", poster="5")
    assert (201, "refuse; rule=receipt") == purchase(known, "t2", buyer="5", poster="5", key=b"not the secret" * 3)
    assert (201, "refuse; rule=receipt") == purchase(known, "t3", buyer="5", poster="6")
    assert (400, "") == purchase(known, "t1", buyer="5", poster="6")


def test_production_lets_an_admin_post_a_receipt_again(known: LiveServer):
    purchase(known, "t1", buyer="5", poster="5")

    assert (400, "differ; rule=receipt") == purchase(known, "t1", buyer="5", poster="admin")


@pytest.mark.parametrize("settings", [Settings(journal=0), Settings(has_peers=True)], ids=["no journal", "workers"])
def test_verdicts_need_no_journal_and_no_record_of_changes(settings: Settings):
    with live_server(settings) as live:
        client = live.client("viewer", user="1", channel=CHANNEL)

        assert ["refuse; rule=exp"] * 2 == [vote(client), verdict(client.get("user_info"))]
        assert {"refuse exp": 2} == rules(live)


def test_production_gives_no_verdict(production: LiveServer):
    answers = [
        production.client("viewer", user="1", channel=CHANNEL, **claims).get("vote")
        for claims in ({}, {"exp": EXP}, {"exp": EXP, "allowed_stage": "sandbox"})
    ]

    assert [(401, ""), (200, ""), (403, "")] == [(each.status_code, verdict(each)) for each in answers]


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


def test_a_rate_set_for_the_sandbox_also_applies_to_production():
    with live_server(Settings(limits=Limits(caller_rate=1))) as live:
        live.freeze()
        client = live.client("admin", channel=CHANNEL)
        answers = [client.get("user_info") for _ in range(51)]

    assert [200] * 50 + [429] == [each.status_code for each in answers]
    assert {"unknown; rule=signature"} == {verdict(each) for each in answers[:50]}
    assert "" == verdict(answers[50])


def test_unverified_tokens_get_the_verdict_of_the_first_definite_rule(live: LiveServer):
    body = {"event": f"sandbox:{CLIENT_ID}:hello", "data": {}, "target": "broadcast"}

    answer = live.client("viewer", user="1", channel=CHANNEL, exp=EXP).post("pusher_broadcast", json=body)

    assert "refuse; rule=role" == verdict(answer)


@pytest.mark.parametrize("exp", [EXP * 1000, 10**11])
def test_an_exp_in_milliseconds_is_refused_in_production_only(live: LiveServer, exp):
    assert "refuse; rule=exp" == vote(live.client("viewer", user="1", channel=CHANNEL, exp=exp))


def test_a_token_is_verified_again_after_the_extensions_change(known: LiveServer):
    client = known.client("viewer", user="1", channel=CHANNEL, exp=EXP, key=OTHER_SECRET)
    before = known.service.extensions.current
    assert "refuse; rule=signature" == vote(client)

    known.service.replace_extensions({CLIENT_ID: Extension(CLIENT_ID, (OTHER_SECRET,))})
    try:
        assert "" == vote(client)
    finally:
        known.service.replace_extensions(before)

"""Limits on failed attempts to authenticate, per connection, address and client id (ruling T4)."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

import pytest
from websockets.exceptions import ConnectionClosed

from emulator.core.clock import MINUTE, SECOND
from support.authentication import authenticate, refused, status_of_pin
from support.service import CHANNEL, CLIENT_ID, SECRET, LiveServer
from support.socket_client import SocketClient, request_pin

FAR_AWAY = 10**11 - 1


def bound_pin(live: LiveServer, client_id: str = CLIENT_ID, key: bytes = SECRET) -> str:
    client = live.client("broadcaster", user=CHANNEL, channel=CHANNEL, client_id=client_id, key=key, exp=FAR_AWAY)
    return str(client.post("link/pin").raise_for_status().json()["pin"])


def guess(live: LiveServer, times: int, *, address: str = "203.0.113.1") -> list[int]:
    """Try wrong PINs from an address, ten on each connection; return the statuses."""
    statuses: list[int] = []
    for begin in range(0, times, 10):
        with SocketClient(live, additional_headers={"X-Forwarded-For": address}) as game:
            statuses += [refused(game, pin="ZZZZZZ")[0] for _ in range(begin, min(times, begin + 10))]
    return statuses


def guess_from_many(live: LiveServer) -> None:
    """Use up the wrong PINs that a client id has in a minute, from six addresses."""
    for number in range(6):
        assert [400] * 10 == guess(live, 10, address=f"198.51.100.{number}")


def validate(live: LiveServer, pin: str, channel: str = CHANNEL) -> int:
    """Return the status of `validate_pin` by a channel's broadcaster."""
    broadcaster = live.client("broadcaster", user=channel, channel=channel, exp=FAR_AWAY)
    return broadcaster.post("validate_pin", json={"pin": pin}).status_code


def test_requests_after_the_tenth_failure_are_dropped(live, game, broadcaster):
    for _ in range(10):
        game.send("authenticate", data={"client_id": CLIENT_ID, "pin": "ZZZZZZ"})
    game.send("set", "state", {"state_id": "channel", "state": {"too": "late"}})

    replies = [game.reply() for _ in range(10)]

    assert [400] * 10 == [reply["errors"][0]["status"] for reply in replies]
    with pytest.raises(ConnectionClosed, match="1008"):
        game.message()
    assert {} == broadcaster.get("channel_state").json()


def test_the_sandbox_counts_wrong_pins_per_connection_only(live):
    assert [400] * 100 == guess(live, 100)
    assert 200 == status_of_pin(live, request_pin(live))


def test_an_address_has_ten_wrong_pins_a_minute(frozen_production):
    assert [*[400] * 10, 429, 429] == guess(frozen_production, 12)
    assert 429 == status_of_pin(frozen_production, bound_pin(frozen_production))


def test_simultaneous_wrong_pins_are_all_counted(frozen_production):
    headers = {"X-Forwarded-For": "203.0.113.1"}
    with ExitStack() as stack:
        games = [stack.enter_context(SocketClient(frozen_production, additional_headers=headers)) for _ in range(30)]
        for game in games:
            game.send("authenticate", data={"client_id": CLIENT_ID, "pin": "ZZZZZZ"})
        statuses = [game.reply()["errors"][0]["status"] for game in games]

    assert {400: 10, 429: 20} == Counter(statuses)


def test_a_correct_pin_works_while_other_addresses_guess(frozen_production):
    guess_from_many(frozen_production)

    assert 200 == status_of_pin(frozen_production, bound_pin(frozen_production))
    assert 200 == validate(frozen_production, bound_pin(frozen_production))


def test_the_429_says_when_to_retry(frozen_production):
    guess(frozen_production, 10)
    frozen_production.let_pass(4 * SECOND)

    with SocketClient(frozen_production, additional_headers={"X-Forwarded-For": "203.0.113.1"}) as game:
        error = game.error("authenticate", data={"client_id": CLIENT_ID, "pin": "ZZZZZZ"})

    assert (429, 429, "Too Many Requests") == (error["status"], error["number"], error["title"])
    assert "too many wrong PINs from this address; retry in 2 s" == error["detail"]
    frozen_production.let_pass(2 * SECOND)
    assert [400, 429] == guess(frozen_production, 2)


def test_wrong_pins_of_validate_pin_count_per_channel_and_user(frozen_production):
    assert [*[400] * 10, 429] == [validate(frozen_production, "ZZZZZZ") for _ in range(11)]

    assert 400 == validate(frozen_production, "ZZZZZZ", channel="888")
    assert 200 == status_of_pin(frozen_production, bound_pin(frozen_production))
    frozen_production.let_pass(MINUTE)
    assert 200 == validate(frozen_production, bound_pin(frozen_production))


def test_a_refresh_token_is_valid_while_pins_are_refused(frozen_production):
    with SocketClient(frozen_production, additional_headers={"X-Forwarded-For": "203.0.113.1"}) as game:
        refresh = authenticate(game, pin=bound_pin(frozen_production))["refresh"]
        guess(frozen_production, 11)

        assert CHANNEL == authenticate(game, refresh=refresh)["twitch_id"]


def test_wrong_pins_of_one_broadcaster_leave_the_owner_theirs(frozen_production):
    other = frozen_production.client("broadcaster", user="4711", channel=CHANNEL, exp=FAR_AWAY)
    statuses = [other.post("validate_pin", json={"pin": "ZZZZZZ"}).status_code for _ in range(12)]

    assert [*[400] * 10, 429, 429] == statuses
    assert 200 == validate(frozen_production, bound_pin(frozen_production))


def test_valid_pins_are_not_counted(frozen_production):
    pin = bound_pin(frozen_production)

    assert [200] * 70 == [status_of_pin(frozen_production, pin) for _ in range(70)]

"""Limits on failed attempts to authenticate, per connection and per client id (ruling T4)."""

from __future__ import annotations

import pytest
from websockets.exceptions import ConnectionClosed

from emulator.clock import END_OF_TIME, MINUTE, SECOND
from support.authentication import authenticate, refused, status_of_pin
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, OTHER_SECRET, SECRET, LiveServer
from support.socket_client import SocketClient, request_pin

FAR_AWAY = END_OF_TIME // SECOND


def bound_pin(live: LiveServer, client_id: str = CLIENT_ID, key: bytes = SECRET) -> str:
    client = live.client("broadcaster", user=CHANNEL, channel=CHANNEL, client_id=client_id, key=key, exp=FAR_AWAY)
    return str(client.post("link/pin").raise_for_status().json()["pin"])


def guess(live: LiveServer, times: int, client_id: str = CLIENT_ID) -> list[int]:
    """Try wrong PINs, ten on each connection; return the statuses."""
    statuses: list[int] = []
    for begin in range(0, times, 10):
        with SocketClient(live) as game:
            statuses += [refused(game, client_id, pin="ZZZZZZ")[0] for _ in range(begin, min(times, begin + 10))]
    return statuses


@pytest.mark.ruling("T4")
@pytest.mark.parametrize("credential", [{"pin": "ZZZZZZ"}, {"refresh": "x"}, {"jwt": "x"}, {}])
def test_the_tenth_failure_is_answered_and_closes_the_connection(unlinked, credential):
    statuses = [refused(unlinked, **credential)[0] for _ in range(10)]

    assert {400} == {400 if status == 401 else status for status in statuses}
    with pytest.raises(ConnectionClosed, match="1008"):
        unlinked.message()


@pytest.mark.ruling("T4")
def test_nine_failures_keep_the_connection_open(live, unlinked):
    for _ in range(9):
        refused(unlinked, pin="ZZZZZZ")

    assert CHANNEL == authenticate(unlinked, pin=request_pin(live))["twitch_id"]


@pytest.mark.ruling("T4")
def test_requests_after_the_tenth_failure_are_dropped(live, game, broadcaster):
    for _ in range(10):
        game.send("authenticate", data={"client_id": CLIENT_ID, "pin": "ZZZZZZ"})
    game.send("set", "state", {"state_id": "channel", "state": {"too": "late"}})

    replies = [game.reply() for _ in range(10)]

    assert [400] * 10 == [reply["errors"][0]["status"] for reply in replies]
    with pytest.raises(ConnectionClosed, match="1008"):
        game.message()
    assert {} == broadcaster.get("channel_state").json()


@pytest.mark.ruling("T4")
def test_the_sandbox_counts_wrong_pins_per_connection_only(live):
    assert [400] * 100 == guess(live, 100)
    assert 200 == status_of_pin(live, request_pin(live))


@pytest.mark.ruling("T4")
def test_after_60_wrong_pins_a_minute_production_refuses_even_valid_ones(frozen_production):
    pin = bound_pin(frozen_production)

    assert [400] * 60 == guess(frozen_production, 60)
    assert [429, 429] == [status_of_pin(frozen_production, pin), *guess(frozen_production, 1)]


@pytest.mark.ruling("T4")
def test_the_429_says_when_to_retry(frozen_production):
    guess(frozen_production, 60)
    frozen_production.service.clock.advance(20 * SECOND)

    with SocketClient(frozen_production) as game:
        error = game.error("authenticate", data={"client_id": CLIENT_ID, "pin": "ZZZZZZ"})

    assert (429, 429, "Too Many Requests") == (error["status"], error["number"], error["title"])
    assert "retry in 40 s" in error["detail"]


@pytest.mark.ruling("T4")
def test_wrong_pins_count_per_client_id(frozen_production):
    guess(frozen_production, 60)

    assert 200 == status_of_pin(frozen_production, bound_pin(frozen_production, OTHER_ID, OTHER_SECRET), OTHER_ID)


@pytest.mark.ruling("T4")
def test_the_limit_on_wrong_pins_ends_after_a_minute(frozen_production):
    guess(frozen_production, 60)

    frozen_production.service.clock.advance(MINUTE - 1)
    before = status_of_pin(frozen_production, bound_pin(frozen_production))
    frozen_production.service.clock.advance(1)

    assert [429, 200] == [before, status_of_pin(frozen_production, bound_pin(frozen_production))]


@pytest.mark.ruling("T4")
def test_valid_pins_are_not_counted(frozen_production):
    pin = bound_pin(frozen_production)

    assert [200] * 70 == [status_of_pin(frozen_production, pin) for _ in range(70)]


@pytest.mark.ruling("T4")
def test_wrong_pins_over_rest_count_too(frozen_production):
    broadcaster = frozen_production.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=FAR_AWAY)

    statuses = [broadcaster.post("validate_pin", json={"pin": "ZZZZZZ"}).status_code for _ in range(61)]

    assert [*[400] * 60, 429] == statuses
    assert 429 == status_of_pin(frozen_production, bound_pin(frozen_production))


@pytest.mark.ruling("T4")
def test_a_refresh_token_is_valid_while_pins_are_refused(frozen_production):
    with SocketClient(frozen_production) as game:
        refresh = authenticate(game, pin=bound_pin(frozen_production))["refresh"]
        guess(frozen_production, 60)

        assert CHANNEL == authenticate(game, refresh=refresh)["twitch_id"]

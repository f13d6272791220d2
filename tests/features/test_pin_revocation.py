"""PINs over REST: expiry, existence and revocation (PIN and tokens; rulings T1, T2, T3)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator.clock import MINUTE, SECOND
from emulator.config.environment import PRODUCTION
from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from support.pins import create_pin, linked_channel, token_exists, validate
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, SECRET, Client, LiveServer, live_server, real_seconds
from support.socket_client import SocketClient, linked_game


@pytest.fixture
def neighbor(live: LiveServer) -> Client:
    """The owner of another channel."""
    return live.client("broadcaster", user="888", channel="888")


@pytest.fixture
def named(live: LiveServer) -> Iterator[Client]:
    """A client whose Authorization header contains only the client id."""
    with Client(base_url=f"{live.url}/v1/e/", headers={"Authorization": CLIENT_ID}) as client:
        yield client


@pytest.mark.ruling("T1", "T2")
def test_an_unbound_pin_expires_after_five_minutes(live, named, broadcaster):
    live.freeze()
    pin = create_pin(named)

    live.advance(5 * MINUTE - 1)
    before = validate(broadcaster, pin)
    live.advance(1)

    assert [200, 400] == [before, validate(broadcaster, pin)]


@pytest.mark.ruling("T1")
def test_validation_does_not_extend_the_lifetime_of_a_pin(live, named, broadcaster):
    live.freeze()
    pin = create_pin(named)
    live.advance(4 * MINUTE)
    validate(broadcaster, pin)

    live.advance(MINUTE)

    assert 400 == validate(broadcaster, pin)


@pytest.mark.ruling("T2")
def test_a_token_exists_once_a_game_has_authenticated(broadcaster, live):
    results = [token_exists(broadcaster)]
    pin = create_pin(broadcaster)
    results.append(token_exists(broadcaster))

    linked_channel(live, pin)

    assert [False, False, True] == [*results, token_exists(broadcaster)]


def test_expired_pins_are_not_listed_by_the_clock(live, broadcaster, stranger):
    live.freeze()
    pins = [create_pin(broadcaster), create_pin(stranger, "/v1/e/pin", json={"identifier": CLIENT_ID})]
    validate(broadcaster, pins[1])

    expired = live.advance(5 * MINUTE)

    assert [] == [each for each in pins if each in str(expired)]


@pytest.mark.slow
@pytest.mark.ruling("T3")
def test_a_pin_and_its_tokens_survive_a_restart(tmp_path):
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
    settings = Settings(PRODUCTION, data=f"sqlite:///{tmp_path}/kept.db", extensions=extensions)
    exp = real_seconds() + 10 * MINUTE // SECOND
    with live_server(settings) as live:
        client = live.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=exp)
        pin = create_pin(client)
        with SocketClient(live) as game:
            pair = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": pin})

    with live_server(settings) as live, SocketClient(live) as game:
        by_pin = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": pin})
        by_refresh_token = game.data("authenticate", data={"client_id": CLIENT_ID, "refresh": pair["refresh"]})
        status = live.bearer(pair["jwt"]).get("user_info").status_code

    assert (CHANNEL, CHANNEL, 200) == (by_pin["twitch_id"], by_refresh_token["twitch_id"], status)


@pytest.mark.ruling("T2", "T3")
def test_delete_revokes_the_pins_of_the_channel(live, broadcaster, named):
    pins = [create_pin(broadcaster), create_pin(named)]
    validate(broadcaster, pins[1])

    answer = broadcaster.delete("pin")

    assert (200, {}) == (answer.status_code, answer.json())
    with SocketClient(live) as game:
        errors = [game.error("authenticate", data={"client_id": CLIENT_ID, "pin": each}) for each in pins]
    assert [400, 400] == [error["status"] for error in errors]


@pytest.mark.ruling("T2")
def test_delete_without_pins_is_not_an_error(broadcaster):
    assert [200, 200] == [broadcaster.delete("pin").status_code for _ in range(2)]


@pytest.mark.ruling("T2")
def test_delete_does_not_affect_other_channels_and_client_ids(live, broadcaster, neighbor):
    other = live.client("broadcaster", user=CHANNEL, channel=CHANNEL, client_id=OTHER_ID)
    pins = [create_pin(client) for client in (neighbor, other)]
    games = [linked_game(live, "888"), linked_game(live, CHANNEL, OTHER_ID)]

    broadcaster.delete("pin")

    assert ["888", CHANNEL] == [linked_channel(live, pins[0]), linked_channel(live, pins[1], OTHER_ID)]
    assert [True, True] == [token_exists(client) for client in (neighbor, other)]
    for each in games:
        each.socket.close()


@pytest.mark.ruling("T2")
def test_delete_does_not_affect_unbound_pins(broadcaster, named):
    pin = create_pin(named)

    broadcaster.delete("pin")

    assert 200 == validate(broadcaster, pin)


@pytest.mark.ruling("T2")
def test_after_delete_no_token_exists_until_a_game_is_linked_again(live, broadcaster):
    linked_game(live).socket.close()
    results = [token_exists(broadcaster)]
    broadcaster.delete("pin")
    results.append(token_exists(broadcaster))

    linked_game(live).socket.close()

    assert [True, False, True] == [*results, token_exists(broadcaster)]


@pytest.mark.ruling("T2", "T3")
def test_delete_revokes_pins_for_validate_pin(broadcaster, named):
    bound, validated = create_pin(broadcaster), create_pin(named)
    validate(broadcaster, validated)

    broadcaster.delete("pin")

    assert [400, 400] == [validate(broadcaster, bound), validate(broadcaster, validated)]

"""`authenticate` on the socket, with PINs and JWTs (rulings T1, T3, X1, X4)."""

from __future__ import annotations

import pytest

from emulator.core.clock import DAY, MINUTE
from emulator.core.config.extensions import Extension
from emulator.core.config.settings import Settings
from support.authentication import authenticate, refused, status_of_pin, unbound_pin
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, SECRET, LiveServer, live_server
from support.socket_client import SocketClient, request_pin

FAR_AWAY = 10**11 - 1
START = 2_000_000_000_000


def channel_read(game: SocketClient) -> tuple[int, str]:
    """The status of a read of the channel state, and the channel it belongs to."""
    reply = game.request("get", "state", {"state_id": "channel"})
    return (200, reply["data"]["state"].get("of", "")) if "data" in reply else (reply["errors"][0]["status"], "")


@pytest.fixture
def channels(live: LiveServer) -> None:
    """Two channels whose state contains the channel id."""
    for channel in (CHANNEL, "888"):
        live.client("broadcaster", user=channel, channel=channel).post("channel_state", json={"of": channel})


def test_a_pin_returns_a_pair_of_tokens_and_the_channel(live, unlinked):
    answer = authenticate(unlinked, pin=request_pin(live))

    assert {"jwt", "refresh", "twitch_id", "twitch_name"} == answer.keys()
    assert (CHANNEL, CHANNEL) == (answer["twitch_id"], answer["twitch_name"])
    assert [] == [value for value in answer.values() if not isinstance(value, str)]


def test_use_does_not_extend_a_pin(live):
    live.freeze()
    pin = request_pin(live)
    live.advance(4 * MINUTE)
    status_of_pin(live, pin)

    live.advance(MINUTE)

    assert 400 == status_of_pin(live, pin)


@pytest.mark.parametrize("template", [" {}", "{} ", "{}\n", "{}\0", "\ufeff{}"])
def test_a_pin_with_other_characters_around_it_is_wrong(live, unlinked, template):
    assert (400, "Bad Request") == refused(unlinked, pin=template.format(request_pin(live)))


@pytest.mark.parametrize("credential", [{"pin": "ZZZZZZ"}, {"refresh": "x.y.z"}, {"jwt": "x.y.z"}, {}, {"pin": 1}])
def test_a_failed_later_attempt_keeps_rights_and_subscriptions(game, broadcaster, channels, credential):
    game.data("subscribe", "state", {"topic_id": "channel"})

    refused(game, **credential)

    assert (200, CHANNEL) == channel_read(game)
    broadcaster.patch("channel_state", json={"x": 1})
    assert {"of": CHANNEL, "x": 1} == game.update()["data"]["state"]


def test_the_pin_of_another_client_id_is_wrong(live, unlinked):
    assert (400, "Bad Request") == refused(unlinked, pin=request_pin(live, client_id=OTHER_ID))
    assert CHANNEL == authenticate(unlinked, OTHER_ID, pin=request_pin(live, client_id=OTHER_ID))["twitch_id"]


def test_a_connection_can_switch_to_another_channel(live, game, channels):
    before = channel_read(game)

    authenticate(game, pin=request_pin(live, "888"))

    assert [(200, CHANNEL), (200, "888")] == [before, channel_read(game)]


def test_rights_outlive_the_access_token(live):
    live.set(START)
    with SocketClient(live) as game:
        token = authenticate(game, pin=request_pin(live))["jwt"]

        live.advance(7 * DAY)

        game.data("set", "state", {"state_id": "channel", "state": {"of": "later"}})
        assert (401, (200, "later")) == (live.bearer(token).get("user_info").status_code, channel_read(game))


def test_a_pin_ends_with_the_token_that_made_it(live, unlinked):
    live.set(START)
    token = authenticate(unlinked, pin=request_pin(live))["jwt"]
    live.advance(7 * DAY - MINUTE)
    pin = live.bearer(token).post("link/pin").raise_for_status().json()["pin"]
    before = status_of_pin(live, pin)

    live.advance(MINUTE)

    assert (200, 400) == (before, status_of_pin(live, pin))


def test_a_broadcasters_jwt_gets_the_same_response_as_a_pin(live, unlinked):
    first = authenticate(unlinked, pin=request_pin(live))

    second = authenticate(unlinked, jwt=first["jwt"])

    assert first.keys() == second.keys()
    assert CHANNEL == authenticate(unlinked, refresh=second["refresh"])["twitch_id"]


@pytest.mark.parametrize(
    "credential",
    [
        {},
        {"pin": None},
        {"pin": "ABCDEF", "refresh": "x"},
        {"pin": "ABCDEF", "jwt": "x"},
        {"pin": 123456},
        {"pin": ["ABCDEF"]},
        {"refresh": 1},
        {"refresh": {}},
        {"jwt": True},
        {"client_id": 7, "pin": "ABCDEF"},
        {"client_id": None, "pin": "ABCDEF"},
    ],
)
def test_authenticate_requires_exactly_one_credential_as_a_string(unlinked, credential):
    data = {"client_id": CLIENT_ID, **credential}

    assert (400, "Bad Request") == (lambda e: (e["status"], e["title"]))(unlinked.error("authenticate", data=data))


def test_unknown_members_are_ignored(live, unlinked):
    assert CHANNEL == authenticate(unlinked, pin=request_pin(live), game_id="a game", x=None)["twitch_id"]


def test_an_unbound_sandbox_pin_links_the_channel_sandbox(live, unlinked):
    assert "sandbox" == authenticate(unlinked, pin=unbound_pin(live))["twitch_id"]


def test_an_unbound_sandbox_pin_links_the_extensions_owner():
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,), "1001"), OTHER_ID: Extension(OTHER_ID, (SECRET,))}
    with live_server(Settings(extensions=extensions)) as live, SocketClient(live) as game:
        owned, ownerless = (
            authenticate(game, client_id, pin=unbound_pin(live, client_id))["twitch_id"]
            for client_id in (CLIENT_ID, OTHER_ID)
        )

    assert ("1001", "sandbox") == (owned, ownerless)


def test_a_bound_sandbox_pin_links_the_broadcasters_channel(live, unlinked, broadcaster):
    pin = unbound_pin(live)
    before = authenticate(unlinked, pin=pin)["twitch_id"]

    broadcaster.post("validate_pin", json={"pin": pin})

    assert ["sandbox", CHANNEL] == [before, authenticate(unlinked, pin=pin)["twitch_id"]]


def test_production_refuses_a_pin_that_no_broadcaster_has_accepted(frozen_production):
    pin = unbound_pin(frozen_production)
    broadcaster = frozen_production.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=FAR_AWAY)
    before = status_of_pin(frozen_production, pin)

    broadcaster.post("validate_pin", json={"pin": pin}).raise_for_status()

    assert [400, 200] == [before, status_of_pin(frozen_production, pin)]


@pytest.mark.parametrize("client_id", ["{} {}", '"{}', " {}", "{}\n{}"])
def test_a_client_id_that_contains_a_token_gets_400(production, client_id):
    token = production.client("viewer", user="5", channel=CHANNEL, exp=FAR_AWAY).headers["Authorization"].split()[1]

    with SocketClient(production) as game:
        assert 400 == refused(game, client_id.format(CLIENT_ID, token), jwt=token)[0]

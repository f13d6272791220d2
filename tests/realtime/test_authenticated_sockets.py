"""Limits of sockets after authentication, and of pages: no user, no network and no crowd keeps games out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from emulator.core.environment import AnonymousLimits
from emulator.core.settings import Limits, Settings
from realtime.test_unauthenticated_sockets import ONE, OTHER, THIRD, closed, game_from, limited_count
from support.authentication import authenticate
from support.pusher_client import PusherClient
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, LiveServer, live_server, real_seconds
from support.socket_client import SocketClient

EXP = real_seconds() + 3_600
REPLACED = (1008, "replaced by a newer connection")


class Sockets:
    """Opens sockets of a service, and closes them at the end."""

    def __init__(self, live: LiveServer, stack: ExitStack) -> None:
        self.live = live
        self._stack = stack

    def token(self, role: str = "viewer", **claims: Any) -> dict[str, str]:
        """Return the client id and the token of a user of channel 777."""
        client_id = claims.pop("client_id", CLIENT_ID)
        client = self.live.client(role, client_id=client_id, **{"channel": CHANNEL, "exp": EXP} | claims)
        return {"client_id": client_id, "jwt": client.headers["Authorization"].split()[1]}

    def open(self, role: str = "viewer", address: str = ONE, **claims: Any) -> SocketClient:
        """Return an authenticated socket."""
        game = self._stack.enter_context(game_from(self.live, address))
        game.data("authenticate", data=self.token(role, **claims))
        return game

    def fill(self, *users: str, address: str = ONE) -> list[SocketClient]:
        return [self.open(user=user, address=address) for user in users]

    def refusal(self, role: str = "viewer", address: str = ONE, **claims: Any) -> str:
        """Return why a socket may not authenticate, as 429 says."""
        with game_from(self.live, address) as game:
            error = game.error("authenticate", data=self.token(role, **claims))
        assert 429 == error["status"]
        return str(error["detail"])

    def become(self, game: SocketClient, role: str = "viewer", **claims: Any) -> None:
        game.data("authenticate", data=self.token(role, **claims))


@contextmanager
def limited(sockets: int = 10_000, **anonymous: int) -> Iterator[Sockets]:
    limits = Limits(sockets=sockets, anonymous=AnonymousLimits(**anonymous))
    settings = Settings(limits=limits, proxies=("127.0.0.1",))
    with live_server(settings) as live, ExitStack() as stack:
        yield Sockets(live, stack)


@pytest.mark.parametrize("role", ["broadcaster", "admin", "backend"])
def test_viewers_leave_a_quarter_of_the_sockets_to_other_roles(role: str):
    with limited(sockets=8) as sockets:
        sockets.fill(*"123456")
        reason = sockets.refusal(user="7")

        for number in range(2):
            sockets.open(role, user=f"{number}", channel=f"{number}")

        assert f"6 connections of viewers with client id {CLIENT_ID} are open; the limit is 6" == reason
        assert f"8 connections with client id {CLIENT_ID} are open; the limit is 8" == sockets.refusal(role, user="9")


def test_a_user_has_a_number_of_sockets_from_all_addresses_together():
    with limited(address_sockets=2) as sockets:
        sockets.open(user="1", opaque="Uabc", address=ONE)
        sockets.open(opaque="Uabc", address=OTHER, channel="888")

        reason = sockets.refusal(opaque="Uabc", address=THIRD)

        assert "2 connections of user Uabc are open; the limit is 2" == reason
        sockets.fill("2", "3", "4")
        sockets.open(opaque="Uabc", client_id=OTHER_ID)


@pytest.mark.parametrize("address", [ONE, OTHER])
def test_a_channel_has_a_number_of_sockets_of_its_broadcaster(address: str):
    with limited(address_sockets=2) as sockets:
        sockets.open("broadcaster", user=CHANNEL)
        sockets.open("broadcaster", user="5")  # whichever user the token names

        reason = sockets.refusal("broadcaster", address, user=CHANNEL)

        assert f"2 connections of channel {CHANNEL} are open; the limit is 2" == reason
        sockets.open("broadcaster", user="888", channel="888")
        sockets.open(user=CHANNEL)


@pytest.mark.parametrize("role", ["admin", "backend"])
@pytest.mark.parametrize("claims", [{}, {"user": "9001"}, {"channel": None}], ids=str)
def test_the_servers_of_an_extension_have_no_limit_but_its_own(role: str, claims: dict[str, Any]):
    with limited(address_sockets=1, address_pages=1, sockets=8) as sockets:
        for _ in range(8):
            sockets.open(role, **claims)

        sockets.refusal(role, **claims)


def test_an_address_has_a_number_of_sockets_of_viewers():
    with limited(address_pages=2) as sockets:
        sockets.fill("1", "2")

        reason = sockets.refusal(user="3")

        of = f"connections of viewers with client id {CLIENT_ID} from this address"
        assert f"2 {of} are open; the limit is 2" == reason
        sockets.fill("3", "4", address=OTHER)
        sockets.open("broadcaster")


def test_in_a_full_room_a_newcomer_replaces_a_viewer_of_the_network_with_the_most():
    with limited(sockets=8) as sockets:
        many, few = sockets.fill(*"1234"), sockets.fill("5", "6", address=OTHER)
        games = [sockets.open("broadcaster", channel=each) for each in ("777", "888")]

        newcomer = sockets.open(user="7", address=THIRD)

        assert REPLACED == closed(many[0])
        assert limited_count(sockets.live, "Replaced by a newer connection").endswith(" 1.0")
        assert all("errors" not in each.request("get", "state", {"state_id": "channel"})
                   for each in (*many[1:], *few, *games, newcomer))  # fmt: skip
        sockets.refusal(user="8")


def test_a_replaced_socket_frees_the_place_of_its_user():
    with limited(sockets=4, address_sockets=1) as sockets:
        first, *_ = sockets.fill("1", "2"), sockets.fill("3", address=OTHER)
        sockets.open(user="4", address=THIRD)

        assert REPLACED == closed(first[0])
        sockets.open("broadcaster")
        sockets.refusal(user="2", address=OTHER)
        assert "of user U1 " not in sockets.refusal(user="1", address=ONE)


def test_a_closed_socket_frees_all_its_places():
    with limited(sockets=4, address_sockets=1, address_pages=3) as sockets:
        for _ in range(3):
            opened = [*sockets.fill(*"123"), sockets.open("broadcaster")]
            sockets.refusal("broadcaster", channel="888")
            for each in opened:
                each.socket.close()


def test_a_socket_that_changes_its_role_moves_to_the_room_of_that_role():
    with limited(sockets=4) as sockets:
        viewers = sockets.fill(*"123")
        sockets.become(viewers[0], "broadcaster", user=CHANNEL)

        sockets.open(user="4")
        assert "3 connections of viewers" in sockets.refusal(user="5")
        with suppress(AssertionError):
            sockets.become(viewers[0], user="1")
        error = viewers[0].error("authenticate", data=sockets.token(user="1"))
        assert 429 == error["status"]
        assert "errors" not in viewers[0].request("set", "state", {"state_id": "channel", "state": {}})


def test_a_socket_that_changes_its_client_id_moves_all_its_places():
    with limited(sockets=1, address_sockets=1, address_pages=1) as sockets:
        game = sockets.open(user="1")
        sockets.become(game, user="1", client_id=OTHER_ID)

        other = sockets.open(user="1")
        sockets.refusal(user="2", client_id=OTHER_ID)

        error = other.error("authenticate", data=sockets.token(user="1", client_id=OTHER_ID))
        assert 429 == error["status"]
        assert f"1 connections of viewers with client id {CLIENT_ID}" in sockets.refusal(user="2")


def test_the_same_user_again_needs_no_second_place():
    with limited(sockets=1, address_sockets=1, address_pages=1) as sockets:
        game = sockets.open(user="1")
        for claims in ({}, {"opaque": "U1"}, {"channel": "888"}):
            sockets.become(game, user="1", **claims)

        game.socket.close()
        sockets.open(user="2")


@pytest.mark.parametrize(("role", "owner"), [("viewer", "user U1"), ("broadcaster", f"channel {CHANNEL}")])
def test_production_allows_a_user_50_sockets(frozen_production: LiveServer, role: str, owner: str):
    with ExitStack() as stack:
        sockets = Sockets(frozen_production, stack)
        for _ in range(50):
            stack.enter_context(game := game_from(frozen_production, ONE))
            authenticate(game, **sockets.token(role, user="1", exp=2_000_003_600))

        reason = sockets.refusal(role, OTHER, user="1", exp=2_000_003_600)

    assert f"50 connections of {owner} are open; the limit is 50" == reason


def test_a_page_over_the_limit_gets_429_with_retry_after():
    with (
        live_server(Settings(limits=Limits(sockets=2))) as live,
        PusherClient(live),
        PusherClient(live, path="/app/another"),
        pytest.raises(InvalidStatus) as error,
    ):
        PusherClient(live)

    response = error.value.response
    assert (429, "10") == (response.status_code, response.headers["Retry-After"])
    assert "2 connections of pages are open; the limit is 2" == json.loads(response.body)["info"]

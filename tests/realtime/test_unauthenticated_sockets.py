"""Sockets before authentication: few per address, a bounded share in all, and not for long."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from emulator.core.clock import SECOND
from emulator.core.environment import AnonymousLimits
from emulator.core.settings import Limits, Settings
from support.authentication import authenticate
from support.pusher_client import PusherClient
from support.service import CLIENT_ID, LiveServer, live_server, still_clock
from support.socket_client import SocketClient, linked_game, request_pin

ONE, OTHER, THIRD = "203.0.113.1", "203.0.113.2", "203.0.113.3"


@contextmanager
def limited(sockets: int = 10_000, **anonymous: int) -> Iterator[LiveServer]:
    limits = Limits(sockets=sockets, anonymous=AnonymousLimits(**anonymous))
    with live_server(Settings(limits=limits, proxies=("127.0.0.1",)), clock=still_clock()) as live:
        live.freeze()
        yield live


def game_from(live: LiveServer, address: str, path: str = f"/0.2.0/{CLIENT_ID}") -> SocketClient:
    return SocketClient(live, path, additional_headers={"X-Forwarded-For": address})


def page_from(live: LiveServer, address: str) -> PusherClient:
    return PusherClient(live, additional_headers={"X-Forwarded-For": address})


def refusal(live: LiveServer, address: str) -> str:
    """Return the reason why a connection is refused."""
    with pytest.raises(InvalidStatus) as error:
        game_from(live, address)
    assert 429 == error.value.response.status_code
    return str(json.loads(error.value.response.body)["info"])


def closed(game: SocketClient | PusherClient) -> tuple[int, str]:
    """Wait until the connection is closed, and return the code and the reason."""
    with pytest.raises(ConnectionClosed) as error:
        game.socket.recv(timeout=5)
    assert error.value.rcvd is not None
    return error.value.rcvd.code, error.value.rcvd.reason


def limited_count(live: LiveServer, reason: str) -> str:
    """Return the line of `emulator_limited_total` for a reason."""
    metrics = live._http.get("/_emulator/metrics").text
    return next(line for line in metrics.splitlines() if line.startswith("emulator_limited_total") and reason in line)


def test_an_address_has_few_unauthenticated_sockets():
    with limited(address_sockets=2) as live, game_from(live, ONE), game_from(live, ONE, "/ws"):
        assert "2 unauthenticated connections from this address are open; the limit is 2" == refusal(live, ONE)
        with game_from(live, OTHER) as other:
            assert "errors" not in other.request("subscribe", "authentication")


def test_the_addresses_of_an_ipv6_network_of_48_bits_share_their_sockets():
    first, second, third, other = ("2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:1:ffff::1", "2001:db8:2:1::1")
    with limited(address_sockets=2) as live, game_from(live, first), game_from(live, second):
        refusal(live, third)
        with game_from(live, other):
            pass
    with limited(address_pages=2) as live, page_from(live, first), page_from(live, second):
        with pytest.raises(InvalidStatus):
            page_from(live, third)
        with page_from(live, other):
            pass


def test_authentication_and_the_end_of_a_socket_free_its_place():
    with limited(address_sockets=1) as live:
        with game_from(live, ONE) as first:
            authenticate(first, pin=request_pin(live))
            with game_from(live, ONE):
                refusal(live, ONE)
        with game_from(live, ONE):
            refusal(live, ONE)


def test_unauthenticated_sockets_do_not_count_toward_a_client_id():
    with limited(sockets=1) as live, game_from(live, ONE), game_from(live, OTHER), linked_game(live) as game:
        assert {} == game.data("get", "state", {"state_id": "channel"})["state"]


def test_at_the_limit_the_address_with_most_sockets_loses_its_idlest_one():
    with limited(max_unauthenticated=3) as live, ExitStack() as stack:
        games = [stack.enter_context(game_from(live, address)) for address in (ONE, ONE, OTHER)]
        games[0].request("subscribe", "authentication")
        stack.enter_context(game_from(live, THIRD))

        assert (1008, "replaced by a newer connection") == closed(games[1])
        assert all("errors" not in games[index].request("subscribe", "authentication") for index in (0, 2))
        assert limited_count(live, "Replaced by a newer connection").endswith(" 1.0")


def test_one_address_cannot_keep_out_others():
    with limited(max_unauthenticated=3) as live, ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(game_from(live, ONE))
        assert "3 unauthenticated connections are open; the limit is 3" == refusal(live, ONE)

        with game_from(live, OTHER) as game:
            authenticate(game, pin=request_pin(live))


def test_a_socket_has_the_login_timeout_to_authenticate():
    with limited(login_timeout=600) as live, game_from(live, ONE) as game, linked_game(live) as linked:
        live.advance(599 * SECOND)
        assert "errors" not in game.request("subscribe", "authentication")
        live.advance(1 * SECOND)

        assert (1008, "not authenticated within 600 s") == closed(game)
        assert limited_count(live, "Not authenticated in time").endswith(" 1.0")
        assert {} == linked.data("get", "state", {"state_id": "channel"})["state"]


def test_pages_and_authenticated_games_are_not_closed_for_their_age():
    with limited(login_timeout=1) as live, page_from(live, ONE) as page, linked_game(live) as game:
        live.advance(3_600 * SECOND)

        page.send("pusher:ping")
        assert "pusher:pong" == page.frame()["event"]
        assert {} == game.data("get", "state", {"state_id": "channel"})["state"]


def test_an_address_has_a_number_of_bytes_a_minute_before_authentication():
    with limited(address_kib=4) as live, ExitStack() as stack:
        first, second, other = (stack.enter_context(game_from(live, each)) for each in (ONE, ONE, OTHER))
        first.socket.send("x" * 3_000)
        first.reply()
        second.socket.send("x" * 3_000)

        assert (1008, "too much before authentication") == closed(second)
        assert limited_count(live, "Too much before authentication").endswith(" 1.0")
        other.socket.send("x" * 3_000)
        assert 400 == other.reply()["errors"][0]["status"]
        live.let_pass(60 * SECOND)
        first.socket.send("x" * 3_000)
        assert 400 == first.reply()["errors"][0]["status"]


def test_bytes_after_authentication_do_not_count():
    with limited(address_kib=4) as live, game_from(live, ONE) as game:
        authenticate(game, pin=request_pin(live))
        for _ in range(5):
            game.data("set", "state", {"state_id": "channel", "state": {"text": "x" * 3_000}})


def test_an_address_has_a_limit_of_pages_apart_from_its_games():
    with limited(sockets=2, address_pages=1) as live, page_from(live, ONE):
        with pytest.raises(InvalidStatus) as error:
            page_from(live, ONE)
        with page_from(live, OTHER), linked_game(live), linked_game(live):
            pass

    assert "1 connections of pages from this address are open; the limit is 1" in error.value.response.body.decode()


def test_handshakes_count_toward_the_rate_of_the_address():
    with live_server(Settings(limits=Limits(caller_rate=1)), clock=still_clock()) as live, ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(SocketClient(live))
        with pytest.raises(InvalidStatus) as error:
            SocketClient(live)

    assert 429 == error.value.response.status_code


def test_production_allows_an_address_50_unauthenticated_sockets(frozen_production: LiveServer):
    with ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(game_from(frozen_production, ONE))

        assert "50 unauthenticated connections from this address are open; the limit is 50" == refusal(
            frozen_production, ONE
        )
        stack.enter_context(game_from(frozen_production, OTHER))


def test_the_sandbox_has_no_limits_on_unauthenticated_sockets():
    with live_server() as live, ExitStack() as stack:
        games = [stack.enter_context(SocketClient(live)) for _ in range(60)]
        live.advance(3_600 * SECOND)

        assert all("errors" not in game.request("subscribe", "authentication") for game in games)

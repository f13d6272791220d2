"""Fixtures of the socket tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.authentication import authenticated_game
from support.service import OURS, THEIRS, LiveServer, in_production, live_server, still_clock
from support.socket_client import SocketClient, linked_game


@pytest.fixture
def other(live: LiveServer) -> Iterator[SocketClient]:
    """A second game of channel 777."""
    with linked_game(live) as game:
        yield game


@pytest.fixture
def admin_game(live: LiveServer) -> Iterator[SocketClient]:
    """An admin of channel 777."""
    with authenticated_game(live, "admin") as game:
        yield game


@pytest.fixture
def viewer_game(live: LiveServer) -> Iterator[SocketClient]:
    """User 123 of channel 777."""
    with authenticated_game(live, "viewer", user="123") as game:
        yield game


@pytest.fixture
def frozen_production() -> Iterator[LiveServer]:
    """A production service with two extensions and a trusted proxy on loopback. No time passes, for rates neither."""
    clock = still_clock()
    clock.set(2_000_000_000_000)
    clock.freeze(True)
    with live_server(in_production(OURS, THEIRS, proxies=("127.0.0.1",)), clock=clock) as live:
        yield live

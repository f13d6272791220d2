"""A page and a game that receive broadcasts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.broadcasts import subscribed_game
from support.pusher_client import PusherClient, subscribed_page
from support.service import LiveServer
from support.socket_client import SocketClient


@pytest.fixture
def page(live: LiveServer) -> Iterator[PusherClient]:
    """A page of the extension in channel 777."""
    with subscribed_page(live) as page:
        yield page


@pytest.fixture
def admin_game(live: LiveServer) -> Iterator[SocketClient]:
    """A game that authenticated as the admin and follows all events of channel 777."""
    with subscribed_game(live, "admin", user="9001") as game:
        yield game

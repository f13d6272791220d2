"""A page and a game that receive broadcasts, and a sandbox that knows an extension."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from emulator.core.extensions import Extension
from emulator.core.settings import Settings
from support.audit_lines import AuditLines
from support.broadcasts import subscribed_game
from support.pusher_client import PusherClient, subscribed_page
from support.service import CLIENT_ID, SECRET, LiveServer, live_server, still_clock
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


@pytest.fixture(scope="module")
def running_known() -> Iterator[LiveServer]:
    """A sandbox with an extensions file, whose rates see no time pass."""
    settings = Settings(extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))})
    with live_server(settings, clock=still_clock()) as live:
        yield live


@pytest.fixture
def known(running_known: LiveServer) -> LiveServer:
    running_known.reset()
    return running_known


@pytest.fixture
def audit() -> Iterator[AuditLines]:
    """The audit lines of a test."""
    kept, log = AuditLines(), logging.getLogger("emulator.audit")
    log.addHandler(kept)
    log.setLevel(logging.INFO)
    try:
        yield kept
    finally:
        log.removeHandler(kept)
        log.setLevel(logging.NOTSET)

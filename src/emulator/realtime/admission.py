"""Decides which connections may open, and how long a game may stay unauthenticated."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from emulator.clock import MINUTE, SECOND, Clock
from emulator.config.environment import AnonymousLimits
from emulator.config.settings import KIB, Limits
from emulator.errors import ServiceError
from emulator.limits.connection_limit import ConnectionLimit, FairShare, network_of
from emulator.limits.rate_limit import RateLimit
from emulator.observability.response_counts import Recorder
from emulator.realtime import closes
from emulator.realtime.session import Session
from emulator.realtime.web_page_connection import PusherConnection

AnyPeer = Session | PusherConnection
"""A game or a page."""


class Admission:
    """All open connections.

    A game counts toward its client id once it has authenticated. Until then it counts by network address only, because
    any caller could name the client id. Pages always count by address.
    """

    def __init__(self, clock: Clock, limits: Limits, anonymous: AnonymousLimits, recorder: Recorder) -> None:
        self._clock = clock
        self._recorder = recorder
        self._login_timeout = anonymous.login_timeout * SECOND
        self._peers: dict[AnyPeer, str] = {}
        """Open connections, with the client id that they count toward; empty for unauthenticated games and pages."""
        self._games = ConnectionLimit(limits.sockets)
        self._last_number = 0
        self._pending: dict[Session, None] = {}
        """The unauthenticated games, oldest first."""
        self._unauthenticated = FairShare[AnyPeer](
            "unauthenticated connections", anonymous.max_unauthenticated, anonymous.address_sockets
        )
        self._pages = FairShare[AnyPeer]("connections of pages", limits.sockets, anonymous.address_pages)
        kib = anonymous.address_kib
        self._bytes = RateLimit(kib * KIB, MINUTE, MINUTE) if kib else None

    @property
    def peers(self) -> Iterable[AnyPeer]:
        """All open connections."""
        return self._peers

    @property
    def games(self) -> Iterable[Session]:
        """The open connections of games, oldest first."""
        return [peer for peer in self._peers if isinstance(peer, Session)]

    @property
    def pages(self) -> Iterable[PusherConnection]:
        """The open connections of pages, oldest first."""
        return [peer for peer in self._peers if isinstance(peer, PusherConnection)]

    @property
    def unauthenticated(self) -> int:
        """The number of open games that have not authenticated."""
        return len(self._unauthenticated)

    def __len__(self) -> int:
        return len(self._peers)

    def add(self, peer: AnyPeer) -> None:
        """Count a new connection; raises `TooManyRequests`."""
        network = network_of(peer.connection.address)
        share = self._unauthenticated if isinstance(peer, Session) else self._pages
        replaced = share.add(peer, network)
        if replaced is not None:
            self._expel(replaced, closes.replaced())
        self._peers[peer] = ""
        self._last_number = peer.number = self._last_number + 1
        peer.opened_at = self._clock.now()
        if isinstance(peer, Session):
            self._pending[peer] = None
        peer.connection.on_bytes = partial(self._count, share, peer, network)

    def authenticated(self, game: Session, client_id: str) -> None:
        """Count a game toward its client id; raises `TooManyRequests`."""
        before = self._peers.get(game)
        if before is None or before == client_id:
            return
        self._games.acquire(client_id)
        if before:
            self._games.release(before)
        self._peers[game] = client_id
        self._unauthenticated.remove(game)
        self._pending.pop(game, None)
        game.connection.on_bytes = None

    def remove(self, peer: AnyPeer) -> None:
        """Stop counting a closed connection."""
        peer.connection.on_bytes = None  # it refers to the peer, which refers to the connection
        if client_id := self._peers.pop(peer, ""):
            self._games.release(client_id)
        self._unauthenticated.remove(peer)
        self._pages.remove(peer)
        if isinstance(peer, Session):
            self._pending.pop(peer, None)

    def close_late(self) -> None:
        """Close the connections of games that have not authenticated in time, with code 1008."""
        if self._login_timeout:
            latest = self._clock.now() - self._login_timeout
            for game in [game for game in self._pending if game.opened_at <= latest]:
                self._expel(game, closes.late(seconds=self._login_timeout // SECOND))

    def _count(self, share: FairShare[AnyPeer], peer: AnyPeer, network: str, size: int) -> None:
        """Count bytes received before authentication, of all connections of a network address."""
        if peer in share:
            share.touch(peer)
            if self._bytes is not None and self._bytes.delay(("", network), self._clock.now(), size):
                self._expel(peer, closes.talkative())

    def _expel(self, peer: AnyPeer, error: ServiceError) -> None:
        self._recorder.refused(error)
        self._unauthenticated.remove(peer)
        self._pages.remove(peer)
        if isinstance(peer, Session):
            self._pending.pop(peer, None)
        peer.expel(error)

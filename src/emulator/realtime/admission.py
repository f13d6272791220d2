"""Decides which connections may open, and how long a game may stay unauthenticated."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple
from weakref import WeakValueDictionary

from emulator.core.callers import EXTENSION_WRITERS, Caller, Role
from emulator.core.clock import MINUTE, SECOND, Clock
from emulator.core.environment import AnonymousLimits
from emulator.core.errors import ServiceError, TooManyRequests
from emulator.core.limits import FairShare, RateLimit, network_of
from emulator.core.observability.metrics import Metrics
from emulator.core.settings import KIB, Limits
from emulator.realtime import closes
from emulator.realtime.session import Session
from emulator.realtime.web_page_connection import PusherConnection

GameOrPage = Session | PusherConnection
"""A game or a page."""


class _CountedLimit(NamedTuple):
    """One of the limits that a connection counts toward."""

    share: FairShare[GameOrPage]
    key: str
    """The address, user or client id, of which few connections may be open."""
    whose: str
    """As errors name it."""


class Admission:
    """All open connections.

    A game counts toward its client id and user once it has authenticated. Viewers leave a quarter of a client id's
    connections to other roles, and share the rest between their networks. Until it has authenticated, a game counts by
    network address only, because any caller could name the client id. Pages always count by address.
    """

    def __init__(self, clock: Clock, limits: Limits, anonymous: AnonymousLimits, recorder: Metrics) -> None:
        self._clock = clock
        self._recorder = recorder
        self._login_timeout = anonymous.login_timeout * SECOND
        self.peers: dict[GameOrPage, list[_CountedLimit]] = {}
        """All open connections."""
        self._games = FairShare[GameOrPage]("connections", 0, limits.sockets)
        """By client id."""
        self._owners = FairShare[GameOrPage]("connections", 0, anonymous.address_sockets)
        """By user or broadcaster."""
        self._viewers = WeakValueDictionary[str, FairShare[GameOrPage]]()
        """By client id, as long as one of its viewers is connected."""
        self._max_viewers = limits.sockets - limits.sockets // 4
        self._address_viewers = anonymous.address_pages
        self._last_number = 0
        self._unauthenticated = FairShare[GameOrPage](
            "unauthenticated connections", anonymous.max_unauthenticated, anonymous.address_sockets
        )
        self._pages = FairShare[GameOrPage]("connections of pages", limits.sockets, anonymous.address_pages)
        kib = anonymous.address_kib
        self._bytes = RateLimit(clock, kib * KIB, MINUTE, MINUTE) if kib else None

    @property
    def pages(self) -> Iterable[PusherConnection]:
        """The open connections of pages, oldest first."""
        return [peer for peer in self.peers if isinstance(peer, PusherConnection)]

    @property
    def unauthenticated(self) -> int:
        """The number of open games that have not authenticated."""
        return len(self._unauthenticated)

    def __len__(self) -> int:
        return len(self.peers)

    def add(self, peer: GameOrPage) -> None:
        """Count a new connection; raises `TooManyRequests`."""
        share = self._unauthenticated if isinstance(peer, Session) else self._pages
        place = _CountedLimit(share, network_of(peer.connection.address), "from this address")
        self._count_toward(peer, place)
        self.peers[peer] = [place]
        self._last_number = peer.number = self._last_number + 1
        peer.opened_at = self._clock.now()
        peer.connection.on_bytes = partial(self._count_bytes, peer, place)

    def count_authenticated(self, game: Session, caller: Caller) -> None:
        """Count a game toward its client id and user; raises `TooManyRequests`, and then counts it as before."""
        before, places = self.peers.get(game), self._limits_of_game(game, caller)
        if before is None or before == places:
            return
        self._stop_counting(game)
        try:
            for place in places:
                self._count_toward(game, place)
        except TooManyRequests:
            for place in places:
                place.share.remove(game)
            for place in before:
                self._count_toward(game, place)
            raise
        self.peers[game] = places
        game.connection.on_bytes = None

    def remove(self, peer: GameOrPage) -> None:
        """Stop counting a closed connection."""
        peer.connection.on_bytes = None  # it refers to the peer, which refers to the connection
        self._stop_counting(peer)
        self.peers.pop(peer, None)

    async def close_unauthenticated(self) -> None:
        """Close the connections of games that have not authenticated in time, with code 1008."""
        if self._login_timeout:
            latest = self._clock.now() - self._login_timeout
            for game in [game for game in self._unauthenticated if game.opened_at <= latest]:
                self._expel(game, closes.late(seconds=self._login_timeout // SECOND))

    def _count_bytes(self, peer: GameOrPage, place: _CountedLimit, size: int) -> None:
        """Count bytes received before authentication, of all connections of a network address."""
        if peer in place.share:
            place.share.mark_active(peer)
            if self._bytes is not None and self._bytes.delay(("", place.key), size):
                self._expel(peer, closes.talkative())

    def _limits_of_game(self, game: Session, caller: Caller) -> list[_CountedLimit]:
        """Return what an authenticated game counts toward; an extension's own servers have no owner."""
        client_id, places = caller.client_id, list[_CountedLimit]()
        if caller.role not in EXTENSION_WRITERS:
            is_broadcaster = caller.role is Role.BROADCASTER
            owner = f"of channel {caller.channel_id or ''}" if is_broadcaster else f"of user {caller.opaque_id}"
            places.append(_CountedLimit(self._owners, f"{client_id} {owner}", owner[:100]))
            if not is_broadcaster:
                what = f"connections of viewers with client id {client_id}"
                share = FairShare[GameOrPage](what, self._max_viewers, self._address_viewers)
                share = self._viewers.setdefault(client_id, share)
                places.append(_CountedLimit(share, network_of(game.connection.address), "from this address"))
        places.append(_CountedLimit(self._games, client_id, f"with client id {client_id[:100]}"))
        return places

    def _count_toward(self, peer: GameOrPage, place: _CountedLimit) -> None:
        """Count a connection in a place, where it may replace another one. Raises `TooManyRequests`."""
        replaced = place.share.add(peer, place.key, place.whose)
        if replaced is not None:
            self._expel(replaced, closes.replaced())

    def _expel(self, peer: GameOrPage, error: ServiceError) -> None:
        self._recorder.count_refusal(error)
        self._stop_counting(peer)
        self.peers[peer] = []  # it is still closing, and no longer counts
        peer.expel(error)

    def _stop_counting(self, peer: GameOrPage) -> None:
        """Stop counting a connection in its places."""
        for place in self.peers.get(peer, ()):
            place.share.remove(peer)

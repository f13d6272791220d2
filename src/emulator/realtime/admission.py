"""Decides which connections may open, and how long a game may stay unauthenticated."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final, NamedTuple

from emulator.core.callers import EXTENSION_WRITERS, Caller, Role
from emulator.core.clock import MINUTE, SECOND, Clock
from emulator.core.config.environment import AnonymousLimits
from emulator.core.config.settings import KIB, Limits
from emulator.core.errors import ServiceError, TooManyRequests
from emulator.core.limits import FairShare, RateLimit, network_of
from emulator.core.observability.metrics import Metrics
from emulator.realtime import closes
from emulator.realtime.session import Session
from emulator.realtime.web_page_connection import PusherConnection

AnyPeer = Session | PusherConnection
"""A game or a page."""


class _Place(NamedTuple):
    """What an authenticated game counts toward."""

    client_id: str
    owner: str
    """The broadcaster's channel or the user, as errors name them; empty for the extension's own servers."""
    is_viewer: bool


_NO_PLACE: Final = _Place("", "", False)
"""The place of pages and unauthenticated games."""


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
        self._peers: dict[AnyPeer, _Place] = {}
        """All open connections."""
        self._games = FairShare[AnyPeer]("connections", 0, limits.sockets)
        """By client id."""
        self._owners = FairShare[AnyPeer]("connections", 0, anonymous.address_sockets)
        """By user or broadcaster."""
        self._viewers: dict[str, FairShare[AnyPeer]] = {}
        """By client id."""
        self._max_viewers = limits.sockets - limits.sockets // 4
        self._address_viewers = anonymous.address_pages
        self._last_number = 0
        self._unauthenticated = FairShare[AnyPeer](
            "unauthenticated connections", anonymous.max_unauthenticated, anonymous.address_sockets
        )
        self._pages = FairShare[AnyPeer]("connections of pages", limits.sockets, anonymous.address_pages)
        kib = anonymous.address_kib
        self._bytes = RateLimit(clock, kib * KIB, MINUTE, MINUTE) if kib else None

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
        self._peers[peer] = _NO_PLACE
        self._last_number = peer.number = self._last_number + 1
        peer.opened_at = self._clock.now()
        peer.connection.on_bytes = partial(self._count, share, peer, network)

    def authenticated(self, game: Session, caller: Caller) -> None:
        """Count a game toward its client id and user; raises `TooManyRequests`, and then counts it as before."""
        before, place = self._peers.get(game), _place_of(caller)
        if before is None or before == place:
            return
        self._leave(game)
        try:
            self._take(game, place)
        except TooManyRequests:
            self._take(game, before)
            raise
        self._unauthenticated.remove(game)
        game.connection.on_bytes = None

    def remove(self, peer: AnyPeer) -> None:
        """Stop counting a closed connection."""
        peer.connection.on_bytes = None  # it refers to the peer, which refers to the connection
        self._release(peer)
        self._peers.pop(peer, None)

    def close_late(self) -> None:
        """Close the connections of games that have not authenticated in time, with code 1008."""
        if self._login_timeout:
            latest = self._clock.now() - self._login_timeout
            for game in [game for game in self._unauthenticated if game.opened_at <= latest]:
                self._expel(game, closes.late(seconds=self._login_timeout // SECOND))

    def _count(self, share: FairShare[AnyPeer], peer: AnyPeer, network: str, size: int) -> None:
        """Count bytes received before authentication, of all connections of a network address."""
        if peer in share:
            share.touch(peer)
            if self._bytes is not None and self._bytes.delay(("", network), size):
                self._expel(peer, closes.talkative())

    def _take(self, game: Session, place: _Place) -> None:
        """Count a game in a place. Raises `TooManyRequests`, and then counts nothing."""
        client_id, owner, is_viewer = self._peers[game] = place
        if not client_id:
            return
        try:
            if owner:
                self._owners.add(game, f"{client_id} {owner}", owner[:100])
            if is_viewer:
                self._add_viewer(game, client_id)
            self._games.add(game, client_id, f"with client id {client_id[:100]}")
        except TooManyRequests:
            self._leave(game)
            raise

    def _leave(self, peer: AnyPeer) -> None:
        """Stop counting a connection in its place."""
        client_id = self._peers.get(peer, _NO_PLACE).client_id
        if not client_id:
            return
        self._games.remove(peer)
        self._owners.remove(peer)
        if (share := self._viewers.get(client_id)) is not None:
            share.remove(peer)
            if not len(share):
                del self._viewers[client_id]
        self._peers[peer] = _NO_PLACE

    def _add_viewer(self, game: Session, client_id: str) -> None:
        what = f"connections of viewers with client id {client_id}"
        share = self._viewers.setdefault(client_id, FairShare[AnyPeer](what, self._max_viewers, self._address_viewers))
        replaced = share.add(game, network_of(game.connection.address))
        if replaced is not None:
            self._expel(replaced, closes.replaced())

    def _expel(self, peer: AnyPeer, error: ServiceError) -> None:
        self._recorder.refused(error)
        self._release(peer)
        peer.expel(error)

    def _release(self, peer: AnyPeer) -> None:
        """Free all places of a connection."""
        self._leave(peer)
        self._unauthenticated.remove(peer)
        self._pages.remove(peer)


def _place_of(caller: Caller) -> _Place:
    if caller.role in EXTENSION_WRITERS:
        return _Place(caller.client_id, "", False)
    if caller.role is Role.BROADCASTER:
        return _Place(caller.client_id, f"of channel {caller.channel_id or ''}", False)
    return _Place(caller.client_id, f"of user {caller.opaque_id}", True)

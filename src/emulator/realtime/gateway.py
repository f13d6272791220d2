"""WebSocket connections of one service: their paths, how they open, and how the service closes them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import InitVar, dataclass
from itertools import islice

from emulator.contract.names import is_client_id
from emulator.core.callers import Caller
from emulator.core.changes import Change
from emulator.core.environment import AnonymousLimits
from emulator.core.errors import TooManyRequests
from emulator.core.faults import CONNECT
from emulator.core.keys import Key
from emulator.core.wire.url import parse_query
from emulator.realtime.admission import Admission, GameOrPage
from emulator.realtime.closes import credential_ended
from emulator.realtime.dispatch import MessageDispatcher
from emulator.realtime.faulty_messages import apply_handshake_fault
from emulator.realtime.hub import SOCKET
from emulator.realtime.refusals import malformed_client_id, no_socket_path
from emulator.realtime.session import Session
from emulator.realtime.web_page_connection import PusherAccess, PusherConnection
from emulator.realtime.websocket import WebSocket

PING_EVERY = 20.0
"""Seconds between pings; a connection that is silent from one to the next is dead."""

_SLASHES = re.compile("//+")
_PUSHER_PATH = re.compile(r"/+app/+[^/]+/?")
_MAX_PATH_PARTS = 5
"""Parts of the path of a game."""
_PING_BATCH = 250


@dataclass(eq=False, repr=False, kw_only=True)
class Gateway:
    """All open connections of one service. Their messages go to its dispatcher, whose limits and counts apply."""

    messages: MessageDispatcher
    anonymous: InitVar[AnonymousLimits]
    pages: PusherAccess

    def __post_init__(self, anonymous: AnonymousLimits) -> None:
        self.admission = Admission(self.messages.clock, self.messages.limits, anonymous, self.messages.recorder)
        self._checking: set[asyncio.Future[None]] = set()

    async def open(self, path: str, query: str, connection: WebSocket) -> GameOrPage:
        """Return the peer of a connection: a page at `/app/<key>`, otherwise a game (X1). Raises `ServiceError`.

        First apply the fault that matches the handshake; a drop of the namespace ends it.
        """
        messages, changes = self.messages, self.messages.hub.changes
        if CONNECT in messages.faults.kinds:
            await apply_handshake_fault(messages.faults, "" if _PUSHER_PATH.fullmatch(path) else path_client_id(path))
        try:
            messages.rate_limits.check_address(connection.address)
            peer = self._make_peer(path, query, connection)
            self.admission.add(peer)
            changes.note(Change(Key(SOCKET, "", ""), "connected"))
            connection.mark = changes.mark
        except TooManyRequests as error:
            messages.recorder.count_refusal(error)
            raise
        return peer

    def _make_peer(self, path: str, query: str, connection: WebSocket) -> GameOrPage:
        hub, most = self.messages.hub, self.messages.limits.topics
        if not _PUSHER_PATH.fullmatch(path):
            client_id, admit = path_client_id(path), self.admission.count_authenticated
            return Session(connection, hub, self.remove, client_id, self.messages.answer, admit, most)
        parameters = parse_query(query.encode())
        version = parameters.get("protocol", "")
        protocol = int(version) if version.isdecimal() and len(version) < 4 else None
        token = parameters.get("token", "")
        return PusherConnection(connection, hub, self.remove, self.pages, protocol, most, token)

    def remove(self, peer: GameOrPage) -> None:
        self.admission.remove(peer)
        self.messages.hub.changes.note(Change(Key(SOCKET, "", ""), "closed"))

    def close_all(self) -> None:
        """Close all connections (1001)."""
        for peer in list(self.admission.peers):
            peer.on_service_stop()

    def expel_callers(self, is_admitted: Callable[[Caller], bool]) -> int:
        """Close the connections of callers that are no longer admitted; return how many."""
        expelled = [peer for peer in self.admission.peers if not all(map(is_admitted, peer.callers))]
        for peer in expelled:
            peer.expel(credential_ended())
        return len(expelled)

    def recheck_pages(self, of: Key) -> None:
        """End the subscriptions of pages that depend on ended links of a channel."""
        for page in self.admission.pages:
            if any((each.client_id, each.channel_id) == (of.owner, of.channel) for each in page.callers):
                checking = asyncio.ensure_future(page.recheck_links(of.owner, of.channel or ""))
                self._checking.add(checking)
                checking.add_done_callback(self._checking.discard)

    def watch_page_tokens(self) -> None:
        """End the subscriptions of pages when their tokens expire, after the timers were cleared."""
        for page in self.admission.pages:
            page.watch_expiry()

    async def ping_connections(self) -> None:
        """Ping all connections every `PING_EVERY` seconds, in batches so that requests are not delayed."""
        while True:
            await asyncio.sleep(PING_EVERY)
            await self.admission.close_unauthenticated()
            peers = iter(list(self.admission.peers))
            while batch := list(islice(peers, _PING_BATCH)):
                for peer in batch:
                    peer.connection.ping()
                await asyncio.sleep(0)


def path_client_id(path: str) -> str:
    """The client id at the end of a path, empty if none; versions and projections are ignored (ruling X1)."""
    parts = _SLASHES.sub("/", path).removeprefix("/").split("/")
    if len(parts) > _MAX_PATH_PARTS or parts[0] in ("v1", "schema", "_emulator", "app", "_ns"):
        raise no_socket_path(path=path[:100])
    last = parts[-1]
    if not last or parts == ["ws"]:
        return ""
    if not is_client_id(last):
        raise malformed_client_id()
    return last

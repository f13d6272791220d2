"""Lists, closes and stalls the open connections of this process, and counts the subscribers of a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct

from emulator.changes import Change, Changes
from emulator.control.sockets.refusals import no_socket
from emulator.control.sockets.rules import (
    GAME,
    KINDS,
    WEB_PAGE,
    Closing,
    Selection,
    Stalling,
    check_closing,
    check_selection,
    topic_name,
)
from emulator.engines.shapes import Key
from emulator.limits.listing_pages import Page
from emulator.observability.audit import audit
from emulator.realtime.admission import AnyPeer
from emulator.realtime.closes import closed_by_call
from emulator.realtime.hub import ANY_NAME, SOCKET, Hub
from emulator.realtime.session import Session
from emulator.realtime.web_page_connection import PusherConnection
from emulator.wire.cursors import FIRST
from emulator.wire.refusals import invalid_cursor, invalid_parameter


class SocketRecord(Struct):
    """One open connection."""

    number: int
    """Its number; the first connection since the start of the service has 1."""
    kind: str
    """`game`, or `page` for a web page over the Pusher protocol."""
    client_id: str
    """Of a page, the one in the channels that it subscribed to; empty if unknown."""
    role: str
    """Empty before authentication, and for pages."""
    channel_id: str
    """The caller's channel; of a page, the one it subscribed to. Empty for none."""
    user_id: str
    address: str
    request_id: str
    """The id of the handshake. The id of a message adds its number: `3f2a/7`."""
    subscriptions: list[str]
    """What it subscribed to: `poll:lunch`, `event:*`, `state:channel`; of a page, its Pusher channels."""
    opened_at: int
    """Unix ms by the service's clock."""
    requests: int
    """Messages received so far."""
    frames: int
    """Messages sent so far: replies and updates."""
    unread: int
    """Bytes sent that its client has not taken yet."""
    stalled: bool


class SocketList(Struct):
    """Open connections, oldest first."""

    sockets: list[SocketRecord]
    total: int
    """The number of open connections on all pages of the list."""
    next: str
    """The `cursor` of the next page; `0` if there is none."""


class Selected(Struct):
    """The connections that were closed, stalled or released."""

    sockets: list[int]
    """Their numbers."""


class _Entry(NamedTuple):
    """A connection in the list. Its number is unique, and entries sort by it."""

    number: int
    where: Callable[[], tuple[str, str]]
    describe: Callable[[], SocketRecord]


@dataclass(eq=False, repr=False)
class Sockets:
    """The open connections. `_games` and `_pages` return this process's, oldest first."""

    _games: Callable[[], Iterable[Session]]
    _pages: Callable[[], Iterable[PusherConnection]]
    _changes: Changes

    def read(self, page: Page, client_id: str, channel_id: str) -> SocketList:
        """Return a page of connections, all or only of a client id and a channel, oldest first."""
        after, total = _number_of(page.cursor), 0
        found: list[SocketRecord] = []
        games = (_Entry(each.number, partial(_where_game, each), partial(_game, each)) for each in self._games())
        pages = (_Entry(each.number, partial(_where_page, each), partial(_page, each)) for each in self._pages())
        # Both are sorted by number. There may be thousands, so only those on the page are described.
        for entry in merge(games, pages):
            if (client_id or channel_id) and not _is_in(entry.where(), client_id, channel_id):
                continue
            total += 1
            if entry.number > after and len(found) <= page.limit:
                found.append(entry.describe())
        more = len(found) > page.limit
        return SocketList(found[: page.limit], total, str(found[page.limit - 1].number) if more else FIRST)

    def find(self, number: int) -> SocketRecord | None:
        """Return an open connection by its number."""
        games = (_game(each) for each in self._games() if each.number == number)
        pages = (_page(each) for each in self._pages() if each.number == number)
        return next(chain(games, pages), None)

    def close(self, closing: Closing) -> Selected:
        """Close connections with a code and a reason; a stalled one first gets the messages held back."""
        check_closing(closing)
        selected = self._select(closing)
        for each in selected:
            each.expel(closed_by_call(reason=closing.reason, code=closing.code))
        audit("sockets closed", sockets=len(selected))
        return Selected([each.number for each in selected])

    def stall(self, stalling: Stalling) -> Selected:
        """Stop reading and writing connections, or resume. Notifies waits for sockets."""
        selected = self._select(stalling)
        for each in selected:
            each.connection.stall() if stalling.stalled else each.connection.release()
        done = "stalled" if stalling.stalled else "released"
        audit(f"sockets {done}", sockets=len(selected))
        self._changes.note(Change(Key(SOCKET, "", ""), done))
        return Selected([each.number for each in selected])

    def release_all(self) -> None:
        """End all stalls, at a reset."""
        for each in self._peers():
            each.connection.release()

    def _peers(self) -> list[AnyPeer]:
        return [*self._games(), *self._pages()]

    def _select(self, selection: Selection) -> list[AnyPeer]:
        check_selection(selection)
        selected = [each for each in self._peers() if selection.all or each.number == selection.socket]
        if not selected and not selection.all:
            raise no_socket(socket=selection.socket)
        return selected


def _where_game(game: Session) -> tuple[str, str]:
    """Return the client id and the channel of a game."""
    caller = game.caller
    return (game.client_id, "") if caller is None else (caller.client_id, caller.channel_id or "")


def _where_page(page: PusherConnection) -> tuple[str, str]:
    """Return the client id and the channel of a page's subscriptions.

    Each is empty unless all subscriptions agree on it.
    """
    topics = [topic for topic in page.channels.values() if topic]
    client_ids = {topic.owner for topic in topics}
    channels = {topic.channel for topic in topics if topic.channel}
    return (
        client_ids.pop() if len(client_ids) == 1 else "",
        channels.pop() or "" if len(channels) == 1 else "",
    )


def _is_in(where: tuple[str, str], client_id: str, channel_id: str) -> bool:
    return client_id in ("", where[0]) and channel_id in ("", where[1])


def _game(game: Session) -> SocketRecord:
    caller = game.caller
    topics = sorted({topic_name(topic) for topic in game.topics})
    role, user_id = ("", "") if caller is None else (caller.role, caller.user_id or "")
    return _record(game, GAME, _where_game(game), role, user_id, topics)


def _page(page: PusherConnection) -> SocketRecord:
    return _record(page, WEB_PAGE, _where_page(page), "", "", list(page.channels))


def _record(
    peer: AnyPeer, kind: str, where: tuple[str, str], role: str, user_id: str, topics: list[str]
) -> SocketRecord:
    connection, (client_id, channel_id) = peer.connection, where
    return SocketRecord(
        peer.number, kind, client_id, role, channel_id, user_id, connection.address, connection.request_id, topics,
        peer.opened_at, peer.request_count, peer.frame_count, connection.unread, connection.is_stalled,
    )  # fmt: skip


def _number_of(cursor: str) -> int:
    """Return the number of the connection after which the page starts, from a cursor. Raises `BadRequest`."""
    if not cursor.isascii() or not (cursor or FIRST).isdecimal() or len(cursor) > 18:
        raise invalid_cursor(cursor)
    return int(cursor or FIRST)


CONNECTED: Final = "connected"
_NAMED: Final = ("poll", "event")
_IN_CHANNEL: Final = ("event", WEB_PAGE)
"""Kinds whose subscribers in a channel also follow the topic of all channels. That topic counts for no channel."""


@dataclass(eq=False, repr=False)
class Subscribers:
    """The subscribers in this process."""

    _hub: Hub
    _connections: Callable[[], int]

    def __call__(self, id: str, client_id: str, channel: str | None) -> int:
        """Return the number of open connections for the id `connected`, otherwise of the topic's subscribers.

        A topic is a target of the socket, such as `state:channel`, `poll:lunch` or `event:goal`; `page` counts pages.
        Raises `BadRequest` for an unknown one.
        """
        if id == CONNECTED:
            return self._connections()
        target, _, name = id.partition(":")
        kind = KINDS.get(target if target in _NAMED else id)
        if kind is None or (target in _NAMED and not name):
            known = ", ".join(f"{each}:NAME" if each in _NAMED else each for each in (CONNECTED, *KINDS))
            raise invalid_parameter("id", id, f"one of {known}")

        def matches(topic: Key) -> bool:
            here = topic.channel == channel or (not topic.channel and kind not in _IN_CHANNEL)
            return (
                topic.kind == kind
                and (target not in _NAMED or topic.name in (name, ANY_NAME))
                and (not client_id or topic.owner in ("", client_id))
                and (channel is None or here)
            )

        return self._hub.count(matches)

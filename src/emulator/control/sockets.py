"""The open connections of a service: their callers and subscriptions, closing and stalling them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from msgspec import Struct

from emulator.contract.faults import DEFAULT_CLOSE_CODE, is_close_code
from emulator.core.changes import Change, Changes
from emulator.core.errors import Facts, NotFound, refusal
from emulator.core.keys import Key
from emulator.core.observability.audit import audit
from emulator.core.wire.cursors import FIRST, Page
from emulator.core.wire.refusals import invalid_cursor, invalid_member, invalid_parameter, too_long, wrong_shape
from emulator.http.endpoint import PAGE, Call, Parameter, control_endpoint
from emulator.realtime.admission import Admission, GameOrPage
from emulator.realtime.closes import closed_by_call
from emulator.realtime.hub import ANY_NAME, SOCKET, Hub
from emulator.realtime.session import Session


@refusal(NotFound, "Not Found", "docs: Control", "There is no such open socket", "List them: `extcli socket list`.")
def no_socket(*, socket: int | None) -> Facts:
    detail = f"socket: there is no open socket {socket} in this process"
    return Facts(detail, f"socket {socket}", "the number of an open socket of this process")


PAGE_KIND = "page"
"""The target that counts pages; the kind of a page's connection."""
GAME_KIND = "game"
"""The kind of a game's connection."""
TOPIC_KINDS: Mapping[str, str] = {
    "poll": "poll",
    "event": "event",
    PAGE_KIND: PAGE_KIND,
    "state:channel": "channel_state",
    "state:extension": "extension_state",
    "config:channel": "channel_config",
    "config:extension": "extension_config",
    "authentication": "authentication",
    "transaction": "purchase",
    "datastream": "datastream",
}
"""The kinds of topics by target, as a game subscribes to it. A page subscribes to its channel."""
_TARGETS = {kind: target for target, kind in TOPIC_KINDS.items()}
MAX_REASON = 123
"""Bytes of the reason in a close frame, by RFC 6455."""


class SocketSelection(Struct):
    """The connections to act on: one by its number, or all."""

    socket: int | None = None
    all: bool = False


class CloseRequest(SocketSelection):
    """The connections to close, and the code and reason for their clients."""

    code: int = DEFAULT_CLOSE_CODE
    """A close code: 1000 to 1003, 1007 to 1014, 3000 to 4999. Pages do not reconnect after 4000 to 4099."""
    reason: str = ""


class StallRequest(SocketSelection):
    """The connections to stall, or with `stalled` false to release."""

    stalled: bool = True


def topic_name(topic: Key) -> str:
    """Return a topic as a game names it: `poll:lunch`, `event:*`, `state:channel`."""
    target = _TARGETS.get(topic.kind, topic.kind)
    return f"{target}:{topic.name}" if topic.name else target


class SocketRecord(Struct):
    """One open connection."""

    number: int
    """Its number; the first connection since the start of the service has 1."""
    kind: str
    """`game`, or `page` for a web page over the Pusher protocol."""
    client_id: str
    """For a page, the client id in its Pusher channels; empty if unknown."""
    role: str
    """Empty before authentication, and for pages."""
    channel_id: str
    """The caller's channel; for a page, the channel that it subscribed to. Empty if there is none."""
    user_id: str
    address: str
    request_id: str
    """The id of the handshake. The id of a message adds its number: `3f2a/7`."""
    subscriptions: list[str]
    """What it subscribed to: `poll:lunch`, `event:*`, `state:channel`; for a page, its Pusher channels."""
    opened_at: int
    """Unix ms by the service's clock."""
    requests: int
    """Messages received so far."""
    frames: int
    """Messages sent so far: replies and updates."""
    unread: int
    """Bytes sent that its client has not read yet."""
    stalled: bool


class SocketList(Struct):
    """Open connections, oldest first."""

    sockets: list[SocketRecord]
    total: int
    """The number of open connections on all pages of the list."""
    next: str
    """The `cursor` of the next page; `0` if there is none."""


class SelectedSockets(Struct):
    """The connections that were closed, stalled or released."""

    sockets: list[int]
    """Their numbers."""


CONNECTED = "connected"
_NAMED_TARGETS = ("poll", "event")
_KINDS_WITH_ALL_CHANNELS = ("event", PAGE_KIND)
"""Kinds whose subscribers in a channel also follow the topic of all channels. That topic counts for no channel."""


_LIST_PARAMETERS = (
    Parameter("client_id", "Only the sockets of this client id."),
    Parameter("channel_id", "Only the sockets of this channel."),
    *PAGE[1:],
)


@dataclass(eq=False, repr=False)
class Sockets:
    """The open connections of this process, and their subscriptions."""

    _hub: Hub
    _changes: Changes
    _admission: Callable[[], Admission]

    @control_endpoint("GET", "/_emulator/sockets", query=_LIST_PARAMETERS, answer=SocketList)
    async def list_sockets(self, call: Call) -> SocketList:
        """List the open sockets of this process, oldest first."""
        return self.read(call.page, call.text("client_id"), call.text("channel_id"))

    def read(self, page: Page, client_id: str, channel_id: str, search: str = "") -> SocketList:
        """Return a page of connections, oldest first: all, or only of a client id, a channel, and that name a text."""
        after, peers = _number_from_cursor(page.cursor), self._peers()
        if client_id or channel_id:
            peers = [each for each in peers if _matches(_client_and_channel(each), client_id, channel_id)]
        if search:
            peers = [each for each in peers if _mentions(each, search)]
        later = [each for each in peers if each.number > after]
        found = later[: page.limit]  # there may be thousands, so only these are described
        cursor = str(found[-1].number) if len(later) > page.limit else FIRST
        return SocketList([*map(_describe_peer, found)], len(peers), cursor)

    def find(self, number: int) -> SocketRecord | None:
        """Return an open connection by its number."""
        return next((_describe_peer(each) for each in self._peers() if each.number == number), None)

    def count(self, id: str, client_id: str, channel: str | None) -> int:
        """Return the number of open connections for the id `connected`, otherwise of the topic's subscribers.

        A topic is a target of the socket, such as `state:channel`, `poll:lunch` or `event:goal`; `page` counts pages.
        Raises `BadRequest` for an unknown one.
        """
        if id == CONNECTED:
            return len(self._admission())
        target, _, name = id.partition(":")
        kind = TOPIC_KINDS.get(target if target in _NAMED_TARGETS else id)
        if kind is None or (target in _NAMED_TARGETS and not name):
            known = ", ".join(f"{each}:NAME" if each in _NAMED_TARGETS else each for each in (CONNECTED, *TOPIC_KINDS))
            raise invalid_parameter("id", id, f"one of {known}")

        def matches(topic: Key) -> bool:
            here = topic.channel == channel or (not topic.channel and kind not in _KINDS_WITH_ALL_CHANNELS)
            return (
                topic.kind == kind
                and (target not in _NAMED_TARGETS or topic.name in (name, ANY_NAME))
                and (not client_id or topic.owner in ("", client_id))
                and (channel is None or here)
            )

        return self._hub.count_subscribers(matches)

    @control_endpoint("POST", "/_emulator/sockets/close", body=CloseRequest, answer=SelectedSockets)
    async def close_sockets(self, call: Call) -> SelectedSockets:
        """Close a socket, or all, with a close code and a reason."""
        closing = call.body(CloseRequest)
        if not is_close_code(closing.code):
            raise invalid_member("code", closing.code, "within 1000 to 1003, 1007 to 1014 or 3000 to 4999")
        if (size := len(closing.reason.encode())) > MAX_REASON:
            raise too_long("reason", size=size, unit="bytes", limit=MAX_REASON)
        selected = self._select(closing)
        for each in selected:
            each.expel(closed_by_call(reason=closing.reason, code=closing.code))
        audit("sockets closed", sockets=len(selected))
        return SelectedSockets([each.number for each in selected])

    @control_endpoint("POST", "/_emulator/sockets/stall", body=StallRequest, answer=SelectedSockets)
    async def stall_sockets(self, call: Call) -> SelectedSockets:
        """Stop reading and writing one socket or all, as on a dead network; `"stalled": false` resumes.

        Messages sent during a stall are delivered at its end. A reset, closing the socket, or too many unread bytes
        also end the stall.
        """
        stalling = call.body(StallRequest)
        selected = self._select(stalling)
        for each in selected:
            each.connection.stall() if stalling.stalled else each.connection.release()
        done = "stalled" if stalling.stalled else "released"
        audit(f"sockets {done}", sockets=len(selected))
        self._changes.note(Change(Key(SOCKET, "", ""), done))
        return SelectedSockets([each.number for each in selected])

    def release_all(self) -> None:
        """End all stalls, at a reset."""
        for each in self._peers():
            each.connection.release()

    def _peers(self) -> list[GameOrPage]:
        """Return the open connections of games and pages, oldest first."""
        return sorted(self._admission().peers, key=attrgetter("number"))

    def _select(self, selection: SocketSelection) -> list[GameOrPage]:
        if (selection.socket is None) == (not selection.all):
            raise wrong_shape("socket, all", needed='the number of one socket, or {"all": true}')
        selected = [each for each in self._peers() if selection.all or each.number == selection.socket]
        if not selected and not selection.all:
            raise no_socket(socket=selection.socket)
        return selected


def _client_and_channel(peer: GameOrPage) -> tuple[str, str]:
    """Return the client id and the channel of a game, or of a page's subscriptions.

    Of a page, each is empty unless all subscriptions agree on it.
    """
    if isinstance(peer, Session):
        caller = peer.caller
        return (peer.client_id, "") if caller is None else (caller.client_id, caller.channel_id or "")
    topics = [topic for topic in peer.channels.values() if topic]
    client_ids = {topic.owner for topic in topics}
    channels = {topic.channel for topic in topics if topic.channel}
    return (
        client_ids.pop() if len(client_ids) == 1 else "",
        channels.pop() or "" if len(channels) == 1 else "",
    )


def _matches(where: tuple[str, str], client_id: str, channel_id: str) -> bool:
    return client_id in ("", where[0]) and channel_id in ("", where[1])


def _mentions(peer: GameOrPage, text: str) -> bool:
    each = _describe_peer(peer)
    names = (f"{each.number} {each.kind}", each.client_id, each.channel_id, each.user_id, *each.subscriptions)
    return any(text in name for name in names)


def _describe_peer(peer: GameOrPage) -> SocketRecord:
    kind, role, user_id = PAGE_KIND, "", ""
    if isinstance(peer, Session):
        kind, topics = GAME_KIND, sorted({topic_name(topic) for topic in peer.topics})
        if peer.caller is not None:
            role, user_id = peer.caller.role, peer.caller.user_id or ""
    else:
        topics = list(peer.channels)
    connection, (client_id, channel_id) = peer.connection, _client_and_channel(peer)
    return SocketRecord(
        peer.number, kind, client_id, role, channel_id, user_id, connection.address, connection.request_id, topics,
        peer.opened_at, peer.request_count, peer.frame_count, connection.unread, connection.is_stalled,
    )  # fmt: skip


def _number_from_cursor(cursor: str) -> int:
    """Return the number of the connection after which the page starts, from a cursor. Raises `BadRequest`."""
    cursor = cursor or FIRST
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= 18):
        raise invalid_cursor(cursor)
    return int(cursor)

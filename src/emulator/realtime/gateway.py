"""The socket of one running service: who may connect where, and how each request gets its one reply."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable
from itertools import islice
from typing import Final

from msgspec import Struct

from emulator.callers import Role
from emulator.clock import Clock, monotonic
from emulator.config.settings import Limits
from emulator.errors import (
    BadRequest,
    EngineError,
    Forbidden,
    NotFound,
    ServiceError,
    TooManyRequests,
    Unavailable,
)
from emulator.limits.connection_limit import ConnectionLimit
from emulator.limits.rate_limit import RateLimits
from emulator.observability.access_log import log_request
from emulator.observability.recorder import Recorder
from emulator.observability.request_context import RequestContext, current
from emulator.realtime import envelope
from emulator.realtime.action import BoundAction, BoundFeed, Message
from emulator.realtime.envelope import Request, Unreadable
from emulator.realtime.hub import Hub
from emulator.realtime.pusher import Page
from emulator.realtime.session import Outlet, Session
from emulator.wire.query import query_of

AUTHENTICATE: Final = "authenticate"
SUBSCRIBE, UNSUBSCRIBE = "subscribe", "unsubscribe"
UNSUPPORTED_TARGETS: Final = frozenset(
    {"drops", "matchmaking", "match", "match_poll", "gameMetadata", "gatewayActions", "gatewayActionState"}
)
"""Targets of published clients that are no part of the service (ruling X9)."""
PING_EVERY: Final = 20.0
"""Seconds between two pings of a connection; one that is silent from one to the next is dead."""

_PLAIN: Final = ("", "ws")
_SLASHES: Final = re.compile("//+")
_APP: Final = re.compile(r"/+app/+(?P<client_id>[^/]+)/?")
_FORM: Final = re.compile(r"/?([^/]*/){0,4}(?P<last>[^/]*)")
_LONGEST_CLIENT_ID: Final = 100
_PINGED_AT_ONCE: Final = 250
_log = logging.getLogger("emulator")


class Done(Struct):
    """There is nothing to say but that it was done."""

    ok: bool = True


class Gateway:
    """Actions and feeds by their names, and everybody who is connected."""

    def __init__(
        self,
        actions: Iterable[BoundAction],
        feeds: Iterable[BoundFeed],
        other_feed: BoundFeed,
        *,
        hub: Hub,
        clock: Clock,
        limits: Limits,
        rate_limits: RateLimits,
        recorder: Recorder,
        logs_requests: bool = False,
    ) -> None:
        self._actions = {name: each for each in actions for name in each.names}
        self._feeds = {target: each for each in feeds for target in each.targets}
        self._other_feed = other_feed
        """What a target means that no feed has: a developer's event (ruling X8)."""
        self._clock = clock
        self.limits = limits
        self._recorder = recorder
        self._logs_requests = logs_requests
        self._rate_limits = rate_limits
        self._connection_limit = ConnectionLimit(limits.sockets)
        self._peers: dict[Session | Page, str] = {}
        """Everybody, and the client id that each is counted for."""
        self.hub = hub

    def open(self, path: str, query: str, outlet: Outlet) -> Session | Page:
        """Who speaks at a path; raises `NotFound` where nobody does, and `TooManyRequests` where too many do.

        That is a page at `/app/<key>`, and a session at `/ws` and every path whose last segment is a client id (X1).
        """
        peer: Session | Page
        page = _APP.fullmatch(path)
        client_id = page["client_id"][:_LONGEST_CLIENT_ID] if page else client_id_of(path)
        try:
            self._connection_limit.acquire(client_id)
        except TooManyRequests as error:
            self._recorder.refused(error)
            raise
        if page:
            asked = query_of(query.encode()).get("protocol", "")
            protocol = int(asked) if asked.isdecimal() and len(asked) < 4 else None
            peer = Page(outlet, self.hub, protocol, most=self.limits.topics, left=self.left)
        else:
            peer = Session(outlet, client_id, self, most_topics=self.limits.topics)
        self._peers[peer] = client_id
        return peer

    def move(self, peer: Session, client_id: str) -> None:
        """Count a connection for the client id that it has turned out to be of; raises `TooManyRequests`."""
        if client_id != (before := self._peers.get(peer)):
            self._connection_limit.acquire(client_id)
            if before is not None:
                self._connection_limit.release(before)
            self._peers[peer] = client_id

    def left(self, peer: Session | Page) -> None:
        """This one's connection is no more."""
        client_id = self._peers.pop(peer, None)
        if client_id is not None:
            self._connection_limit.release(client_id)

    def close_all(self) -> None:
        """Close all sessions (1001)."""
        for peer in list(self._peers):
            peer.going_away()

    @property
    def size(self) -> int:
        """How many connections are open."""
        return len(self._peers)

    async def keep_alive(self) -> None:
        """Ping everybody now and then, for ever; a few at a time, so that nobody waits for it."""
        while True:
            await asyncio.sleep(PING_EVERY)
            everybody = iter(list(self._peers))
            while some := list(islice(everybody, _PINGED_AT_ONCE)):
                for peer in some:
                    peer.outlet.check()
                await asyncio.sleep(0)

    async def answer(self, session: Session, text: bytes) -> bytes:
        """The one reply to one request, whatever it is (ruling X2)."""
        began = monotonic()
        request = Request("")
        error: ServiceError | None = None
        session.asked += 1
        current.set(RequestContext(f"{session.outlet.request_id}/{session.asked}"))
        try:
            request = envelope.read_request(text)
            reply = envelope.answer(request, await self._perform(session, request), now=self._clock.now())
        except Unreadable as unreadable:
            request = unreadable.request
            error = unreadable
        except ServiceError as refused:
            self._recorder.refused(refused)
            error = refused
        except RecursionError:
            error = BadRequest("Invalid body", "the request is nested too deeply")
        except EngineError as failed:
            self._recorder.storage(ok=False)
            _log.error("storage failed in %s: %s", self._action(request), failed)
            error = Unavailable()
        except Exception:
            _log.exception("unexpected failure in %s", self._action(request))
            error = ServiceError("Internal Service Error", "an internal error prevented processing")
        if error is not None:
            if request.action == AUTHENTICATE and error.status < 500:
                session.failures += 1
            reply = envelope.refusal(request, error, now=self._clock.now())
        action, status, seconds = self._action(request), error.status if error else 200, monotonic() - began
        self._recorder.replied(action, status, seconds)
        if self._logs_requests:
            log_request({"action": f"socket {action}".rstrip()}, status, seconds, len(reply), session.caller)
        return reply

    async def _perform(self, session: Session, request: Request) -> object:
        if session.caller is not None:
            self._rate_limits.check(session.caller)
        message = Message(session, request)
        if request.action in (SUBSCRIBE, UNSUBSCRIBE):
            return await self._follow(message)
        found = self._actions.get((request.action, request.target))
        if found is None and request.action == AUTHENTICATE:  # which needs no target
            found = self._actions[AUTHENTICATE, ""]
        if found is None or not found.is_open:
            caller = message.caller
            if found is None:
                raise self._unknown(request)
            _check_role(caller.role, found.roles)
        return await found.answer(message)

    async def _follow(self, message: Message) -> Done:
        target = message.target
        feed = self._feeds.get(target)
        if feed is None or not feed.is_open:
            caller = message.caller
            if feed is None:
                if not target:
                    raise BadRequest("Malformed request", "params.target: the request names no target to subscribe to")
                if target in UNSUPPORTED_TARGETS:
                    raise _beyond(target)
                feed = self._other_feed
            _check_role(caller.role, feed.roles)
        topics = await feed.topics(message)
        if message.request.action == SUBSCRIBE:
            message.session.subscribe(*topics)
        else:
            message.session.unsubscribe(*topics)
        return Done()

    def _unknown(self, request: Request) -> NotFound:
        if request.target in UNSUPPORTED_TARGETS:
            return _beyond(request.target)
        targets = sorted({target or "no target" for name, target in self._actions if name == request.action})
        if targets:
            shown = request.target[:40] or "no target"
            return NotFound("Not Found", f"{request.action} is not for {shown}: it is for {', '.join(targets)}")
        names = ", ".join(sorted({name for name, _ in self._actions} | {SUBSCRIBE, UNSUBSCRIBE}))
        return NotFound("Not Found", f"there is no action {request.action[:40]!r}; there are {names}")

    def _action(self, request: Request) -> str:
        """Its name for those who watch; empty for what is no action of the service, and may be anything."""
        known = (request.action, request.target) in self._actions or (
            request.action in (SUBSCRIBE, UNSUBSCRIBE, AUTHENTICATE)
        )
        return request.action if known else ""


def client_id_of(path: str) -> str:
    """The client id that an address names, empty for none. Versions and projections are not looked at (ruling X1)."""
    path = _SLASHES.sub("/", path)
    form = _FORM.fullmatch(path)
    first = path.strip("/").partition("/")[0]
    if form is None or first in ("v1", "schema", "_emulator", "app", "_ns"):
        raise NotFound("Not Found", f"there is no socket at {path[:100]}: it is at /ws, or /<version>/<client id>")
    last = form["last"]
    if len(last) > _LONGEST_CLIENT_ID:
        raise BadRequest("Bad Request", f"the client id of the address: at most {_LONGEST_CLIENT_ID} characters")
    return "" if path.strip("/") in _PLAIN else last


def _check_role(role: Role, roles: frozenset[Role]) -> None:
    if role not in roles:
        needed = " or ".join(sorted(roles))
        raise Forbidden("role is not authorized", f"the role {role} may not do this: {needed} may")


def _beyond(target: str) -> NotFound:
    return NotFound("Not Found", f"{target} is not part of this service; nothing was done")

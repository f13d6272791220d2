"""WebSocket connections of one service: their paths and limits, and the dispatch of requests to actions."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from msgspec import Struct

from emulator.callers import Caller, Identify, finish_recording, role_error
from emulator.clock import Clock, monotonic
from emulator.config.environment import AnonymousLimits
from emulator.config.settings import Limits
from emulator.engines.base import Key
from emulator.errors import (
    BadRequest,
    EngineError,
    NotFound,
    ServiceError,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from emulator.faults import CONNECT, MESSAGE, FaultError, Faults, NoAnswer
from emulator.limits.rate_limit import RateLimits
from emulator.observability.logs import log_request
from emulator.observability.masking import EVERYTHING
from emulator.observability.recorder import Recorder
from emulator.observability.request_context import RequestContext, current, namespace
from emulator.parity.service import Parity
from emulator.realtime import envelope
from emulator.realtime.action import BoundAction, BoundFeed, Message
from emulator.realtime.admission import Admission
from emulator.realtime.envelope import Request, Unreadable
from emulator.realtime.faulty import disturb_handshake, disturb_message
from emulator.realtime.hub import SOCKET, Hub
from emulator.realtime.pusher import PusherConnection
from emulator.realtime.recording import frame_entry
from emulator.realtime.session import Connection, Session
from emulator.wire.query import query_of

AUTHENTICATE: Final = "authenticate"
SUBSCRIBE, UNSUBSCRIBE = "subscribe", "unsubscribe"
READ: Final = "get"
UNSUPPORTED_TARGETS: Final = frozenset(
    {"drops", "matchmaking", "match", "match_poll", "gameMetadata", "gatewayActions", "gatewayActionState"}
)
"""Targets that published clients know but the service does not have (ruling X9)."""
PING_EVERY: Final = 20.0
"""Seconds between pings; a connection that is silent from one to the next is dead."""

_NO_CLIENT_ID: Final = ("", "ws")
_SLASHES: Final = re.compile("//+")
_PUSHER_PATH: Final = re.compile(r"/+app/+[^/]+/?")
_PATH: Final = re.compile(r"/?([^/]*/){0,4}(?P<last>[^/]*)")
_MAX_CLIENT_ID_LENGTH: Final = 100
_PING_BATCH: Final = 250
_log = logging.getLogger("emulator")


class Done(Struct):
    """The answer `{"ok": true}`."""

    ok: bool = True


class Gateway:
    """The actions and feeds by name, and all open connections."""

    def __init__(
        self,
        actions: Iterable[BoundAction],
        feeds: Iterable[BoundFeed],
        other_feed: BoundFeed,
        *,
        identify: Identify,
        hub: Hub,
        clock: Clock,
        limits: Limits,
        anonymous: AnonymousLimits,
        rate_limits: RateLimits,
        parity: Parity,
        recorder: Recorder,
        faults: Faults,
        log_requests: bool = False,
    ) -> None:
        self._actions = {name: each for each in actions for name in each.names}
        self._feeds = {target: each for each in feeds for target in each.names}
        self._other_feed = other_feed
        """The feed of all other targets: the extension's own events (ruling X8)."""
        self._namespace = namespace.get()
        self._identify = identify
        self._clock = clock
        self.limits = limits
        self._recorder = recorder
        self._faults = faults
        self._log_requests = log_requests
        self._rate_limits = rate_limits
        self._parity = parity
        self.admission = Admission(clock, limits, anonymous, recorder)
        self.hub = hub

    @property
    def action_names(self) -> list[tuple[str, str]]:
        """The actions and targets of games' messages, apart from subscriptions."""
        return list(self._actions)

    def open(self, path: str, query: str, connection: Connection) -> Session | PusherConnection:
        """Open the handler for a path: Pusher at `/app/<key>`, else a session (ruling X1). Raises `ServiceError`."""
        peer: Session | PusherConnection
        if _PUSHER_PATH.fullmatch(path):
            version = query_of(query.encode()).get("protocol", "")
            protocol = int(version) if version.isdecimal() and len(version) < 4 else None
            peer = PusherConnection(connection, self.hub, protocol, self.limits.topics, self.remove)
        else:
            peer = Session(connection, client_id_of(path), self, self.limits.topics)
        try:
            self._rate_limits.check_address(connection.address)
            self.admission.add(peer)
            self.hub.changes.note(Key(SOCKET, "", ""), "connected")
            connection.mark = self.hub.changes.mark
        except TooManyRequests as error:
            self._recorder.refused(error)
            raise
        return peer

    async def disturb(self, path: str) -> None:
        """Apply the fault of a handshake, if one is due. Raises `ServiceError`, also for a path without a socket."""
        if CONNECT in self._faults.kinds:
            await disturb_handshake(self._faults, "" if _PUSHER_PATH.fullmatch(path) else client_id_of(path))

    def authenticated(self, session: Session, client_id: str) -> None:
        self.admission.authenticated(session, client_id)

    def remove(self, peer: Session | PusherConnection) -> None:
        self.admission.remove(peer)
        self.hub.changes.note(Key(SOCKET, "", ""), "closed")

    def close_all(self) -> None:
        """Close all connections (1001)."""
        for peer in list(self.admission.peers):
            peer.going_away()

    def expel(self, is_admitted: Callable[[Caller], bool]) -> int:
        """Close the connections of callers that are no longer admitted; return how many."""
        callers = [(peer, peer.caller) for peer in self.admission.peers if isinstance(peer, Session)]
        expelled = [peer for peer, caller in callers if caller is not None and not is_admitted(caller)]
        for peer in expelled:
            peer.expel("the secret or link behind this connection has ended")
        return len(expelled)

    async def keep_alive(self) -> None:
        """Ping all connections every `PING_EVERY` seconds, in batches so that requests are not delayed."""
        while True:
            await asyncio.sleep(PING_EVERY)
            self.admission.close_late()
            peers = iter(list(self.admission.peers))
            while batch := list(islice(peers, _PING_BATCH)):
                for peer in batch:
                    peer.connection.ping()
                await asyncio.sleep(0)

    async def clock_moved(self) -> None:
        """Close the connections that have not authenticated in time."""
        self.admission.close_late()

    async def answer(self, session: Session, text: bytes) -> bytes:
        """Return the reply to one request; every error becomes a reply (ruling X2). Empty if a fault prevents it."""
        started = monotonic()
        request = Request("")
        error: ServiceError | None = None
        session.request_count += 1
        if self._namespace:
            namespace.set(self._namespace)  # frames arrive outside the context that opened the connection
        context = RequestContext(f"{session.connection.request_id}/{session.request_count}", caller=session.caller)
        current.set(context)
        try:
            request = envelope.read_request(text, max_data=self.limits.body)
            if MESSAGE in self._faults.kinds:
                await disturb_message(self._faults, session, request)
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
            if request.action == AUTHENTICATE and error.status < 500 and not isinstance(error, FaultError):
                session.failed_logins += 1
            reply = b"" if isinstance(error, NoAnswer) else envelope.refusal(request, error, now=self._clock.now())
        action, status, seconds = self._action(request), error.status if error else 200, monotonic() - started
        self._recorder.replied(action, status, seconds)
        if context.production:
            self._settle(session, context, action, status)
        if self._log_requests:
            log_request({"action": f"socket {action}".rstrip()}, status, seconds, len(reply), session.caller)
        if self.hub.journal.is_on:
            secrets = self._secrets_of(request)
            name = request.action if EVERYTHING in secrets else f"{request.action} {request.target}".rstrip()
            self.hub.journal.add(
                frame_entry(
                    session.number,
                    context,
                    session.caller,
                    name,
                    text,
                    reply,
                    seconds,
                    error=error,
                    secrets=secrets,
                )
            )
        return reply

    def _secrets_of(self, request: Request) -> frozenset[str]:
        """The members of a request and of its reply that the journal hides."""
        found = self._actions.get((request.action, request.target))
        if found is None and request.action == AUTHENTICATE:  # its target may be a secret in the wrong place
            return frozenset({EVERYTHING})
        return found.secrets if found is not None else frozenset()

    async def _perform(self, session: Session, request: Request) -> object:
        if session.caller is not None:
            self._rate_limits.check(session.caller)
        message = Message(session, request, session.caller)
        if request.action in (SUBSCRIBE, UNSUBSCRIBE):
            return await self._change_subscription(message)
        found = self._actions.get((request.action, request.target))
        if found is None and request.action == AUTHENTICATE:  # whatever its target
            found = self._actions[AUTHENTICATE, ""]
        if found is not None and found.is_open:
            _forget_rights(session)
        else:
            caller = message.caller
            if found is None:
                raise self._unknown(request)
            if caller.role not in found.roles:
                raise role_error(caller.role, found.roles)
        if request.excess:
            raise TooLarge("Request too large", request.excess)
        recording = None
        if message.sender is not None and not found.is_open:
            message.sender, recording = await self._identify(message.sender, writes=request.action != READ)
        try:
            return await found.handler(message)
        finally:
            if recording is not None:
                await finish_recording(recording)

    async def _change_subscription(self, message: Message) -> Done:
        target = message.target
        if not target:
            _forget_rights(message.session)  # this check comes before that of rights
            raise BadRequest("Malformed request", f"params.target: {message.request.action} needs a target")
        feed = self._feeds.get(target)
        if feed is not None and feed.is_open:
            _forget_rights(message.session)
        else:
            caller = message.caller
            if feed is None:
                if target in UNSUPPORTED_TARGETS:
                    raise _unsupported(target)
                feed = self._other_feed
            if caller.role not in feed.roles:
                raise role_error(caller.role, feed.roles)
        if message.request.excess:
            raise TooLarge("Request too large", message.request.excess)
        if message.sender is not None:
            message.sender, _ = await self._identify(message.sender, writes=False)
        topics = await feed.handler(message)
        if message.request.action == SUBSCRIBE:
            message.session.subscribe(*topics)
            self.hub.note_subscription(topics[0])
        else:
            message.session.unsubscribe(*topics)
        return Done()

    def _unknown(self, request: Request) -> NotFound:
        if request.target in UNSUPPORTED_TARGETS:
            return _unsupported(request.target)
        targets = sorted({target or "no target" for name, target in self._actions if name == request.action})
        if targets:
            shown = request.target[:40] or "no target"
            return NotFound("Not Found", f"{request.action} does not support {shown}; supported: {', '.join(targets)}")
        names = ", ".join(sorted({name for name, _ in self._actions} | {SUBSCRIBE, UNSUBSCRIBE}))
        return NotFound("Not Found", f"there is no action {request.action[:40]!r}; the actions are {names}")

    def _settle(self, session: Session, context: RequestContext, action: str, status: int) -> None:
        """Complete the verdict on a message: a session that production had not authenticated would get 401."""
        is_by_rights = session.caller is not None and context.production == session.caller.production
        answered = Unauthorized.status if is_by_rights and action != AUTHENTICATE else None
        self._parity.settle(context, f"socket {action}".rstrip(), status, answered=answered)

    def _action(self, request: Request) -> str:
        """The action's name for logs and metrics; empty if unknown, so that clients cannot add labels."""
        known = (request.action, request.target) in self._actions or (
            request.action in (SUBSCRIBE, UNSUBSCRIBE, AUTHENTICATE)
        )
        return request.action if known else ""


def _forget_rights(session: Session) -> None:
    """Before a message that needs no rights, forget what production would do without those of the session."""
    context = current.get()
    if context is not None and session.caller is not None and context.production == session.caller.production:
        context.production = ""


def client_id_of(path: str) -> str:
    """The client id at the end of a path, empty if none; versions and projections are ignored (ruling X1)."""
    path = _SLASHES.sub("/", path)
    match = _PATH.fullmatch(path)
    first = path.strip("/").partition("/")[0]
    if match is None or first in ("v1", "schema", "_emulator", "app", "_ns"):
        raise NotFound("Not Found", f"there is no socket at {path[:100]}; use /ws or /<version>/<client id>")
    if len(match["last"]) > _MAX_CLIENT_ID_LENGTH:
        raise BadRequest("Bad Request", f"the path's client id has over {_MAX_CLIENT_ID_LENGTH} characters")
    return "" if path.strip("/") in _NO_CLIENT_ID else match["last"]


def _unsupported(target: str) -> NotFound:
    return NotFound("Not Found", f"{target} is not part of this service; nothing was done")

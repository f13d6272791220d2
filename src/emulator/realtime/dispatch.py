"""Dispatch of every message of a game to its action or feed: check the rights, run it, count and record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, InitVar, dataclass

from emulator.core.callers import IdentifyCaller, finish_recording_ids, role_error
from emulator.core.clock import Clock, monotonic
from emulator.core.errors import ServiceError, Unauthorized
from emulator.core.faults import MESSAGE, FaultError, Faults, NoResponse
from emulator.core.hints import Hints
from emulator.core.limits import RateLimits
from emulator.core.observability.entries import frame_entry
from emulator.core.observability.logs import log_request
from emulator.core.observability.masking import WHOLE_BODY
from emulator.core.observability.metrics import Metrics, error_for_client
from emulator.core.observability.request_context import RequestContext, current_request
from emulator.core.parity import Parity
from emulator.core.settings import Limits
from emulator.realtime import envelope, refusals
from emulator.realtime.action import Declaration, Done, Message
from emulator.realtime.envelope import Request
from emulator.realtime.faulty_messages import apply_message_fault
from emulator.realtime.hub import Hub
from emulator.realtime.session import Session

AUTHENTICATE = "authenticate"
SUBSCRIBE = "subscribe"
SUBSCRIPTION_ACTIONS = (SUBSCRIBE, "unsubscribe")
READ_ACTION = "get"
UNSUPPORTED_TARGETS = frozenset(
    {"drops", "matchmaking", "match", "match_poll", "gameMetadata", "gatewayActions", "gatewayActionState"}
)
"""Targets that published clients know but the service does not have (ruling X9)."""


@dataclass(eq=False, repr=False)
class MessageDispatcher:
    """The actions and feeds of one service by name. Handles messages with them."""

    actions: InitVar[Iterable[Declaration]]
    feeds: InitVar[Iterable[Declaration]]
    _other_feed: Declaration
    """The feed of all other targets: the extension's own events (ruling X8)."""
    _: KW_ONLY
    identify: IdentifyCaller
    hub: Hub
    clock: Clock
    limits: Limits
    rate_limits: RateLimits
    parity: Parity
    hints: Hints
    recorder: Metrics
    faults: Faults
    log_requests: bool
    namespace: str
    """The name of the namespace in log records."""

    def __post_init__(self, actions: Iterable[Declaration], feeds: Iterable[Declaration]) -> None:
        self._actions = {name: each for each in actions for name in each.names}
        self._feeds = {target: each for each in feeds for target in each.names}

    @property
    def action_names(self) -> list[tuple[str, str]]:
        """The actions and targets of messages, apart from subscriptions."""
        return list(self._actions)

    async def answer(self, session: Session, text: bytes) -> bytes:
        """Return the reply to one message; every error becomes a reply (ruling X2). Empty if a fault prevents it."""
        started = monotonic()
        session.request_count += 1
        context = RequestContext(
            f"{session.connection.request_id}/{session.request_count}",
            caller=session.caller,
            socket=session.number,
            namespace=self.namespace,  # frames arrive outside the context that opened the connection
        )
        current_request.set(context)
        request = Request("")
        error: ServiceError | None = None
        try:
            envelope.read_request(text, request, max_data=self.limits.body)
            if MESSAGE in self.faults.kinds:
                await apply_message_fault(self.faults, session, request, context)
            reply = envelope.encode_reply(request, await self._perform(session, request, context), now=self.clock.now())
        except Exception as failure:
            error = error_for_client(failure, self._action_label(request), self.recorder)
        if error is not None:
            reply = self._error_reply(session, request, error)
        label, status, seconds = self._action_label(request), error.status if error else 200, monotonic() - started
        self.recorder.actions[(label,)].add(status, seconds)
        context.caller = session.caller
        if self.hints.is_on:
            await self.hints.judge_request(context)
        if context.production or context.facts:
            self._settle_verdict(session, context, label, status)
        if self.log_requests:
            log_request({"action": f"socket {label}".rstrip()}, status, seconds, len(reply), session.caller)
        if self.hub.journal.is_on:
            name, secrets = self._name_and_secrets(request)
            self.hub.journal.add(frame_entry(context, name, text, reply, error, secrets, seconds))
        return reply

    async def _perform(self, session: Session, request: Request, context: RequestContext) -> object:
        """Run the action of a message, and return the `data` of its reply."""
        if session.caller is not None:
            self.rate_limits.check_caller(session.caller)
        message, is_subscription = Message(session, request, session.caller), request.action in SUBSCRIPTION_ACTIONS
        if is_subscription and not request.target:
            _clear_rights_verdict(session, context)  # this check comes before the check of rights
            raise refusals.missing_target(action=request.action)
        found = self._check_permitted(message, self._find_handler(request), context)
        recording = None
        if message.sender is not None and (is_subscription or not found.is_open):
            writes = not is_subscription and request.action != READ_ACTION
            message.sender, recording = await self.identify(message.sender, writes=writes)
        try:
            done = await found.handler(message)
        finally:
            if recording is not None:
                await finish_recording_ids(recording)
        if not is_subscription:
            return done
        if request.action == SUBSCRIBE:
            session.subscribe(*done)
            self.hub.note_subscription(done[0])
        else:
            session.unsubscribe(*done)
        return Done()

    def _check_permitted(self, message: Message, found: Declaration | None, context: RequestContext) -> Declaration:
        """Return the action or feed of a message if the sender may use it.

        Raises, in this order of checks, `Unauthorized`, `NotFound`, `Forbidden` and `TooLarge`.
        """
        if found is not None and found.is_open:
            _clear_rights_verdict(message.session, context)
        else:
            caller = message.caller
            if found is None:
                raise self._unknown_action(message.request)
            if caller.role not in found.roles:
                raise role_error(caller, found.roles)
        if message.request.excess:
            raise refusals.request_too_large(size=message.request.excess, limit=self.limits.body, rest=envelope.SMALL)
        return found

    def _unknown_action(self, request: Request) -> ServiceError:
        if request.target in UNSUPPORTED_TARGETS:
            return refusals.unsupported_target(target=request.target)
        targets = sorted({target or "no target" for name, target in self._actions if name == request.action})
        if targets:
            return refusals.wrong_target(action=request.action, target=request.target[:40], known=", ".join(targets))
        names = ", ".join(sorted({name for name, _ in self._actions} | {*SUBSCRIPTION_ACTIONS}))
        return refusals.no_action(action=request.action[:40], known=names)

    def _error_reply(self, session: Session, request: Request, error: ServiceError) -> bytes:
        """Return the reply that reports an error; count a failed login."""
        if request.action == AUTHENTICATE and error.status < 500 and not isinstance(error, FaultError):
            session.failed_logins += 1
        return b"" if isinstance(error, NoResponse) else envelope.encode_error(request, error, now=self.clock.now())

    def _settle_verdict(self, session: Session, context: RequestContext, label: str, status: int) -> None:
        """Complete production's verdict on a message.

        A session that production would not have authenticated gets 401.
        """
        is_by_rights = session.caller is not None and context.production == session.caller.production
        answered = Unauthorized.status if is_by_rights and label != AUTHENTICATE else None
        self.parity.settle_verdict(context, f"socket {label}".rstrip(), status, answered=answered)

    def _find_handler(self, request: Request) -> Declaration | None:
        """Return the action of a message, of `authenticate` whatever its target, or the feed of a subscription."""
        target = request.target
        if request.action in SUBSCRIPTION_ACTIONS:
            return self._feeds.get(target, None if target in UNSUPPORTED_TARGETS else self._other_feed)
        return self._actions.get((request.action, "" if request.action == AUTHENTICATE else target))

    def _action_label(self, request: Request) -> str:
        """Return the action's name for logs and metrics; empty if unknown, so that clients cannot add labels."""
        is_known = request.action in SUBSCRIPTION_ACTIONS or self._find_handler(request) is not None
        return request.action if is_known else ""

    def _name_and_secrets(self, request: Request) -> tuple[str, frozenset[str]]:
        """Return the name of a request in the journal, and the members of it and its reply that the journal hides."""
        if request.action == AUTHENTICATE and request.target:  # which may be a secret in the wrong place
            return AUTHENTICATE, frozenset({WHOLE_BODY})
        found = self._find_handler(request)
        return f"{request.action} {request.target}".rstrip(), found.secrets if found is not None else frozenset()


def _clear_rights_verdict(session: Session, context: RequestContext) -> None:
    """Clear production's verdict about the session's rights, before a message that needs no rights."""
    if session.caller is not None and context.production == session.caller.production:
        context.production = ""

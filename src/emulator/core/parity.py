"""The rules by which production differs from the sandbox, the verdict on each request, and how often each was given.

A verdict says what production does and by which rule. It is empty if nothing differs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field

from msgspec import Struct

from emulator.contract.parity import DIFFER, REFUSE, RULES, UNKNOWN, outcome_of, rule_of, verdict_of
from emulator.core.bounded_cache import BoundedCache
from emulator.core.callers import Caller
from emulator.core.clock import Clock
from emulator.core.errors import MethodNotAllowed, ServiceError, TooManyRequests
from emulator.core.journal import is_probe
from emulator.core.keys import Expired, Key
from emulator.core.limits import BY_CALLER, RateLimits
from emulator.core.observability.facts import CHANGED, READ, READ_ALL, REPLACED
from emulator.core.observability.request_context import RequestContext, current

ENDPOINT = verdict_of(REFUSE, "endpoint")
"""Production does not have this endpoint."""
REGISTRATION = verdict_of(REFUSE, "registration")
"""The client id is not in the extensions file."""
UNREGISTERED = verdict_of(UNKNOWN, "registration")
"""There is no extensions file, and no token."""
SIGNATURE = verdict_of(REFUSE, "signature")
"""No secret of the extension signed the token."""
UNDECODED_SECRET = verdict_of(REFUSE, "secret")
"""The base64 text of a secret signed the token, not the secret."""
UNVERIFIED = verdict_of(UNKNOWN, "signature")
"""No secret of the extension is known here."""
STAGE = verdict_of(REFUSE, "stage")
"""The token is for the sandbox."""
SANDBOX_TOKEN = verdict_of(UNKNOWN, "stage")
"""The token is for the sandbox, and there is no extensions file with a secret for another.

Counted once, and not shown with each request.
"""
EXP = verdict_of(REFUSE, "exp")
"""The token never expires, or says so in milliseconds."""
CLAIMS = verdict_of(REFUSE, "claims")
"""The token is for another extension, or a claim is malformed."""
CALLER_RATE = verdict_of(REFUSE, "caller-rate")
"""The caller, or the address, sends more requests than production's default rate."""
CLIENT_RATE = verdict_of(REFUSE, "client-rate")
"""The callers of the client id send too many requests together."""
SANDBOX_ONLY_RATE = verdict_of(DIFFER, "client-rate")
"""The sandbox refuses, but production had counted fewer requests, because it had refused some."""
ROLE = verdict_of(REFUSE, "role")
"""The role may do this in the sandbox only."""
RECEIPT = verdict_of(REFUSE, "receipt")
"""The receipt of a purchase is not signed, has expired or is another user's."""
OTHERS_PURCHASE = verdict_of(DIFFER, "receipt")
"""The sandbox refuses a purchase that another caller has posted; production knows who may post it from the receipt."""
PIN_GUESSES = verdict_of(REFUSE, "pin-guesses")
"""Too many PINs were requested, or typed wrong."""
PIN_CHANNEL = verdict_of(REFUSE, "pin-channel")
"""The PIN is bound to no channel."""
LIFETIME = verdict_of(DIFFER, "lifetime")
"""A store expired that production would still have."""
UNJUDGED = "-"
"""A request that gets no verdict."""


def is_final(verdict: str) -> bool:
    """Whether production would make no later check, because it has refused, or because the request gets no verdict."""
    return verdict not in _UNDECIDED


_UNDECIDED = frozenset({"", UNREGISTERED, UNVERIFIED, SANDBOX_TOKEN})


class Example(Struct, gc=False):
    """A request with a verdict."""

    request_id: str
    endpoint: str
    """Its method and path, or the action of a message over the socket."""
    at: int
    """When it was answered, in Unix ms by the service's clock."""


class VerdictCount(Struct):
    """The count of one verdict."""

    rule: str
    verdict: str
    """`refuse`, `unknown` or `differ`."""
    count: int
    examples: list[Example]
    """The first request and the latest; one if they are the same."""


class VerdictTally:
    """The verdicts given so far."""

    def __init__(self) -> None:
        self._seen: dict[str, VerdictCount] = {}

    def count(self, verdict: str, example: Example) -> None:
        """Count a verdict, and keep the first and the latest example. `SANDBOX_TOKEN` counts once."""
        found = self._seen.get(verdict)
        if found is None:
            self._seen[verdict] = VerdictCount(rule_of(verdict), outcome_of(verdict), 1, [example])
        elif verdict != SANDBOX_TOKEN:
            found.count += 1
            found.examples[1:] = [example]

    def clear(self) -> None:
        self._seen.clear()

    @property
    def counted_verdicts(self) -> list[VerdictCount]:
        """All verdicts so far, in the order of production's checks."""
        order = list(RULES)
        return sorted(self._seen.values(), key=lambda each: (order.index(each.rule), each.verdict))


def set_verdict(verdict: str) -> None:
    """Set production's verdict on the current request, unless an earlier check has already decided it."""
    if verdict:
        _set_verdict_on(current(), verdict)


def _set_verdict_on(context: RequestContext, verdict: str) -> None:
    if not is_final(context.production):
        context.production = verdict


class ProductionCheck(AbstractContextManager[None]):
    """A block with a check of production, which refuses with 4xx.

    The refusal ends the block. With `raises` it is raised; otherwise it becomes the verdict, as in the sandbox.
    """

    def __init__(self, verdict: str, *, raises: bool = False) -> None:
        self._verdict, self._raises = verdict, raises

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if self._raises or not isinstance(error, ServiceError) or error.status >= 500:
            return False
        set_verdict(self._verdict)
        return True


def overrule_verdict(verdict: str) -> None:
    """Set production's verdict on the current request, whatever earlier checks have decided.

    It is `UNJUDGED` if the emulator's helper script sent the request, not an extension.
    """
    current().production = verdict


def is_check_reached() -> bool:
    """Whether production would reach this check of the current request."""
    return not is_final(current_verdict())


def current_verdict() -> str:
    """Return the verdict that checks of the current request have set so far."""
    return current().production


_MAX_LAPSES = 10_000


class ExpiredEarly:
    """The expired records of stores and trivia, until they would also expire in production. Empty in production.

    Housekeeping and moves of the clock report them. Forgotten at a restart.
    """

    def __init__(self, lifetimes: Mapping[str, tuple[int, int]]) -> None:
        """`lifetimes` has, by kind of record, the lifetimes here and in production, in ms."""
        self._lifetimes = lifetimes
        self._until: BoundedCache[Key, int] = BoundedCache(_MAX_LAPSES)
        """When each would expire in production, in Unix ms."""

    def clear(self) -> None:
        self._until.clear()

    def add_expired(self, found: Iterable[Expired]) -> None:
        """Add expired records."""
        for key, at in found:
            if key.kind in self._lifetimes:
                here, there = self._lifetimes[key.kind]
                self._until[key] = at - here + there

    def judge_reads(self, context: RequestContext, now: int) -> None:
        """Set the verdict if production would still have a record that a request read. Follow the request's changes.

        After a change, production keeps what has expired here.
        """
        for fact, key in context.facts if len(self._until) else ():
            is_kept = now < (self._until.get(key) or 0)
            if fact == REPLACED:
                self._until.pop(key)
            elif fact == CHANGED and is_kept:
                self._until[key] = now + self._lifetimes[key.kind][1]
            elif (fact == READ and is_kept) or (fact == READ_ALL and self._production_keeps_any(key, now)):
                _set_verdict_on(context, LIFETIME)

    def _production_keeps_any(self, group: Key, now: int) -> bool:
        kept = [key for key, at in self._until.items() if now < at]
        return any((key.kind, key.owner) == (group.kind, group.owner) for key in kept)


@dataclass(eq=False, repr=False)
class Parity:
    """The verdicts of one service. Production gives none."""

    _clock: Clock
    _absent: Collection[tuple[str, str]]
    """The endpoints that production does not have."""
    lapses: ExpiredEarly
    total: VerdictTally
    """Since the start of the process, of all namespaces."""
    _: KW_ONLY
    is_on: bool
    """Whether this is a sandbox."""
    tally: VerdictTally = field(default_factory=VerdictTally)
    """Since the latest reset."""

    def check_endpoint(self, method: str, path: str) -> None:
        """Set the verdict that production does not have the called endpoint."""
        if (method, path) in self._absent:
            set_verdict(ENDPOINT)

    def judge_unsupported_method(self, method: str, path: str) -> None:
        """Set the verdict on a response with 405 if production does not have the path at all."""
        context = current()
        if any(path == absent for _, absent in self._absent):
            context.production = ENDPOINT
            is_counted = not path.startswith("/_emulator")
            self.settle_verdict(context, f"{method} {path}", MethodNotAllowed.status, is_counted=is_counted)

    def settle_verdict(
        self,
        context: RequestContext,
        endpoint: str,
        status: int,
        *,
        answered: int | None = None,
        is_counted: bool = True,
    ) -> None:
        """Complete the verdict on a request, now that the sandbox's `status` is known.

        `answered` is production's status, if it differs from the rule's. Calls of the control API are not counted:
        tests make them, and no extension does. Probes, which a tool makes for itself, are not counted either.
        """
        if context.facts:
            self.lapses.judge_reads(context, self._clock.now())
        verdict = "" if context.production == UNJUDGED else context.production
        if verdict and outcome_of(verdict) != DIFFER and status == (answered or RULES[rule_of(verdict)].status):
            verdict = ""  # the sandbox returned the status that production would
        context.production = "" if verdict == SANDBOX_TOKEN else verdict
        if verdict and is_counted and not is_probe(context.id):
            example = Example(context.id, endpoint, self._clock.now())
            self.tally.count(verdict, example)
            self.total.count(verdict, example)


class ComparedRateLimits(RateLimits):
    """Limits requests as `RateLimits` does, and counts them separately against production's limits."""

    def __init__(self, clock: Clock, *, per_caller: int, per_client: int, production: int) -> None:
        """`production` is a caller's rate in production; 0 means no limit."""
        super().__init__(clock, per_caller=per_caller, per_client=per_client)
        self._there = RateLimits(clock, per_caller=production, per_client=per_client)
        self._is_limited = bool(per_caller or per_client)

    def clear(self) -> None:
        super().clear()
        self._there.clear()

    def check_caller(self, caller: Caller, address: str = "") -> None:
        set_verdict(caller.production)
        verdict = current_verdict()
        if not is_final(verdict):
            whose, wait = self._there.exceeded_rate(caller)
            if wait:
                set_verdict(CALLER_RATE if whose == BY_CALLER else CLIENT_RATE)
        elif address and verdict != UNJUDGED:  # production counts a refused token, at its address
            self._count_failure(address)
        if not self._is_limited:
            return
        try:
            super().check_caller(caller)
        except TooManyRequests:
            set_verdict(SANDBOX_ONLY_RATE)
            raise

    def check_address(self, address: str) -> None:
        if current_verdict() == REGISTRATION:
            self._count_failure(address)
        elif is_check_reached():
            with ProductionCheck(CALLER_RATE):
                self._there.check_address(address)
        super().check_address(address)

    def check_invalid_tokens(self, address: str, *, one_more: bool = False) -> None:
        with ProductionCheck(CALLER_RATE):
            self._there.check_invalid_tokens(address, one_more=one_more)
        super().check_invalid_tokens(address, one_more=one_more)

    def _count_failure(self, address: str) -> None:
        """Count a credential that production would refuse.

        After too many from one address, production would return 429.
        """
        try:
            self._there.check_invalid_tokens(address, one_more=True)
        except TooManyRequests:
            overrule_verdict(CALLER_RATE)

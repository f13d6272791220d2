"""The rules by which production differs from the sandbox, the verdict on each request, and how often each was given.

A verdict says what production does and by which rule. It is empty if nothing differs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

from emulator.clock import Clock
from emulator.contract.parity import DIFFER, REFUSE, RULES, UNKNOWN, outcome_of, rule_of, verdict_of
from emulator.errors import MethodNotAllowed, ServiceError
from emulator.observability.request_context import RequestContext, current_request

ANSWERS: Final[Mapping[str, int]] = {name: rule.status for name, rule in RULES.items()}
"""The status of production's response by rule, in the order in which production applies them."""

ENDPOINT: Final = verdict_of(REFUSE, "endpoint")
"""Production does not have this endpoint."""
REGISTRATION: Final = verdict_of(REFUSE, "registration")
"""The client id is not in the extensions file."""
UNREGISTERED: Final = verdict_of(UNKNOWN, "registration")
"""There is no extensions file, and no token."""
SIGNATURE: Final = verdict_of(REFUSE, "signature")
"""No secret of the extension signed the token."""
UNDECODED: Final = verdict_of(REFUSE, "secret")
"""The base64 text of a secret signed the token, not the secret."""
UNVERIFIED: Final = verdict_of(UNKNOWN, "signature")
"""No secret of the extension is known here."""
STAGE: Final = verdict_of(REFUSE, "stage")
"""The token is for the sandbox."""
FOR_SANDBOX: Final = verdict_of(UNKNOWN, "stage")
"""The token is for the sandbox, and there is no extensions file with a secret for another.

Counted once, and not shown with each request.
"""
EXP: Final = verdict_of(REFUSE, "exp")
"""The token never expires, or says so in milliseconds."""
CLAIMS: Final = verdict_of(REFUSE, "claims")
"""The token is for another extension, or a claim is malformed."""
CALLER_RATE: Final = verdict_of(REFUSE, "caller-rate")
"""The caller, or the address, sends more requests than production's default rate."""
CLIENT_RATE: Final = verdict_of(REFUSE, "client-rate")
"""The callers of the client id send too many requests together."""
FREER_RATE: Final = verdict_of(DIFFER, "client-rate")
"""The sandbox refuses, but production had counted fewer requests, because it had refused some."""
ROLE: Final = verdict_of(REFUSE, "role")
"""The role may do this in the sandbox only."""
RECEIPT: Final = verdict_of(REFUSE, "receipt")
"""The receipt of a purchase is not signed, has expired or is another user's."""
OTHER_POSTER: Final = verdict_of(DIFFER, "receipt")
"""The sandbox refuses a purchase that another caller has posted; production knows who may post it from the receipt."""
PIN_GUESSES: Final = verdict_of(REFUSE, "pin-guesses")
"""Too many PINs were requested, or typed wrong."""
PIN_CHANNEL: Final = verdict_of(REFUSE, "pin-channel")
"""The PIN is bound to no channel."""
LIFETIME: Final = verdict_of(DIFFER, "lifetime")
"""A store expired that production would still have."""
UNJUDGED: Final = "-"
"""A request that gets no verdict."""


def is_final(verdict: str) -> bool:
    """Whether production would make no later check, because it has refused, or because the request gets no verdict."""
    return verdict not in _OPEN


_OPEN: Final = frozenset({"", UNREGISTERED, UNVERIFIED, FOR_SANDBOX})
_STATUSES: Final = {
    **{verdict_of(outcome, rule): status for outcome in (REFUSE, UNKNOWN) for rule, status in ANSWERS.items()},
    **{verdict_of(DIFFER, rule): 0 for rule in ANSWERS},
}
"""The status of production's response by verdict; 0 if that is not all that differs."""


def final_verdict(verdict: str, status: int, answered: int | None = None) -> str:
    """Return the verdict; empty if the sandbox returned the status that production would.

    `answered` is production's status, if it differs from the rule's.
    """
    if verdict == UNJUDGED:
        return ""
    there = _STATUSES[verdict]
    return "" if status == ((answered or there) if there else 0) else verdict


class Example(Struct, gc=False):
    """A request with a verdict."""

    request_id: str
    endpoint: str
    """Its method and path, or the action of a message over the socket."""
    at: int
    """When it was answered, in Unix ms by the service's clock."""


class Seen(Struct):
    """The count of one verdict."""

    rule: str
    verdict: str
    """`refuse`, `unknown` or `differ`."""
    count: int
    examples: list[Example]
    """The first request and the latest; one if they are the same."""


class _Count:
    __slots__ = ("count", "first", "latest")

    def __init__(self, first: Example) -> None:
        self.count, self.first, self.latest = 1, first, first

    @property
    def examples(self) -> list[Example]:
        return [self.first] if self.count == 1 else [self.first, self.latest]


class Tally:
    """The verdicts given so far."""

    def __init__(self) -> None:
        self._counts: dict[str, _Count] = {}

    def count(self, verdict: str, example: Example) -> None:
        """Count a verdict, and keep the first and the latest example. `FOR_SANDBOX` counts once."""
        found = self._counts.get(verdict)
        if found is None:
            self._counts[verdict] = _Count(example)
        elif verdict != FOR_SANDBOX:
            found.count += 1
            found.latest = example

    def clear(self) -> None:
        self._counts.clear()

    @property
    def seen(self) -> list[Seen]:
        """All verdicts so far, in the order of production's checks."""
        order = list(ANSWERS)
        counts = sorted(self._counts.items(), key=lambda item: (order.index(rule_of(item[0])), item[0]))
        return [Seen(rule_of(verdict), outcome_of(verdict), each.count, each.examples) for verdict, each in counts]


def note(verdict: str) -> None:
    """Set production's verdict on the current request, unless an earlier check has already decided it."""
    context = current_request.get()
    if context is not None and verdict and not is_final(context.production):
        context.production = verdict


class ProductionCheck:
    """A block with a check of production, which refuses with 4xx.

    The refusal ends the block. With `raises` it is raised; otherwise it becomes the verdict, as in the sandbox.
    """

    def __init__(self, verdict: str, *, raises: bool = False) -> None:
        self._verdict, self._raises = verdict, raises

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if self._raises or not isinstance(error, ServiceError) or error.status >= 500:
            return False
        note(self._verdict)
        return True


def withdraw() -> None:
    """Remove the verdict on the current request, because a fault keeps the service from handling it."""
    context = current_request.get()
    if context is not None:
        context.production = ""


def excuse() -> None:
    """Give the current request no verdict, because the emulator's helper script sent it, not an extension."""
    context = current_request.get()
    if context is not None:
        context.production = UNJUDGED


def is_reached() -> bool:
    """Whether production would reach this check of the current request."""
    context = current_request.get()
    return context is None or not is_final(context.production)


def current_verdict() -> str:
    """Return the verdict that checks of the current request have set so far."""
    context = current_request.get()
    return context.production if context is not None else ""


class Parity:
    """The verdicts of one service. Production gives none."""

    def __init__(self, clock: Clock, absent: Collection[tuple[str, str]], total: Tally, *, is_on: bool) -> None:
        self.is_on = is_on
        """Whether this is a sandbox."""
        self._clock = clock
        self._absent = frozenset(absent)
        """The endpoints that production does not have."""
        self.tally = Tally()
        """Since the latest reset."""
        self.total = total
        """Since the start of the process, of all namespaces."""

    def check_endpoint(self, method: str, path: str) -> None:
        """Set the verdict that production does not have the called endpoint."""
        if (method, path) in self._absent:
            note(ENDPOINT)

    def judge_unsupported_method(self, method: str, path: str) -> None:
        """Set the verdict on a response with 405 if production does not have the path at all."""
        context = current_request.get()
        if context is not None and any(path == absent for _, absent in self._absent):
            context.production = ENDPOINT
            is_counted = not path.startswith("/_emulator")
            self.settle(context, f"{method} {path}", MethodNotAllowed.status, is_counted=is_counted)

    def settle(
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
        verdict = final_verdict(context.production, status, answered)
        context.production = "" if verdict == FOR_SANDBOX else verdict
        if verdict and is_counted and not context.is_probe:
            example = Example(context.id, endpoint, self._clock.now())
            self.tally.count(verdict, example)
            self.total.count(verdict, example)

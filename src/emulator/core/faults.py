"""Faults made on purpose, as a service applies them: what they match, and which of them acts."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, Protocol
from weakref import WeakSet

from msgspec import Struct

from emulator.contract.faults import DEFAULT_STATUS
from emulator.core.callers import Caller
from emulator.core.clock import Clock
from emulator.core.errors import TITLES, Facts, ServiceError, refusal
from emulator.core.wire.json_codec import Milliseconds

REQUEST = "request"
"""The kind of a request of the service API."""
MESSAGE = "message"
"""The kind of a message of a game."""
CONNECT = "connect"
"""The kind of a handshake, of a game or a page."""
BROADCAST = "broadcast"
"""The kind of a broadcast, to games and pages alike."""
ANY = "*"
"""In a match, at the end of a name: any text."""

STATUS = "status"
DELAY = "delay"
DROP = "drop"
RESET = "reset"
TRUNCATE = "truncate"
STALL = "stall"
CLOSE = "close"
LOSE = "lose"
DOUBLE = "double"
REORDER = "reorder"

FAULT_REASON = "Fault"
"""The reason of every response that a fault makes."""


class Fault(Struct, forbid_unknown_fields=True):
    """A fault, with flat members. Only one fault acts on a request: the oldest that matches and is due."""

    match: str
    """`POST /v1/e/vote`: a method or `*`, and a path or a beginning of one with `*`.

    `SOCKET set state`: action and target of a game's message. `SOCKET connect`: a handshake. `BROADCAST game_start`,
    `game_*`, or `*`.
    """
    effect: str
    """`status`, `delay`, `drop`, `reset`, `truncate`, `stall`, `close`, `lose`, `double` or `reorder`."""
    id: str = ""
    """1 to 64 letters, digits, `-` and `_`. When absent, `f1`, `f2` and so on. The same id replaces a fault."""
    role: str = ""
    """Only for callers with this role."""
    channel: str = ""
    """Only in this channel."""
    user: str = ""
    """Only for callers with this user id or opaque id."""
    client_id: str = ""
    """Only for this extension."""
    event: str = ""
    """Only for broadcasts of this event."""
    status: int | None = None
    """Of `status`: 400 to 599, 503 when absent."""
    retry_after: int | None = None
    """Of `status`: the header `Retry-After`, in seconds."""
    delay: Milliseconds | None = None
    """Of `delay`: in ms of real time."""
    delay_max: Milliseconds | None = None
    """Of `delay`: with it, the delay is random from `delay` to `delay_max`."""
    bytes: int | None = None
    """Of `truncate`: bytes of the body before the connection closes; 0 when absent."""
    code: int | None = None
    """Of `close`: the close code, 1012 when absent."""
    times: int | None = None
    """The number of hits after which the fault is over."""
    share: float | None = None
    """The share of the matching requests that it hits, above 0, at most 1. With `times`, only hits count."""
    seed: int = 0
    """Of `share` and of random delays: the same seed makes the same choices."""
    lasts: Milliseconds | None = None
    """Milliseconds of the service's clock after which the fault is over."""
    hits: int = 0
    """How often it has acted so far. Ignored in requests."""
    left: int | None = None
    """With `times`: hits left. Ignored in requests."""
    ends_at: int | None = None
    """With `lasts`: Unix ms by the service's clock. Ignored in requests."""


class FaultSubject(NamedTuple):
    """A request, message, handshake or broadcast on which a fault can act."""

    kind: str
    name: str
    """The method of a request, the action of a message, or the name of an event; empty for a handshake."""
    target: str = ""
    """The declared path of a request, or the target of a message."""
    caller: Caller | None = None
    client_id: str = ""
    channel: str | None = None


class Releasable(Protocol):
    """A request or delivery that a fault holds back."""

    def release(self) -> None: ...


class Pause:
    """A delay that ends early when its fault is removed."""

    def __init__(self) -> None:
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def release(self) -> None:
        """End the wait."""
        if not self._ended.done():
            self._ended.set_result(None)

    async def wait(self, seconds: float | None = None) -> None:
        """Return after `seconds`, or earlier when released. With `None`, wait for the release only."""
        await asyncio.wait((self._ended,), timeout=seconds)


@dataclass(frozen=True, eq=False, slots=True)
class FaultHit:
    """A fault that acts on one request, message or broadcast."""

    fault: Fault
    held: ArmedFault
    """What holds back what the fault delays or stalls."""
    delay: int
    """In ms of real time."""

    @property
    def header(self) -> str:
        """The header `X-Emulator-Fault`."""
        return f"{self.fault.id}; effect={self.fault.effect}"

    def pause(self) -> Pause:
        """Return a wait that ends when the fault is removed, and at a reset or stop."""
        pause = Pause()
        self.held.add(pause)
        return pause

    async def wait_for_delay(self) -> bool:
        """Wait for the delay. Return whether to go on; not after a reset or a stop."""
        await self.pause().wait(self.delay / 1_000)
        return not self.held.is_void

    def error(self) -> FaultError:
        """Return the error that makes the fault's response, or that suppresses the response."""
        if self.fault.effect == STATUS:
            status = self.fault.status or DEFAULT_STATUS
            return FaultError(self, f"answered {status}", status, self.fault.retry_after)
        if self.fault.effect == DELAY:
            return FaultError(self, "delayed the response until the service was reset or stopped", 503)
        return NoResponse(self, _EFFECT_TEXTS[self.fault.effect])


_EFFECT_TEXTS = {
    DROP: "gave no response",
    RESET: "reset the connection",
    STALL: "keeps the connection open and sends nothing",
    CLOSE: "closed the connection",
    TRUNCATE: "cut the response short",
}


@refusal(ServiceError, FAULT_REASON, "docs: Faults", "A fault that you added caused this",
         "Remove it: `extcli fault rm {fault}`.")  # fmt: skip
def _acted(*, fault: str, deed: str) -> Facts:
    detail = f"fault {fault} {deed}; remove it with `extcli fault rm {fault}`"
    return Facts(detail, f"fault {fault}: it {deed}", "no matching fault")


class FaultError(ServiceError):
    """A response made by a fault."""

    def __init__(self, hit: FaultHit, deed: str, status: int = 0, retry_after: int | None = None) -> None:
        made = _acted(fault=hit.fault.id, deed=deed)
        super().__init__(made.reason, made.detail)
        self.refused = made.refused
        self.hit = hit
        self.status = status
        self.title = TITLES.get(status, FAULT_REASON)
        self.retry_after = retry_after


class NoResponse(FaultError):
    """Raised when a fault leaves a request, message or handshake without a response. Its status is 0."""


class FaultPattern(NamedTuple):
    """The attempts that a fault matches, apart from its conditions."""

    kind: str
    name: str
    """The method, the action or the event. Here and in `target`, `*` at the end stands for any text."""
    target: str = ANY
    """The path or the target."""

    def matches(self, attempt: FaultSubject) -> bool:
        return (
            self.kind == attempt.kind
            and _matches_text(self.name, attempt.name)
            and _matches_text(self.target, attempt.target)
        )


def _matches_text(pattern: str, text: str) -> bool:
    return text.startswith(pattern[:-1]) if pattern.endswith(ANY) else text == pattern


def meets_conditions(fault: Fault, attempt: FaultSubject) -> bool:
    """Whether an attempt meets the conditions of a fault."""
    caller = attempt.caller
    role, *users = (caller.role, caller.user_id, caller.opaque_id) if caller else (None,)
    return (
        fault.client_id in ("", attempt.client_id)
        and fault.channel in ("", attempt.channel)
        and fault.role in ("", role)
        and fault.user in ("", *users)
        and fault.event in ("", attempt.name)
    )


@dataclass(eq=False)
class ArmedFault:
    """A fault of a running service, and the requests and deliveries that it holds back, by weak references."""

    fault: Fault
    """With its present state."""
    pattern: FaultPattern
    random: Random
    is_over: bool = False
    """Once over, a fault stays so, also if the clock is set back."""
    is_void: bool = False
    """Whether a reset or a stop ended the fault. Delayed responses and broadcasts are then discarded."""
    _is_released: bool = False
    _things: WeakSet[Releasable] = field(default_factory=WeakSet)

    def add(self, thing: Releasable) -> None:
        """Hold something back, unless the fault has ended since it was chosen."""
        if self._is_released:
            thing.release()
        else:
            self._things.add(thing)

    def release(self, *, is_void: bool) -> None:
        """Release everything, because the fault has ended."""
        self.is_void, self._is_released = is_void, True
        for each in list(self._things):
            each.release()

    def count_hit(self) -> FaultHit:
        fault = self.fault
        fault.hits += 1
        if fault.times is not None:
            fault.left = fault.times - fault.hits
        delay = fault.delay or 0
        if fault.effect == DELAY and fault.delay_max is not None:
            delay = self.random.randint(delay, fault.delay_max)
        return FaultHit(fault, self, delay)


class Faults:
    """The faults of one service, and the choice of the one that acts. `control/faults` adds and removes them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.armed: dict[str, ArmedFault] = {}
        """By id, oldest first."""
        self.kinds: Collection[str] = frozenset()
        """The kinds of attempts on which a fault may act now; empty in production."""

    def find(self, id: str) -> Fault | None:
        """Return a fault with its present state, if it is still there."""
        armed = self.armed.get(id)
        return armed.fault if armed else None

    def all(self) -> Mapping[str, ArmedFault]:
        """Return all faults by id, oldest first. Each says whether it is over."""
        self._end_expired()
        return self.armed

    def needs_caller(self, attempt: FaultSubject) -> bool:
        """Whether a fault that could match has conditions on the caller."""
        faults = [each.fault for each in self.armed.values() if each.pattern.matches(attempt)]
        return any(fault.role or fault.channel or fault.user or fault.client_id for fault in faults)

    def choose(self, attempt: FaultSubject, without: str = "") -> FaultHit | None:
        """Return the oldest fault that matches and acts now, and count the hit.

        Faults with the effect `without` are skipped.
        """
        self._end_expired()
        for each in self.armed.values():
            fault = each.fault
            if each.is_over or fault.effect == without:
                continue
            if not each.pattern.matches(attempt) or not meets_conditions(fault, attempt):
                continue
            if fault.share is None or each.random.random() < fault.share:
                hit = each.count_hit()
                if fault.left == 0:
                    each.is_over = True
                    self.update_kinds()
                return hit
        return None

    async def clock_moved(self) -> None:
        """End the faults whose time is over."""
        self._end_expired()

    def clear(self) -> None:
        """Forget all faults, at a reset or stop. Requests and broadcasts that they hold back are dropped."""
        armed, self.armed = self.armed, {}
        for each in armed.values():
            each.release(is_void=True)
        self.update_kinds()

    def _end_expired(self) -> None:
        now = self._clock.now()
        for each in self.armed.values():
            if each.fault.ends_at is not None and each.fault.ends_at <= now and not each.is_over:
                each.is_over = True
                self.update_kinds()

    def update_kinds(self) -> None:
        """Set `kinds`, after a change of the faults."""
        self.kinds = frozenset(each.pattern.kind for each in self.armed.values() if not each.is_over)

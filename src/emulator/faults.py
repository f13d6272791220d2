"""The interface through which a service applies faults made on purpose. `control/faults` decides which fault acts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol
from weakref import WeakSet

from emulator.callers import Caller
from emulator.errors import Facts, ServiceError, refusal

REQUEST: Final = "request"
"""The kind of a request of the service API."""
MESSAGE: Final = "message"
"""The kind of a message of a game."""
CONNECT: Final = "connect"
"""The kind of a handshake, of a game or a page."""
BROADCAST: Final = "broadcast"
"""The kind of a broadcast, to games and pages alike."""

STATUS: Final = "status"
DELAY: Final = "delay"
DROP: Final = "drop"
RESET: Final = "reset"
TRUNCATE: Final = "truncate"
STALL: Final = "stall"
CLOSE: Final = "close"
LOSE: Final = "lose"
DOUBLE: Final = "double"
REORDER: Final = "reorder"

REASON: Final = "Fault"
"""The reason of every response that a fault makes."""


class Subject(NamedTuple):
    """A request, message, handshake or broadcast on which a fault can act."""

    kind: str
    name: str
    """The method of a request, the action of a message, or the name of an event; empty for a handshake."""
    target: str = ""
    """The declared path of a request, or the target of a message."""
    caller: Caller | None = None
    client_id: str = ""
    channel: str | None = None


class Waiting(Protocol):
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


@dataclass(eq=False, slots=True)
class Held:
    """The requests and deliveries that one fault holds back, by weak references."""

    is_void: bool = False
    """Whether a reset or a stop ended the fault. Delayed responses and broadcasts are then discarded."""
    _is_released: bool = False
    _things: WeakSet[Waiting] = field(default_factory=WeakSet)

    def add(self, thing: Waiting) -> None:
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


@dataclass(frozen=True, eq=False, slots=True)
class Hit:
    """A fault that acts on one request, message or broadcast."""

    id: str
    effect: str
    held: Held
    status: int = 0
    retry_after: int | None = None
    delay: int = 0
    """In ms of real time."""
    size: int = 0
    """Bytes of the body after which the connection closes."""
    code: int = 0
    """The close code of a WebSocket."""

    @property
    def header(self) -> str:
        """The header `X-Emulator-Fault`."""
        return f"{self.id}; effect={self.effect}"

    def pause(self) -> Pause:
        """Return a wait that ends when the fault is removed, and at a reset or stop."""
        pause = Pause()
        self.held.add(pause)
        return pause

    async def delayed(self) -> bool:
        """Wait for the delay. Return whether to go on; not after a reset or a stop."""
        await self.pause().wait(self.delay / 1_000)
        return not self.held.is_void

    def error(self) -> FaultError:
        """Return the error that makes the fault's response, or that suppresses the response."""
        if self.effect == STATUS:
            return FaultError(self, f"answered {self.status}", self.status, self.retry_after)
        if self.effect == DELAY:
            return FaultError(self, "delayed this until the service was reset or stopped", 503)
        return NoResponse(self, _DEEDS[self.effect])


_DEEDS: Final = {
    DROP: "gave no response",
    RESET: "reset the connection",
    STALL: "keeps the connection open and silent",
    CLOSE: "closed the connection",
}


@refusal(ServiceError, REASON, "docs: Faults", "A fault that you added caused this",
         "Remove it: `extcli fault rm {fault}`.")  # fmt: skip
def _acted(*, fault: str, deed: str) -> Facts:
    detail = f"fault {fault} {deed}; remove it with `extcli fault rm {fault}`"
    return Facts(detail, f"fault {fault}: it {deed}", "no fault that matches")


class FaultError(ServiceError):
    """A response made by a fault."""

    def __init__(self, hit: Hit, deed: str, status: int, retry_after: int | None = None) -> None:
        made = _acted(fault=hit.id, deed=deed)
        super().__init__(made.reason, made.detail)
        self.refused = made.refused
        self.hit = hit
        self.status = status
        self.title = HTTPStatus(status).phrase if status in _PHRASES else REASON
        self.retry_after = retry_after


_PHRASES: Final = frozenset(HTTPStatus)


class NoResponse(FaultError):
    """Raised when a fault leaves a request, message or handshake without a response. Its status is 0."""

    def __init__(self, hit: Hit, deed: str) -> None:
        super().__init__(hit, deed, 0)


class Faults(Protocol):
    """The faults of one service."""

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of subjects on which a fault may act now; empty in production."""

    def needs_caller(self, subject: Subject) -> bool:
        """Whether a fault that could match has conditions on the caller."""

    def choose(self, subject: Subject, without: str = "") -> Hit | None:
        """Return the oldest fault that matches and acts now, and count the hit.

        Faults with the effect `without` are skipped. This is one synchronous step, so that no two requests share the
        last hit.
        """

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever `kinds` may have changed."""

    def release_all(self) -> None:
        """Release everything that faults hold back, because the service stops or the namespace is dropped."""


def fault_id(header: str) -> str:
    """Return the id of the first fault in a header `X-Emulator-Fault`; empty without one."""
    return header.partition(";")[0]

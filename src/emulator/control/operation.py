"""A running service: readiness, metrics, housekeeping and the clock: `/_emulator/…`."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain, starmap
from operator import attrgetter

from msgspec import Struct

from emulator.auth.signing_key import SigningKey
from emulator.core.clock import END_OF_TIME, SECOND, Clock, ClockState, clamp_instant, monotonic, system_now
from emulator.core.errors import Conflict, EngineError, Facts, Forbidden, NotFound, Unavailable, refusal, storage_failed
from emulator.core.keys import Expired, Key
from emulator.core.observability.audit import audit
from emulator.core.observability.metrics import Metrics
from emulator.core.settings import Settings
from emulator.core.wire.json_codec import Milliseconds
from emulator.core.wire.refusals import invalid_member
from emulator.http.endpoint import Audience, Call, control_endpoint, endpoint, endpoints_in
from emulator.storage.engine import Engine
from emulator.storage.kinds import is_own
from emulator.storage.records import Record


@refusal(Forbidden, "Cannot fork", "docs: Namespaces", "This storage cannot copy a namespace",
         "Start `extcli serve --data sqlite://`.")  # fmt: skip
def no_fork(*, engine: str) -> Facts:
    detail = f"namespaces on {engine} cannot be forked: a copy needs SQLite: serve --data sqlite://"
    return Facts(detail, f"data on {engine}", "data on SQLite")


@refusal(Forbidden, "Cannot undo", "docs: Control", "This service cannot keep the data for an undo",
         "Reset without undo, or start `extcli serve --data sqlite://`.")  # fmt: skip
def no_undo() -> Facts:
    return Facts("undo: this storage cannot copy data; reset without undo", "data on Redis", "data on SQLite")


@refusal(NotFound, "Nothing to undo", "docs: Control", "No reset can be undone now",
         "Keep the data at the next reset: `extcli reset --keep 1m`.")  # fmt: skip
def nothing_to_undo() -> Facts:
    detail = "undo: no reset can be undone now; `extcli reset --keep 1m` keeps the data for a minute"
    return Facts(detail, "no reset that kept its data", "a recent reset that kept its data")


@refusal(Conflict, "Nothing to undo", "docs: Control", "Only the latest reset can be undone",
         "Undo the latest reset: `extcli reset --undo`.")  # fmt: skip
def earlier_reset() -> Facts:
    detail = "undo: this token is of an earlier reset; only the latest reset can be undone"
    return Facts(detail, "the token of an earlier reset", "the token of the latest reset")


@refusal(Unavailable, "Service Unavailable", "docs: Restarts", "The service is starting",
         "Wait until it is ready: `extcli wait`.")  # fmt: skip
def starting() -> Facts:
    return Facts("the service is starting; try again", "a service that is starting", "a service that is ready")


SYSTEM_TIME = "system"
"""As the time to set: the system's."""


class ClockMove(Struct):
    """A move of the clock: first `set`, then `advance`. `freeze` stops or restarts the clock at the result."""

    set: int | str | None = None
    """The new time: Unix ms, a time such as `2030-01-31T18:00:00Z`, or `system` for the system's time."""
    advance: Milliseconds | None = None
    """How far to move the clock forward, in ms; 0 or more."""
    freeze: bool | None = None


class ClockRecord(Struct):
    """The service's time in Unix ms, and its offset from the system time in ms."""

    now: int
    offset: int
    frozen: bool


class ExpiredItem(Struct):
    """An item that has expired, or that will expire."""

    kind: str
    id: str
    at: int
    """Unix ms. For a buffer, when its next entry expires."""
    client_id: str
    """Empty for a store that all extensions share."""
    channel_id: str


class MovedClock(ClockRecord):
    """The clock after a move, and the records that have expired since the previous move, oldest first."""

    expired: list[ExpiredItem]


def target_time(move: ClockMove, now: int) -> int | None:
    """Return the instant to set; `None` for the present or the system's time, which `now` is.

    Raises `BadRequest` for a negative `advance`, or outside the years 1970 to 9999.
    """
    if move.advance is not None and move.advance < 0:
        raise invalid_member("advance", move.advance, "0 or more ms; use set to move the clock back")
    chosen = None if move.set in (None, SYSTEM_TIME) else parse_time(move.set)
    target = (now if chosen is None else chosen) + (move.advance or 0)
    if target != clamp_instant(target):
        needed = f"within 0 to {END_OF_TIME - 1} ms"
        raise invalid_member("set, advance", target, needed, f"the clock would be at {target} ms, not {needed}")
    return chosen


def expired_item(expired: Expired, name: str) -> ExpiredItem:
    """Return an expiry for the response. If the record has no name, `id` is its user, channel or extension."""
    key = expired.key
    id = name or key.user or key.channel or key.owner
    return ExpiredItem(key.kind, id, expired.at, key.owner, key.channel or "")


def parse_time(given: int | str) -> int:
    """Return an instant in Unix ms: a number as it is, or a date and time in ISO 8601, in UTC without an offset.

    Raises `BadRequest`.
    """
    if isinstance(given, int):
        return given
    if re.fullmatch("-?[0-9]{1,19}", given):
        return int(given)
    try:
        instant = datetime.fromisoformat(given)
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=UTC)
        return round(instant.timestamp() * 1_000)
    except (ValueError, OverflowError):
        raise invalid_member("set", given, "Unix ms, a time such as 2030-01-31T18:00:00Z, or system") from None


RESET = "reset"
"""The kind of the notice that another process may have deleted all data."""
_log = logging.getLogger("emulator")
_MAX_CLOCK_DIFFERENCE = 2 * SECOND


class Liveness(Struct):
    """The response of `live`."""

    status: str


class Readiness(Struct):
    """The response of `ready`."""

    status: str
    environment: str
    version: str
    data: str


@dataclass(eq=False, repr=False)
class Control:
    """Readiness, reset and clock of one running service."""

    _engine: Engine
    _key: SigningKey
    _clock: Clock
    _settings: Settings
    _version: str
    _recorder: Metrics

    def __post_init__(self) -> None:
        self.on_change: list[Callable[[], None]] = []
        """Called when data was deleted, replaced or loaded, to drop what was kept of it outside storage."""
        self.on_wipe: list[Callable[[], None]] = []
        """Called when all data was deleted or replaced, but not when data was added."""
        self.on_reset: list[Callable[[], None]] = []
        """Called at a reset only, to forget what was observed and counted: the journal, for example."""
        self.on_load: list[Callable[[], None]] = []
        """Called after data was loaded and the clock set, after all other callbacks."""
        self.on_expiry: list[Callable[[Sequence[Expired]], None]] = []
        """Called with expired records when they are removed."""
        self.on_move: list[Callable[[], Awaitable[None]]] = []
        """Awaited after every move of the clock, before the response."""
        self._change_lock = asyncio.Lock()
        self.is_starting = False
        """Whether the service is still loading the data that it starts with."""

    async def check(self) -> None:
        """Raise `EngineError` if storage does not work."""
        await self._engine.check()
        await self._key.sync()

    async def compare_clocks(self, now: Callable[[], int] = system_now) -> None:
        """Log if this machine's time differs from the data server's, which other nodes may also use."""
        before = now()
        found = await self._engine.time()
        if found is None:
            return
        ahead = max(before - found, 0) or min(now() - found, 0)
        if abs(ahead) > _MAX_CLOCK_DIFFERENCE:
            message = (
                "the clock of this machine is %.1f s %s the clock of %s: PINs, tokens and polls may end early or late; "
                "synchronize the clocks of all nodes"
            )
            _log.warning(message, abs(ahead) / SECOND, "ahead of" if ahead > 0 else "behind", self._engine.location)

    async def readiness(self) -> Readiness:
        """Report that the service can handle requests; raises `Unavailable` if storage fails, or at the start."""
        if self.is_starting:
            raise starting()
        try:
            await self.check()
        except EngineError as error:
            self._recorder.note_storage(ok=False)
            raise storage_failed() from error
        self._recorder.note_storage(ok=True)
        return Readiness("ready", self._settings.environment.name, self._version, self._engine.name)

    async def reset(self, empty: Callable[[], Awaitable[None]] | None = None) -> ClockState:
        """Delete all data and reset the clock; send the notice `RESET` to all processes on the same data.

        `empty` is the engine's method that deletes them, by default for good. Returns the earlier state of the clock.
        """
        return await self._change_data(empty or self._engine.reset, ClockState(), self.on_wipe, self.on_reset)

    async def load(
        self, pages: AsyncIterator[Sequence[Record]], *, replace: bool, clock: ClockState | None = None
    ) -> None:
        """Write records as `Engine.load` does, then set the clock, unless it is so already; send the notice `RESET` as
        `reset` does.

        Without a signing key among the records, the service keeps its own. Raises `ValueError` for impossible records,
        and `EngineError`. Then nothing has changed.
        """
        is_moved = clock is not None and (clock.frozen_at is not None or clock != self._clock.state)
        load = partial(self._engine.load, pages, replace=replace)
        await self._change_data(load, clock if is_moved else None, self.on_wipe if replace else (), self.on_load)

    async def size(self) -> int:
        """Return the number of records in the namespace, without the signing key. Raises `EngineError`."""
        return max(0, await self._engine.size() - 1)

    async def copy(self, source: Control) -> None:
        """Replace all data and the clock with another namespace's. Raises `Forbidden` if storage cannot copy."""
        if not self._engine.can_copy:
            raise no_fork(engine=self._engine.name)
        records = source._engine.dump(now=source._clock.now())
        await self.replace(partial(self._engine.load, records, replace=True), source._clock.state)

    async def replace(self, replace: Callable[[], Awaitable[None]], clock: ClockState) -> None:
        """Replace all data by this method of the engine, and set the clock. Raises `EngineError`."""
        await self._change_data(replace, clock, self.on_wipe, self.on_load)

    async def _change_data(
        self,
        change: Callable[[], Awaitable[None]],
        clock: ClockState | None,
        *callbacks: Iterable[Callable[[], None]],
    ) -> ClockState:
        """Change the data, and the clock if it is given, call `on_change` and these callbacks, and send `RESET`.

        Returns the earlier state of the clock.
        """
        async with self._change_lock:
            state = self._clock.state
            await change()
            if clock is not None:
                self._clock.restore(clock)
            with suppress(EngineError):  # the next sweep stores it
                await self._key.restore()
            for callback in chain(self.on_change, *callbacks):
                callback()
            for moved in self.on_move if clock is not None else ():
                await moved()
        with suppress(EngineError):
            await self._engine.relay.publish(Key(RESET, "", ""), b"")
        return state

    async def sweep(self) -> None:
        """Remove expired items. No response depends on it, except that a move of the clock does not list them."""
        async with self._change_lock:
            await self._remove_expired(self._clock.now())
        await self._key.sync()
        await self._engine.tidy()  # without the lock, so that a move of the clock does not wait for it

    def read_clock(self) -> ClockRecord:
        return ClockRecord(self._clock.now(), self._clock.offset, self._clock.frozen)

    @control_endpoint("POST", "/_emulator/clock", body=ClockMove, answer=MovedClock)
    async def move_clock(self, call: Call) -> MovedClock:
        """Set, advance or freeze the clock. Expired items are removed before the response, which lists them."""
        # A refused move changes nothing. What expired before the move is removed first, so setting the clock back never
        # revives it.
        move = call.body(ClockMove)
        async with self._change_lock:
            now = self._clock.now()
            if move.set == SYSTEM_TIME:
                now -= self._clock.offset
            target = target_time(move, now)
            with self._clock.hold_still() as before:
                removed = await self._remove_expired(before)
            if move.freeze is not None:  # first, so that a frozen clock stops at exactly the instant set
                self._clock.freeze(move.freeze)
            if move.set is not None:
                self._clock.set(target)
            self._clock.advance(move.advance or 0)
            record = self.read_clock()
            try:
                removed |= await self._remove_expired(record.now)
            finally:  # the clock has moved
                for moved in self.on_move:
                    await moved()
            expired = sorted(starmap(Expired, removed.items()), key=attrgetter("at", "key"))
        audit("clock moved", now=str(record.now), expired_items=len(expired))
        items = [expired_item(each, each.key.name) for each in expired]
        return MovedClock(record.now, record.offset, record.frozen, items)

    async def _remove_expired(self, now: int) -> dict[Key, int]:
        """Remove the records that have expired at `now`; return those to report, and when each last expired."""
        removed: dict[Key, int] = {}
        async for expired in self._engine.purge(now=now):
            for note in self.on_expiry:
                note(expired)
            removed |= {key: at for key, at in expired if not is_own(key)}
        return removed


@endpoint("GET", "/_emulator/live", audience=Audience.HEALTH, answer=Liveness)
async def read_liveness(control: Control, call: Call) -> Liveness:
    """Report that the process is running."""
    return Liveness("live")


@endpoint("GET", "/_emulator/ready", audience=Audience.HEALTH, answer=Readiness)
async def read_readiness(control: Control, call: Call) -> Readiness:
    """Report that the service can handle requests; 503 while it cannot."""
    return await control.readiness()


@endpoint("GET", "/_emulator/metrics", audience=Audience.MONITORING, content_type=b"text/plain; version=0.0.4")
async def read_metrics(metrics: Metrics, call: Call) -> bytes:
    """Read the counters in the Prometheus text format."""
    began = monotonic()
    await asyncio.sleep(0)  # one iteration of the event loop: every ready callback runs first
    lag = monotonic() - began
    from emulator.control.exposition import prometheus_text

    return prometheus_text(metrics, lag=lag)


@control_endpoint("GET", "/_emulator/clock", answer=ClockRecord)
async def read_clock(control: Control, call: Call) -> ClockRecord:
    """Read the service's clock, in Unix ms."""
    return control.read_clock()


health_endpoints = (read_liveness, read_readiness)
metrics_endpoints = (read_metrics,)
endpoints = (read_clock, *endpoints_in(Control))

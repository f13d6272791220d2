"""The interface of an engine: the shapes of data that it carries, and a relay of messages.

Documents, ballots and logs are here; pools and rosters, which go together, in `engines/pools.py`.

An engine knows no feature, no HTTP and no time. Every operation is one atomic step, also when another process works
on the same data, and a write returns only when it would survive the death of this process (as far as the engine's
medium allows). Time is an argument: `now` and all `…_at` are integer Unix milliseconds, and a thing is alive while
`now < expires_at`. Housekeeping (`Engine.purge`, `engines/engine.py`) never decides an answer.

Whatever the medium does wrong reaches the caller as `EngineError`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

NEVER = 1 << 62
"""An `expires_at` that does not come."""


class Key(NamedTuple):
    """Where a thing is kept. All parts are opaque text to an engine; two keys are the same when all parts are."""

    kind: str
    """What kind of thing it is."""
    owner: str
    """The client id it belongs to; empty when it belongs to a channel for all extensions."""
    name: str
    channel: str | None = ""
    """The channel; empty for no channel. `None`, where an operation allows it, means every channel together."""
    user: str = ""
    """The one user it is about; empty when it is about no single user."""


class Expired(NamedTuple):
    """One expiry that fell due."""

    key: Key
    at: int
    """The instant it fell due; for a log, that of its newest entry among those removed."""


Change = Callable[[Mapping[Key, bytes]], Mapping[Key, bytes]]
"""Given the live documents, the documents to write. May raise: then nothing is written and the caller gets the
exception. May be called again if another process stepped between, so it must be pure."""


class Documents(Protocol):
    """One text per key, each with its own end."""

    async def read(self, keys: Sequence[Key], *, now: int) -> dict[Key, bytes]:
        """The live documents among `keys`, seen at one instant; absent ones are left out."""
        ...

    async def update(self, keys: Sequence[Key], change: Change, *, now: int, expires_at: int) -> dict[Key, bytes]:
        """Read `keys`, apply `change`, write what it returns to live until `expires_at`: one atomic step for all keys.

        `change` may return any subset of `keys`; the others are left as they are. Returns what was written.
        """
        ...

    async def users(self, key: Key, *, after: str, limit: int, now: int) -> list[str]:
        """The users of the live documents that share `key`'s other parts, in code point order, at most `limit` of
        those that come after `after`."""
        ...

    async def drop(self, keys: Sequence[Key], *, now: int) -> int:
        """Forget these documents and return how many were alive. Absent ones are fine."""
        ...


class Terms(NamedTuple):
    """When a ballot takes casts, and how much of it one voter may fill."""

    opens_at: int = 0
    """Casts are taken from this instant on."""
    closes_at: int = NEVER
    """Casts are taken before this instant."""
    disabled: bool = False
    known_voters_only: bool = False
    """Only casts that are marked `known` are taken."""
    per_voter: int = 1
    """With 1, a later cast takes the channel of the earlier one. With more, casts add up to at most this many."""
    per_choice: int = 1
    """At most this many of one voter's casts may be for the same choice (only with `per_voter` over 1)."""
    choices: int = 1
    """At most this many different choices by one voter (only with `per_voter` over 1)."""


class CastRequest(NamedTuple):
    """One cast, as a voter hands it in."""

    voter: str
    choice: str
    note: bytes = b""
    """Kept with the entry and returned by `entries`; opaque to the engine."""
    known: bool = False
    times: int = 1
    """How many casts at once; looked at only where the terms let casts add up."""


class Tally(NamedTuple):
    """What a ballot holds."""

    counts: tuple[tuple[str, int], ...]
    """Each choice and how many casts it holds, most first, then the choice that has been held longest without a
    gap. Choices that nobody holds are absent."""
    choice: str | None = None
    """The asked-for voter's latest choice."""


EMPTY_TALLY = Tally(())

CLOSED = "closed"
"""Refusal: outside `opens_at`..`closes_at`, or disabled."""
OVER_ALLOWANCE = "over allowance"
"""Refusal: `per_voter`, `per_choice` or `choices` would be passed."""
UNKNOWN_VOTER = "unknown voter"
"""Refusal: the terms want known voters, and the mark is not `known`."""


class Cast(NamedTuple):
    """What became of a mark."""

    refused: str | None
    """`None` when it was taken; else `CLOSED`, `OVER_ALLOWANCE` or `UNKNOWN_VOTER`, and nothing was changed."""
    previous: str | None
    """The voter's latest choice before this one."""
    tally: Tally
    """The ballot with this mark in it (`EMPTY_TALLY` unless asked for)."""


class Entry(NamedTuple):
    """One voter's casts for one choice."""

    voter: str
    choice: str
    times: int
    cast_at: int
    """When the latest of them was cast."""
    note: bytes
    """That of the latest."""


class Ballots(Protocol):
    """Voters and what they chose. A ballot expires as a whole; it may carry a definition, which expires with it.

    Where `key.channel` may be `None`, the operation covers the ballots of all channels with that kind, owner and name.
    """

    async def define(self, key: Key, definition: bytes, terms: Terms, *, now: int, expires_at: int) -> None:
        """Give the ballot a definition (opaque text) and terms, replacing earlier ones; the casts stay.

        A ballot that holds casts keeps its own end; one without is given `expires_at`.
        """
        ...

    async def definition(self, key: Key, *, now: int) -> bytes | None:
        """The ballot's definition, if it is alive and has one."""
        ...

    async def cast(self, key: Key, mark: CastRequest, *, now: int, expires_at: int, tally: bool = False) -> Cast:
        """Record a mark in one atomic step, if the ballot's terms allow, and move the ballot's end to `expires_at`.

        A ballot past its end starts afresh, without definition and with `Terms()`. With `tally`, the answer carries
        the ballot as it stands with this mark in it, and the voter's choice.
        """
        ...

    async def tally(self, key: Key, *, now: int, voter: str | None = None, top: int | None = None) -> Tally:
        """What the ballot holds, at most `top` choices, and `voter`'s latest choice. `channel` may be `None`: counts
        of a choice add up over all channels."""
        ...

    def entries(
        self, key: Key, *, now: int, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[Entry]]:
        """The entries with `cast_at >= since`, oldest first (ties in the order of casting), in pages of bounded size.

        Every voter who holds casts from beginning to end of the reading appears, and none appears twice for one
        choice, also while they go on voting. Control returns to the event loop between pages. `channel` may be `None`.
        """
        ...

    async def drop(self, key: Key, *, now: int) -> None:
        """Forget the ballot, its definition included; constant time. Absent is fine; `channel` may be `None`."""
        ...


class Item(NamedTuple):
    """One entry of a log."""

    at: int
    value: bytes


class Span(NamedTuple):
    """A reading of a log."""

    latest: int
    """The `at` of the newest live entry in the log, whatever `since` was; 0 when there is none."""
    pages: AsyncIterator[Sequence[Item]]
    """Newest first, ties in reverse order of arrival; what arrives after the reading began is not in it."""


class Logs(Protocol):
    """Entries in order of arrival, each with its own end. A log exists while it has entries."""

    async def append(self, key: Key, value: bytes, *, now: int, expires_at: int) -> None:
        """Add an entry stamped `now`."""
        ...

    async def read(self, key: Key, *, now: int, since: int = 0) -> Span:
        """The live entries with `at >= since`, in pages of bounded size. `channel` may be `None`: all channels' logs
        of that kind, owner and name, merged by the same order. Control returns to the event loop between pages."""
        ...


class Relay(Protocol):
    """Takes messages to every process that works on the same data and namespace, this one included."""

    @property
    def is_alone(self) -> bool:
        """Whether no other process can be listening."""
        ...

    def listen(self, deliver: Callable[[Key, bytes], None]) -> None:
        """Have `deliver` called with every message published from now on, while the engine is open.

        It must not raise and must not wait. Messages of one publisher come in the order in which it published them.
        """
        ...

    async def publish(self, topic: Key, message: bytes) -> None:
        """Hand a message to all listeners. Those of this process have had it when this returns, others soon after.

        A message is not kept: whoever listens later does not get it.
        """
        ...

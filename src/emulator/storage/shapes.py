"""The data types that every engine stores, a catalog of the stored records, and a relay of messages between processes.

Documents, ballots and logs are here; pools and rosters, which belong together, are in `storage/pools.py`, and the
engine as a whole is in `storage/engine.py`.

An engine knows no feature, no HTTP and no clock. Times are arguments: `now` and all `…_at` are integer Unix
milliseconds, and a record is alive while `now < expires_at`. Results never depend on housekeeping (`Engine.purge`).
A write never shortens the life of a live record, because its `now` may come from a clock that was wrongly set back.

Every operation is one atomic step, even when several processes use the same data. A write returns once it would
survive the death of this process, as far as the medium allows. A failure of the medium raises `EngineError`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from msgspec import UNSET, UnsetType

from emulator.core.keys import NEVER, Expired, Key

Texts = Mapping[Key, bytes]
"""Documents by key."""
Edit = Callable[[Texts], Texts]
"""Takes the live documents and returns those to write.

If it raises, nothing is written and the exception reaches the caller. It must be pure: it runs again if another process
wrote in between.
"""
Value = TypeVar("Value")
_PAGE = 250
"""Documents that `document_pages` reads at once."""


def writes_of_change(
    change: Callable[[Mapping[Key, Value]], Mapping[Key, Value]], live: Mapping[Key, Value], keys: Iterable[Key]
) -> dict[Key, Value]:
    """Return the writes of a change to these keys. Raises `ValueError` for any other key."""
    written = dict(change(live))
    if unexpected := written.keys() - set(keys):
        raise ValueError(f"a change may write only the keys that it was given, not {unexpected}")
    return written


class KeptDocuments(NamedTuple):
    """Documents that `Documents.keep` has started to write."""

    found: Texts
    """Those that are alive and not replaced. As with `peek`, their writes may not be on disk yet."""
    saved: Awaitable[object] | None = None
    """To be awaited before the call is acknowledged; `None` if there is nothing to wait for."""


class Documents(Protocol):
    """One text per key, each with its own expiry."""

    async def read(self, keys: Sequence[Key], *, now: int) -> dict[Key, bytes]:
        """Return the live documents among `keys`, all read at one instant."""

    async def peek(self, key: Key, *, now: int) -> bytes | None:
        """Return one live document or `None`, without waiting for a write that is not on disk yet."""

    async def update(
        self, keys: Sequence[Key], change: Edit, *, now: int, expires_at: int, may_end_earlier: bool = False
    ) -> dict[Key, bytes]:
        """Read `keys`, apply `change`, write its result with this expiry and return it, in one atomic step.

        A live document with a later expiry keeps that expiry, unless it `may_end_earlier`. `change` may return any
        subset of `keys`; the others stay as they are. Raises `ValueError` for any other key.
        """

    async def keep(self, documents: Texts, *, replace: bool, now: int, expires_at: int) -> KeptDocuments:
        """Start to write documents with this expiry, or a later one that they have, in one atomic step.

        Without `replace`, return the live documents, and write only their expiry. Documents whose value and expiry stay
        are not written, so repeating is cheap.
        """

    async def users(self, key: Key, *, after: str, limit: int, now: int) -> list[str]:
        """Return up to `limit` users who have a live document, in order, after the user `after`.

        The other parts of `key` must match.
        """

    async def drop(self, keys: Sequence[Key], *, now: int) -> int:
        """Delete these documents and return how many were alive. Absent keys are ignored."""

    async def drop_equal(self, key: Key, value: bytes, *, now: int) -> None:
        """Delete this document if it is alive and has this value, in one step; else do nothing."""


async def document_pages(documents: Documents, group: Key, *, now: int) -> AsyncIterator[Texts]:
    """Iterate over the live documents of all users with the other parts of this key, in the order of users."""
    after = ""
    while users := await documents.users(group, after=after, limit=_PAGE, now=now):
        after = users[-1]
        yield await documents.read([group._replace(user=user) for user in users], now=now)


class Terms(NamedTuple):
    """When a ballot is open, and how many casts it allows one voter."""

    opens_at: int = 0
    """The first instant at which casts are accepted."""
    closes_at: int = NEVER
    """The first instant at which they are refused again."""
    disabled: bool = False
    known_voters_only: bool = False
    """Accept only casts that are marked `known`."""
    per_voter: int = 1
    """With 1, a later cast replaces the earlier one. With more, casts add up to at most this many."""
    per_choice: int = 1
    """The most casts of one voter for one choice, if `per_voter` is over 1."""
    choices: int = 1
    """The most distinct choices of one voter, if `per_voter` is over 1."""


class CastRequest(NamedTuple):
    """One voter's request to cast."""

    voter: str
    choice: str
    note: bytes = b""
    """Opaque text that `entries` returns with the cast."""
    known: bool = False
    times: int = 1
    """How many casts at once; ignored if `per_voter` is 1."""


class Tally(NamedTuple):
    """The counts of a ballot."""

    counts: tuple[tuple[str, int], ...]
    """Each choice and its casts, largest count first; ties go to the choice that has had casts for longest without a
    gap. Choices without casts are absent."""
    choice: str | None = None
    """The latest choice of the voter that the tally was requested for."""


EMPTY_TALLY = Tally(())

CLOSED = "closed"
"""Refusal: before `opens_at`, from `closes_at` on, or disabled."""
OVER_ALLOWANCE = "over allowance"
"""Refusal: the cast would exceed `per_voter`, `per_choice` or `choices`."""
UNKNOWN_VOTER = "unknown voter"
"""Refusal: only known voters may cast."""


class Cast(NamedTuple):
    """The outcome of a cast request."""

    refused: str | None
    """`None` if accepted; else `CLOSED`, `OVER_ALLOWANCE` or `UNKNOWN_VOTER`, and nothing changed."""
    previous: str | None
    """The voter's latest choice before this one."""
    tally: Tally
    """The ballot after this cast; `EMPTY_TALLY` unless requested."""


class BallotEntry(NamedTuple):
    """One voter's casts for one choice."""

    voter: str
    choice: str
    times: int
    cast_at: int
    """The time of the latest cast."""
    note: bytes
    """The note of the latest cast."""


class ListedBallot(NamedTuple):
    """One ballot in a listing."""

    key: Key
    casts: int
    """The counts of all voters."""
    expires_at: int
    definition: bytes | None


OldDefinition = bytes | UnsetType | None
"""The definition that a ballot must have: `None` for none, and `UNSET` for any or none."""


class Ballots(Protocol):
    """Voters and their choices. A ballot and its definition expire together.

    With `key.channel` `None`, an operation covers the ballots of all channels with that kind, owner and name.
    """

    async def define(
        self,
        key: Key,
        definition: bytes,
        terms: Terms,
        *,
        now: int,
        expires_at: int,
        only_if: OldDefinition = UNSET,
        clear: bool = False,
    ) -> bool:
        """Set or replace the ballot's definition (opaque text) and terms in one step; casts stay unless `clear` is set.

        A ballot that has casts keeps its expiry; any other gets `expires_at`, if that is later. With `only_if`, nothing
        is written unless that is the present definition. Return whether it was written.
        """

    async def definition(self, key: Key, *, now: int) -> bytes | None:
        """Return the definition of a live ballot, or `None`."""

    async def cast(self, key: Key, request: CastRequest, *, now: int, expires_at: int, tally: bool = False) -> Cast:
        """Record a cast if the ballot's terms allow it, and keep the ballot alive until at least `expires_at`.

        An expired ballot starts again without definition and with `Terms()`. With `tally`, the result holds the counts
        after this cast and the voter's choice.
        """

    async def tally(self, key: Key, *, now: int, voter: str | None = None, top: int | None = None) -> Tally:
        """Return the counts of the `top` choices, in all channels if `channel` is `None`, and `voter`'s choice."""

    def entries(
        self, key: Key, *, now: int, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[BallotEntry]]:
        """Iterate over pages of the entries with `cast_at >= since`, oldest first; ties keep the order of casting.

        Voting may go on during the iteration: every voter who has casts throughout appears, and none appears twice for
        one choice. Pages are bounded, and the event loop runs between them. `channel` may be `None`.
        """

    async def drop(self, key: Key, *, now: int) -> list[Key]:
        """Delete the ballot and its definition, in constant time, and return its key. An absent ballot is not an error.

        With `channel` `None`, return the keys of all ballots that were deleted.
        """

    async def listing(
        self, group: Key, *, now: int, limit: int, after: Key | None = None, matching: str = ""
    ) -> list[ListedBallot]:
        """Return up to `limit` live ballots with the kind, owner and channel of `group`, by channel, then name.

        `channel` may be `None`. `after` is the key of the last ballot of the previous page. `matching` limits the
        result to those whose name, channel or user contains that text. The ballots are counted one by one or a few at a
        time, and the event loop runs in between.
        """


class LogEntry(NamedTuple):
    """One entry of a log."""

    at: int
    value: bytes


class LogPages(NamedTuple):
    """The result of reading a log."""

    latest: int
    """The `at` of the newest live entry, regardless of `since`; 0 if there is none."""
    pages: AsyncIterator[Sequence[LogEntry]]
    """Newest first; ties in reverse order of arrival. Entries that arrive after the read started are left out."""


class ListedLog(NamedTuple):
    """One log in a listing."""

    key: Key
    entries: int
    """How many are alive."""
    latest: int
    """The `at` of the newest."""


class Logs(Protocol):
    """Entries in order of arrival, each with its own expiry. A log exists while it has entries."""

    async def append(self, key: Key, value: bytes, *, now: int, expires_at: int) -> None:
        """Append an entry with the time `now`."""

    async def read(self, key: Key, *, now: int, since: int = 0) -> LogPages:
        """Return the live entries with `at >= since`.

        Pages are bounded, and the event loop runs between them. With `channel` `None`, the logs of all channels with
        that kind, owner and name are merged in the same order.
        """

    async def listing(
        self, group: Key, *, now: int, limit: int, after: Key | None = None, matching: str = ""
    ) -> list[ListedLog]:
        """Return up to `limit` logs that have live entries, with the arguments and the order of `Ballots.listing`."""


Listener = Callable[[Key, bytes], None]
"""Takes the topic and the message. It must neither raise nor block."""


class Relay:
    """Carries messages to every process that uses one namespace of the data, including this process."""

    is_local: bool
    """Whether messages never leave this process."""
    _listeners: tuple[Listener, ...] = ()

    def listen(self, deliver: Listener) -> None:
        """Call `deliver` for every message published from now on, while the engine is open.

        Messages of one publisher arrive in the order of publishing.
        """
        self._listeners += (deliver,)

    def ignore(self, deliver: Listener) -> None:
        """Stop calling this listener."""
        self._listeners = tuple(each for each in self._listeners if each != deliver)

    async def publish(self, topic: Key, message: bytes) -> None:
        """Send a message to all listeners. Those in this process have it when this returns, others soon after.

        Messages are not stored: a listener that is added later does not receive them.
        """


class DocumentOrPool(NamedTuple):
    """A document or a pool."""

    key: Key
    expires_at: int
    size: int
    """The bytes of a document; 0 for a pool."""


class CatalogSearch(NamedTuple):
    """The documents and pools that a listing is about."""

    kinds: Sequence[str]
    owner: str | None = None
    """Only of this owner."""
    channel: str | None = None
    """Only in this channel."""
    matching: str = ""
    """Only those whose name, channel or user contains this text."""
    after: Key | None = None
    """Only after this key."""


class Catalog(Protocol):
    """Finds live documents, ballots, logs and pools over all owners and channels, without reading their content.

    For the control API and the dashboard only. Records that never expire are left out: they are the service's own
    records, for example of users, and there may be millions. The data may change between two steps of one operation.
    """

    async def count(self, kinds: Sequence[str], *, now: int, most: int) -> dict[str, int]:
        """Count the records of each kind, up to `most` of one kind."""

    async def owners(self, kind: str, *, now: int, limit: int, after: str = "") -> list[str]:
        """Return up to `limit` owners that have a ballot or a log of this kind, in order, after `after`."""

    async def things(self, search: CatalogSearch, *, now: int, limit: int) -> list[DocumentOrPool]:
        """Return up to `limit` documents and pools, in the order of their keys: kind, owner, name, channel, user."""

    async def upcoming(self, kinds: Sequence[str], *, now: int, limit: int) -> list[Expired]:
        """Return the next expiries of these kinds, soonest first, at most `limit`. A log counts by its next entry.

        Those after many thousand expiries of other kinds may be absent.
        """

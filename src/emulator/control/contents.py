"""Lists of the stored data, over all extensions and channels, and of the next expiries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.control.operation import ExpiredItem, expired_item
from emulator.core.changes import Changes
from emulator.core.clock import Clock
from emulator.core.hints import ReadNames
from emulator.core.keys import NEVER, Key
from emulator.core.observability.facts import ABSENT, NEW, UNHEARD, UNSENT
from emulator.core.wire import json_codec
from emulator.core.wire.cursors import FIRST, decode_cursor, encode_cursor
from emulator.core.wire.refusals import invalid_parameter
from emulator.features.kinds import Kind
from emulator.http.endpoint import CURSOR_PARAMETER, Call, Endpoint, Parameter, control_endpoint
from emulator.realtime.hub import Hub
from emulator.storage.engine import Engine
from emulator.storage.records import BallotRecord, DocumentRecord, ItemRecord, PoolRecord
from emulator.storage.shapes import CatalogSearch, DocumentOrPool

MAX_ROWS = 200
DEFAULT_ROWS = 100
MAX_COUNT = 10_000
"""The highest count. There may be more."""
_SHOWN_DIGEST_LENGTH = 16
"""Characters of a PIN's digest that are shown."""
_decode_cursor = msgspec.json.Decoder(tuple[str, str, str, str, str]).decode
_SORTS_LAST = "\U0010ffff"
"""Sorts after every channel and name."""


class Content(Struct, kw_only=True):
    """One stored record. Never a PIN and never a code."""

    id: str
    """The id. For a store, its name; for a code set, its index; for a PIN, the start of its digest."""
    client_id: str
    """Empty for a store that all extensions in the channel share."""
    channel_id: str
    """Empty for a record without a channel."""
    user: str | UnsetType = UNSET
    """For a viewer store, the opaque id of its user; for a purchase, of the buyer."""
    name: str | UnsetType = UNSET
    """For a code set, its name; for a purchase, the product."""
    status: str | UnsetType = UNSET
    """For a poll: `pending`, `active` or `expired`. For a PIN: `bound` to a channel or `unbound`."""
    disabled: bool | UnsetType = UNSET
    """Present for a poll that refuses votes, whatever its status."""
    count: int | UnsetType = UNSET
    """The number of votes, answers or entries; for a code set, of the codes that were handed out."""
    left: int | UnsetType = UNSET
    """The codes of a set that were not reached yet."""
    size: int | UnsetType = UNSET
    """The bytes of a store, of a channel's links, or of an extension's questions."""
    latest: int
    """Unix ms of the latest change; 0 if unknown."""
    expires_at: int | None
    """Unix ms; null if it does not expire."""


class ContentPage(Struct):
    """A page of stored records, sorted by client id, then by channel and id, or by id and channel, depending on the
    kind.
    """

    rows: list[Content]
    next: str
    """The cursor of the next page; `0` if there is none."""


class ComingExpiries(Struct):
    """The coming expiries, soonest first."""

    now: int
    """The service's time in Unix ms."""
    next: list[ExpiredItem]


class ContentFilter(NamedTuple):
    """The filters of a list; empty for all."""

    client_id: str = ""
    channel_id: str = ""
    search: str = ""
    """A text that the id, channel or user contains."""


def checked_limit(limit: int) -> int:
    """Return the limit; raise `BadRequest` unless it is 1 to 200."""
    if not 1 <= limit <= MAX_ROWS:
        raise invalid_parameter("limit", limit, f"within 1 to {MAX_ROWS}")
    return limit


T = TypeVar("T")


class _Query(NamedTuple):
    """The rows to read: of one kind, that a filter selects, at most so many, and only those after a key."""

    kind: Kind
    only: ContentFilter
    limit: int
    start: Key | None
    now: int


class _FoundRecord(NamedTuple):
    """What is known of a record."""

    key: Key
    expires_at: int
    members: dict[str, Any]
    """Members of its row."""
    source: Any = None
    """What `Kind.facts` takes."""


_FoundPage = tuple[list[_FoundRecord], str]
"""Records, and a cursor if the search stopped before the end."""

_MAX_OWNERS = 200
"""Extensions whose polls, rankings or buffers one call looks at."""


@dataclass(eq=False, repr=False)
class Contents:
    """The stored records of one service."""

    _engine: Engine
    _clock: Clock
    kinds: Sequence[Kind]
    _state_lifetime: int
    """How long a state store lives after its latest change, in ms."""

    def __post_init__(self) -> None:
        self.started_at = self._clock.now()
        """When this service started, in Unix ms by its clock."""
        self._kinds = {kind.name: kind for kind in self.kinds}
        listed = {name for kind in self.kinds for name in kind.stored_as}
        self._secret_kinds = {
            each.kind for kind in self.kinds for each in kind.records if each.has_secret_name and each.kind in listed
        }

    async def count_by_kind(self) -> dict[str, int]:
        """Return the number of records of each kind, up to 10,000 each."""
        stored = [name for kind in self.kinds for name in kind.stored_as]
        found = await self._engine.catalog.count(stored, now=self._clock.now(), most=MAX_COUNT)
        totals = {kind.name: sum(found[each] for each in kind.stored_as) for kind in self.kinds}
        return {name: min(MAX_COUNT, total) for name, total in totals.items()}

    async def page(self, name: str, only: ContentFilter, *, limit: int, cursor: str = FIRST) -> ContentPage:
        """Return up to 200 records of a kind. Raises `BadRequest`.

        A page may have fewer than `limit` rows although there are more, if very many extensions were looked through.
        """
        members = decode_cursor(cursor, _decode_cursor)
        kind, start, limit = self._kinds[name], Key(*members) if members else None, checked_limit(limit)
        now = self._clock.now()
        read = {
            BallotRecord: self._find_ballots,
            ItemRecord: self._find_logs,
            DocumentRecord: self._find_documents,
            PoolRecord: self._find_pools,
        }[kind.records[0].type]
        found, rest = await read(_Query(kind, only, limit + 1, start, now))
        if len(found) > limit:
            rest = _cursor_after(found[limit - 1].key)
        return ContentPage([self._make_row(kind, each, now) for each in found[:limit]], rest)

    async def names_in_use(self, group: Key) -> list[str]:
        """Return up to 200 names in use of the kind, extension and channel of a key."""
        (kind,) = (kind for kind in self.kinds if group.kind in kind.stored_as)
        page = await self.page(kind.name, ContentFilter(group.owner, group.channel or ""), limit=MAX_ROWS)
        return [row.id for row in page.rows if group.channel in (None, row.channel_id)]

    async def coming_expiries(self, limit: int) -> ComingExpiries:
        """Return the next records to expire, at most 200. Raises `BadRequest`."""
        limit, now = checked_limit(limit), self._clock.now()
        kinds = sorted({stored.kind for kind in self.kinds for stored in kind.records})
        found = await self._engine.catalog.upcoming(kinds, now=now, limit=limit)
        return ComingExpiries(now, [expired_item(each, self._shown_name(each.key)) for each in found])

    def _shown_name(self, key: Key) -> str:
        """Return the name of a record as readers see it."""
        return key.name[:_SHOWN_DIGEST_LENGTH] if key.kind in self._secret_kinds else key.name

    async def _find_ballots(self, wanted: _Query) -> _FoundPage:
        ballots, rest = await self._list_by_owner(self._engine.ballots.listing, wanted)
        found = []
        for each in ballots:
            members = {"count": each.casts} if each.casts else {"count": 0, "latest": 0}
            found.append(_FoundRecord(each.key, each.expires_at, members, each))
        return found, rest

    async def _find_logs(self, wanted: _Query) -> _FoundPage:
        logs, rest = await self._list_by_owner(self._engine.logs.listing, wanted)
        lifetime = self._lifetime_of(wanted.kind)
        return [_FoundRecord(key, latest + lifetime, {"count": entries}) for key, entries, latest in logs], rest

    async def _list_by_owner(self, listing: Callable[..., Awaitable[list[T]]], wanted: _Query) -> tuple[list[T], str]:
        """Return ballots or logs of all owners, or of one owner, and the cursor after the last owner that was read."""
        kind, (_, only, limit, start, now) = wanted.kind.stored_as[0], wanted
        first, found, more = start.owner if start else only.client_id, list[T](), list[str]()
        if not only.client_id:
            more = await self._engine.catalog.owners(kind, now=now, limit=_MAX_OWNERS, after=first)
        for owner in filter(None, (first, *more)):
            if len(found) < limit:
                group, rest = Key(kind, owner, "", only.channel_id or None), limit - len(found)
                seen = start if start and start.owner == owner else None
                found += await listing(group, now=now, limit=rest, after=seen, matching=only.search)
        is_end = len(more) < _MAX_OWNERS
        return found, FIRST if is_end else _cursor_after(Key(kind, more[-1], _SORTS_LAST, _SORTS_LAST))

    async def _find_documents(self, wanted: _Query) -> _FoundPage:
        things, values = await self._find_things(wanted), dict[Key, bytes]()
        if wanted.kind.facts:
            values = await self._engine.documents.read([thing.key for thing in things], now=wanted.now)
            things = [thing for thing in things if thing.key in values]
        found = []
        for key, expires_at, size in things:
            found.append(_FoundRecord(key, expires_at, {"user": key.user or UNSET, "size": size}, values.get(key)))
        return found, FIRST

    async def _find_pools(self, wanted: _Query) -> _FoundPage:
        things, now = await self._find_things(wanted), wanted.now
        keys = [thing.key for thing in things]
        stocks = await self._engine.pools.stocks(keys, now=now)
        counts = await self._engine.pools.counts(keys, now=now)
        found = []
        for key, expires_at, _ in things:
            if key in stocks and key in counts:
                members = {"count": counts[key].handed, "left": counts[key].left}
                found.append(_FoundRecord(key, expires_at, members, stocks[key].note))
        return found, FIRST

    async def _find_things(self, wanted: _Query) -> list[DocumentOrPool]:
        kind, only, limit, start, now = wanted
        search = CatalogSearch(kind.stored_as, only.client_id or None, only.channel_id or None, only.search, start)
        return await self._engine.catalog.things(search, now=now, limit=limit)

    def _make_row(self, kind: Kind, found: _FoundRecord, now: int) -> Content:
        """Return the row of a record. What identifies it is from its key, unless the facts have it."""
        key, expires_at, members, source = found
        lifetime = self._lifetime_of(kind)
        row: dict[str, Any] = {
            "id": self._shown_name(key) or key.kind,
            "client_id": key.owner,
            "channel_id": key.channel or "",
            "latest": 0 if NEVER in (expires_at, lifetime) else max(0, expires_at - lifetime),
            "expires_at": None if expires_at >= NEVER else expires_at,
        }
        row |= {**members, **(kind.facts(source, now) if kind.facts else {})}
        if "earlier" in row:  # the codes that an earlier set of the same index handed out
            row["count"] -= row.pop("earlier")
        return Content(**row)

    def _lifetime_of(self, kind: Kind) -> int:
        return self._state_lifetime if kind.lifetime is None else kind.lifetime


def _cursor_after(last: Key) -> str:
    """Return the cursor of the page after this key."""
    return encode_cursor(json_codec.encode(last))


_LIMIT = Parameter("limit", f"Return at most this many records, 1 to {MAX_ROWS}. Default: {DEFAULT_ROWS}.", "integer")
_PAGE = (
    Parameter("client_id", "The client id of the extension. Default: all."),
    Parameter("channel_id", "The channel. Default: all."),
    Parameter("search", "A text that the id, the channel or the user contains."),
    _LIMIT,
    CURSOR_PARAMETER,
)


@control_endpoint("GET", "/_emulator/clock/next", query=(_LIMIT,), answer=ComingExpiries)
async def read_coming_expiries(contents: Contents, call: Call) -> ComingExpiries:
    """List the next records to expire, soonest first."""
    return await contents.coming_expiries(call.integer("limit", DEFAULT_ROWS))


def endpoints_of(kinds: Sequence[Kind]) -> tuple[Endpoint, ...]:
    """Return the endpoints about these kinds."""
    counts = msgspec.defstruct("Counts", [(kind.name, int) for kind in kinds])
    counts.__doc__ = "The number of records of each kind, counted up to 10,000."

    @control_endpoint("GET", "/_emulator/contents", answer=counts)
    async def count_contents(contents: Contents, call: Call) -> Any:
        """Count the stored records by kind; 10,000 may mean more."""
        return await contents.count_by_kind()

    return (count_contents, read_coming_expiries, *map(_list_endpoint, kinds))


def _list_endpoint(kind: Kind) -> Endpoint:
    async def read(contents: Contents, call: Call) -> ContentPage:
        only = ContentFilter(call.text("client_id"), call.text("channel_id"), call.text("search"))
        return await contents.page(
            kind.name, only, limit=call.integer("limit", DEFAULT_ROWS), cursor=call.text("cursor")
        )

    read.__name__ = f"list_all_{kind.name}"
    read.__doc__ = f"List {kind.about}. The list covers all extensions and channels."
    return control_endpoint("GET", f"/_emulator/contents/{kind.name}", query=_PAGE, answer=ContentPage)(read)


def name_readers(stored: ReadNames, hub: Hub, changes: Changes) -> Mapping[str, ReadNames]:
    """Return, by the fact of a hint, the function that reads names in use, at most some hundred."""

    async def sent(key: Key) -> Iterable[str]:
        recent = (each.key for each in reversed(changes.latest("event", MAX_ROWS)))
        return (each.name for each in recent if each.owner == key.owner and each.channel in ("", key.channel))

    async def heard(key: Key) -> Iterable[str]:
        return (each.name for each in hub.topics("event", key.channel or "") if each.owner == key.owner)

    return {ABSENT: stored, NEW: stored, UNSENT: sent, UNHEARD: heard}

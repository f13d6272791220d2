"""What screens share: their declaration, the callers that forms suggest, and lists of records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from emulator.control.contents import Content, ContentFilter
from emulator.core.callers import Caller, Role, opaque_id_of
from emulator.core.keys import Key
from emulator.core.wire.cursors import FIRST
from emulator.dashboard.rig.arrangement import DEFAULT_CHANNEL, DEFAULT_CLIENT

Service = Any
"""The `app.Service` that a page is about. It reads any part of it."""


class Query(dict[str, str]):
    """The parameters of a page by name, as the user typed them. An absent one is an empty text."""

    def __missing__(self, name: str) -> str:
        return ""


class Screen(NamedTuple):
    """A screen of the dashboard."""

    name: str
    """The last part of its path, and the name of its template."""
    title: str
    read: Callable[[Any, Query], Awaitable[dict[str, Any]]]
    """Takes the `Service` and the query; returns the values of the template. Raises `ServiceError`."""
    refresh_seconds: float = 5.0
    """Seconds after which an open page is rendered again although nothing changed: times go by."""
    submit: Callable[[Any, Query, Query], Awaitable[dict[str, Any]]] | None = None
    """Takes the `Service`, the query and the fields of a form that the page sends to itself; returns the values of the
    template. Raises `ServiceError`."""
    is_live: Callable[[Query], bool] = lambda query: True
    """Whether an open page follows changes: not while a text is edited that a change must not replace."""


_MAX_ENTRIES_READ = 100
"""Entries of the journal in which a caller is looked for."""


class SuggestedPlace(NamedTuple):
    """An extension and a channel that exist, if there is one."""

    client_id: str
    channel_id: str


def suggested_place(service: Service, query: Query) -> SuggestedPlace:
    """Return the client id and channel of the query; where one is absent, a known one."""
    client_id, channel_id = query["client_id"], query["channel_id"]
    for entry in service.journal.newest(_MAX_ENTRIES_READ):
        if client_id and channel_id:
            break
        if entry.caller is not None and client_id in ("", entry.caller.client_id):
            client_id = entry.caller.client_id
            channel_id = channel_id or entry.caller.channel_id or ""
    return SuggestedPlace(
        client_id or min(service.extensions.current, default=DEFAULT_CLIENT), channel_id or DEFAULT_CHANNEL
    )


async def viewer_of(service: Service, client_id: str, channel_id: str, user: str) -> Caller:
    """Return the viewer with this user id or opaque id, as votes, stores and codes know them."""
    is_id = user.isdecimal()
    opaque_id = opaque_id_of(user) if is_id else user
    caller = Caller(client_id, Role.VIEWER, channel_id, user if is_id else None, opaque_id, is_opaque_id_derived=is_id)
    known: Caller = (await service.dispatcher.identify(caller, writes=False))[0]
    return known


ROWS = 100
"""Rows of a list. With the other rows of a page, they stay below 200."""
_MAX_SORTED = 1000
"""Records to read; those with the highest counts are shown."""


async def list_records(service: Service, kind: str, query: Query) -> dict[str, Any]:
    """Return a page of the records of a kind, or those with most entries. Raises `BadRequest` for a wrong cursor."""
    only = ContentFilter(query["client_id"], query["channel_id"], query["search"])
    is_most, is_first = query["sort"] == "most", query["cursor"] in ("", FIRST)
    page = await service.contents.page(kind, only, limit=ROWS, cursor=query["cursor"])
    found = list(page.rows)
    while is_most and page.next != FIRST and len(found) < _MAX_SORTED:
        page = await service.contents.page(kind, only, limit=ROWS, cursor=page.next)
        found += page.rows
    rows = sorted(found, key=_row_count, reverse=True)[:ROWS] if is_most else found
    return {
        "rows": rows,
        "next": "" if is_most or page.next == FIRST else page.next,
        "is_most": is_most,
        "is_whole": is_first and page.next == FIRST and len(rows) == len(found),
        "looked_at": len(found) if page.next != FIRST else 0,
        "is_first": is_first,
        "is_earlier": lambda row: is_before_start(service, row.latest),
    }


def _row_count(row: Content) -> int:
    return row.count if isinstance(row.count, int) else 0


def is_before_start(service: Service, at: int) -> bool:
    """Whether something happened before this service started; 0 is an unknown time."""
    return bool(0 < at < service.contents.started_at <= service.clock.now())


def screen_of_records(
    name: str,
    title: str,
    kind: str,
    read_one: Callable[[Any, Key, Query], Awaitable[dict[str, Any]]],
) -> Screen:
    """Return the screen with the list of all polls, for example, or with the one that the address names.

    The template has that one under the singular of the screen's name, with the values of `read_one`, among which
    `exists` says whether it does.
    """
    one = name.removesuffix("s")

    async def read(service: Service, query: Query) -> dict[str, Any]:
        if "id" not in query:
            return {one: None, **await list_records(service, name, query)}
        key = Key(kind, query["client_id"], query["id"], query["channel_id"])
        record = await read_one(service, key, query)
        return {one: {**key_values(key), **record}, "is_missing": not record["exists"]}

    return Screen(name, title, read)


def key_values(key: Key) -> dict[str, Any]:
    """Return the values that name a record."""
    return {"id": key.name, "client_id": key.owner, "channel_id": key.channel}

"""Broadcasts: the latest deliveries of events, from the journal, and a form that sends one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

from emulator.core.journal import DELIVERY, MAX_BODY, Entry
from emulator.dashboard.json_text import compact_json, escape_reordering
from emulator.dashboard.screen import Query, Screen, Service
from emulator.features.broadcast.service import Event
from emulator.realtime.web_page_connection import WEB_PAGE

MAX_ROWS = 50
_MAX_ENTRIES_READ = 5_000
"""Entries of the journal that one view looks at."""
EVENT_PREFIX = "event:"
"""The beginning of the name of each delivery of an event to games."""


class _Update(msgspec.Struct):
    data: Event


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the latest broadcasts, newest first."""
    wanted = (each for each in latest_broadcasts(service) if query["event"] in each[0].name.removeprefix(EVENT_PREFIX))
    return {"rows": [broadcast_row(*each) for each in islice(wanted, MAX_ROWS)], "most": MAX_ROWS}


def latest_broadcasts(service: Service) -> Iterator[tuple[Entry, list[Entry]]]:
    """Yield each broadcast as its delivery to games and its deliveries to pages, newest first."""
    pages: dict[str, list[Entry]] = {}
    for entry in service.journal.newest(_MAX_ENTRIES_READ):
        if entry.kind != DELIVERY:
            continue
        if entry.name == WEB_PAGE:
            pages.setdefault(entry.id, []).insert(0, entry)
        elif entry.name.startswith(EVENT_PREFIX):
            yield entry, pages.pop(entry.id, [])


def broadcast_row(entry: Entry, pages: list[Entry]) -> dict[str, Any]:
    """Return one broadcast, with its delivery to games and its deliveries to pages.

    If the payload is too long for the journal, it has only the beginning of it, and no scope.
    """
    client_id, _, channel_id = entry.path.partition("/")
    scope, payload = "", _beginning_of_payload(entry.response)
    if entry.response_size <= MAX_BODY:
        with suppress(msgspec.MsgspecError):
            event = msgspec.json.decode(entry.response, type=_Update).data
            scope, payload = event.scope, compact_json(event.data)
    deliveries = (entry, *pages)
    return {
        "entry": entry,
        "event": entry.name.removeprefix(EVENT_PREFIX),
        "client_id": client_id,
        "channel_id": channel_id,
        "scope": scope,
        "payload": payload,
        "delivered": sum(each.delivered for each in deliveries),
        "dropped": sum(each.dropped for each in deliveries),
    }


def _beginning_of_payload(update: bytes) -> str:
    """Return the beginning of the payload of an update that the journal has cut."""
    _, _, data = update.partition(b'"data":{"event":')
    return escape_reordering((data.partition(b',"data":')[2] or update).decode("utf-8", "replace"))


SCREENS = (Screen("broadcasts", "Broadcasts", read),)

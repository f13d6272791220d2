"""Broadcasts: the latest deliveries of events, from the journal, and forms that send one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from emulator.core.callers import EXTENSION_WRITERS
from emulator.core.journal import DELIVERY, MAX_BODY, Entry
from emulator.dashboard.json_text import compact, escaped
from emulator.dashboard.screen import Query, Screen, Service
from emulator.features.broadcast.service import Event
from emulator.realtime.web_page_connection import WEB_PAGE

ROWS = 50
_LOOKED_AT = 5_000
"""Entries of the journal that one view looks at."""
_EVENT = "event:"
"""The beginning of the name of each delivery of an event to games."""
_LONGEST_ARGUMENT = 200
_SCOPES = {"channel": "channel", "extension": "all channels", "whisper": "one user"}


class _Update(msgspec.Struct):
    data: Event


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the latest broadcasts, newest first, and the broadcast that the query names."""
    wanted, number = query["event"], query["entry"]
    chosen, rows = None, list[dict[str, Any]]()
    for entry, pages in _entries(service):
        event = entry.name.removeprefix(_EVENT)
        if number and number in (str(each.number) for each in (entry, *pages)):
            chosen = _delivery(entry, pages)
        if wanted in event and len(rows) < ROWS:
            rows.append(_delivery(entry, pages))
        if len(rows) == ROWS and (chosen or not number):
            break
    return {"rows": rows, "chosen": chosen, "most": ROWS, "scopes": _SCOPES}


def _entries(service: Service) -> Iterator[tuple[Entry, list[Entry]]]:
    """Yield each broadcast as its delivery to games and its deliveries to pages, newest first."""
    pages: dict[str, list[Entry]] = {}
    for entry in service.journal.newest(_LOOKED_AT):
        if entry.kind != DELIVERY:
            continue
        if entry.name == WEB_PAGE:
            pages.setdefault(entry.id, []).insert(0, entry)
        elif entry.name.startswith(_EVENT):
            yield entry, pages.pop(entry.id, [])


def _delivery(entry: Entry, pages: list[Entry]) -> dict[str, Any]:
    """Return one broadcast, with its delivery to games and its deliveries to pages.

    If the payload is too long for the journal, it has only the beginning of it, and no scope.
    """
    client_id, _, channel_id = entry.path.partition("/")
    scope, payload, is_cut = "", _beginning(entry.response), True
    if entry.response_size <= MAX_BODY:
        with suppress(msgspec.MsgspecError):
            event = msgspec.json.decode(entry.response, type=_Update).data
            scope, payload, is_cut = event.scope, compact(event.data), False
    deliveries = (entry, *pages)
    role = "broadcaster"
    if scope == "extension":
        role = entry.caller.role if entry.caller and entry.caller.role in EXTENSION_WRITERS else "admin"
    return {
        "entry": entry,
        "event": entry.name.removeprefix(_EVENT),
        "client_id": client_id,
        "channel_id": channel_id,
        "scope": scope,
        "payload": payload,
        "argument": payload if len(payload) <= _LONGEST_ARGUMENT else "@message.json",
        "is_cut": is_cut,
        "can_be_resent": not is_cut and scope in ("channel", "extension"),
        "role": role,
        "pages": pages,
        "compressed": any(_is_compressed(each.response) for each in pages),
        "delivered": sum(each.delivered for each in deliveries),
        "dropped": sum(each.dropped for each in deliveries),
        "recipients": [line for each in deliveries for line in each.recipients.split("\n") if line],
    }


def _is_compressed(frame: bytes) -> bool:
    """Whether a message to a page has a text in place of the JSON object."""
    return b'\\"message\\"' in frame and b'\\"message\\":\\"{' not in frame


def _beginning(update: bytes) -> str:
    """Return the beginning of the payload of an update that the journal has cut."""
    _, _, data = update.partition(b'"data":{"event":')
    return escaped((data.partition(b',"data":')[2] or update).decode("utf-8", "replace"))


SCREENS = (Screen("broadcasts", "Broadcasts", read),)

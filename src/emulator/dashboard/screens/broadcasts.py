"""Broadcasts: the latest deliveries of events, from the journal, and forms that send one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from emulator.core.callers import EXTENSION_WRITERS
from emulator.core.journal import DELIVERY, MAX_BODY, Entry
from emulator.dashboard.json_text import compact, escaped
from emulator.dashboard.screen import Query, Screen, Service, suggested
from emulator.realtime.web_page_access import WEB_PAGE

ROWS: Final = 50
_LOOKED_AT: Final = 5_000
"""Entries of the journal that one view looks at."""
_EVENT: Final = "event:"
"""The beginning of the name of each delivery of an event to games."""
_LONGEST_ARGUMENT: Final = 200
_SCOPES: Final = {"channel": "channel", "extension": "all channels", "whisper": "one user"}


class _Event(msgspec.Struct):
    event: str = ""
    data: Any = None
    channel_id: str = ""
    scope: str = ""


class _Update(msgspec.Struct):
    data: _Event = msgspec.field(default_factory=_Event)


class Delivery(NamedTuple):
    """One broadcast, with its delivery to games and its deliveries to pages."""

    entry: Entry
    event: str
    client_id: str
    channel_id: str
    scope: str
    """Empty if the payload is too long for the journal."""
    payload: str
    """As JSON, or its beginning."""
    is_cut: bool
    pages: list[Entry]
    compressed: bool
    """Whether pages get it compressed."""

    @property
    def delivered(self) -> int:
        return self.entry.delivered + sum(each.delivered for each in self.pages)

    @property
    def dropped(self) -> int:
        return self.entry.dropped + sum(each.dropped for each in self.pages)

    @property
    def recipients(self) -> list[str]:
        """The first recipients of the broadcast."""
        return [line for each in (self.entry, *self.pages) for line in each.recipients.split("\n") if line]

    @property
    def can_be_resent(self) -> bool:
        return not self.is_cut and self.scope in ("channel", "extension")

    @property
    def argument(self) -> str:
        """The broadcast's payload as an argument of a command."""
        return self.payload if len(self.payload) <= _LONGEST_ARGUMENT else "@message.json"

    @property
    def role(self) -> str:
        """The role to act as when the broadcast is sent again."""
        caller = self.entry.caller
        if self.scope == "extension":
            return caller.role if caller and caller.role in EXTENSION_WRITERS else "admin"
        return "broadcaster"


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the latest broadcasts, newest first, and the broadcast that the query names."""
    wanted, number = query.get("event", ""), query.get("entry", "")
    chosen: Delivery | None = None
    rows: list[Delivery] = []
    for entry, pages in _entries(service):
        event = entry.name.removeprefix(_EVENT)
        if number and number in (str(each.number) for each in (entry, *pages)):
            chosen = _delivery(entry, pages)
        if wanted in event and len(rows) < ROWS:
            rows.append(_delivery(entry, pages))
        if len(rows) == ROWS and (chosen or not number):
            break
    return {
        "is_on": service.journal.is_on,
        "event": wanted,
        "rows": rows,
        "number": number,
        "chosen": chosen,
        "most": ROWS,
        "scopes": _SCOPES,
        "suggested": suggested(service, query),
    }


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


def _delivery(entry: Entry, pages: list[Entry]) -> Delivery:
    client_id, _, channel_id = entry.path.partition("/")
    is_cut = entry.response_size > MAX_BODY
    event = _Event()
    if not is_cut:
        try:
            event = msgspec.json.decode(entry.response, type=_Update).data
        except msgspec.MsgspecError:
            is_cut = True
    payload = _beginning(entry.response) if is_cut else compact(event.data)
    compressed = any(b'\\"message\\"' in each.response and b'\\"message\\":\\"{' not in each.response for each in pages)
    return Delivery(
        entry, entry.name.removeprefix(_EVENT), client_id, channel_id, event.scope,
        payload, is_cut, pages, compressed,
    )  # fmt: skip


def _beginning(update: bytes) -> str:
    """Return the beginning of the payload of an update that the journal has cut."""
    _, _, data = update.partition(b'"data":{"event":')
    return escaped((data.partition(b',"data":')[2] or update).decode("utf-8", "replace"))


SCREENS = (Screen("broadcasts", "Broadcasts", read),)

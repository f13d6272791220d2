"""The common parts of screens with lists: a page of rows, the page of one thing, and commands that do the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from emulator.clock import clamp_instant
from emulator.dashboard.commands import Part
from emulator.dashboard.screen import Query, Service
from emulator.engines.base import Entry, Key
from emulator.errors import BadRequest
from emulator.features.contents.rules import FIRST, Content, Filter

ROWS: Final = 100
"""Rows of a list. With those beside it, a page stays below 200."""
_MAX_SKIPPED: Final = 20_000


class Entries(NamedTuple):
    """Some votes or answers, oldest first."""

    rows: Sequence[Entry]
    next: str
    """Where the next page begins; empty if this is the last one."""


async def listed(service: Service, kind: str, query: Query) -> dict[str, Any]:
    """Return a page of the things of a kind. Raises `BadRequest` for a wrong cursor."""
    only = Filter(query.get("client_id", ""), query.get("channel_id", ""), query.get("search", ""))
    page = await service.contents.page(kind, only, limit=ROWS, cursor=query.get("cursor", FIRST))
    return {
        "rows": page.rows,
        "next": "" if page.next == FIRST else page.next,
        "is_first": query.get("cursor", FIRST) in ("", FIRST),
        "only": only,
        "now": service.clock.now(),
        "is_earlier": lambda row: is_earlier(service, row),
    }


def is_earlier(service: Service, row: Content) -> bool:
    """Whether the latest change of a thing was before this service started."""
    return bool(row.latest) and row.latest < service.contents.started_at <= service.clock.now()


def chosen(kind: str, query: Query) -> Key | None:
    """Return the key of the thing that a page is about; `None` for a list."""
    if "id" not in query:
        return None
    return Key(kind, query.get("client_id", ""), query["id"], query.get("channel_id", ""))


def manager_of(key: Key, global_prefix: str) -> str:
    """Return the role that may delete a thing, and nothing of another channel with it."""
    return "admin" if key.name.startswith(global_prefix) else "broadcaster"


def command(*words: str | Part, key: Key, role: str = "") -> list[str | Part]:
    """Return the words of the `extcli` command for a thing."""
    options = [*(("--as", role) if role else ()), "--client-id", key.owner]
    return [*words, *options, *(("--channel", key.channel) if key.channel else ())]


async def entries(service: Service, key: Key, start: str) -> Entries:
    """Return a page of a ballot's entries. `start` is `next` of the page before. Raises `BadRequest`."""
    since, skipped = _position(start)
    most = skipped + ROWS + 1
    found: list[Entry] = []
    async for page in service.engine.ballots.entries(key, now=service.clock.now(), since=since, limit=most):
        found += page
    rows, following = found[skipped : skipped + ROWS], ""
    if len(found) == most:
        at = found[-1].cast_at
        following = f"{at}.{sum(each.cast_at == at for each in found[:-1])}"
    return Entries(rows, following)


def _position(start: str) -> tuple[int, int]:
    """Return the time from which to read, in Unix ms, and how many entries of that time to skip."""
    if not start:
        return 0, 0
    at, _, skipped = start.partition(".")
    if not (at.isdecimal() and skipped.isdecimal() and len(start) <= 30):
        raise BadRequest("Malformed from parameter", "from: follow a link to the next page")
    if int(skipped) > _MAX_SKIPPED:
        raise BadRequest("Malformed from parameter", f"from: at most {_MAX_SKIPPED:,} entries of one instant are shown")
    return clamp_instant(int(at)), int(skipped)

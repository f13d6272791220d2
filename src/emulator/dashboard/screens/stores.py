"""Stores: their contents, and an editor that shows the difference before it writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from emulator.contract.limits import MAX_JSON_STORE_BYTES, MAX_STORE_BYTES
from emulator.control.calls import CallBody
from emulator.control.contents import Filter
from emulator.core.callers import Caller, Role
from emulator.core.errors import BadRequest, Conflict
from emulator.core.wire import json_codec
from emulator.core.wire.cursors import FIRST
from emulator.core.wire.refusals import invalid_parameter, missing_parameter
from emulator.core.wire.url import SERVICE
from emulator.dashboard.json_text import Difference, differences, pretty
from emulator.dashboard.screen import Query, Screen, Service, suggested, viewer_of
from emulator.features.stores.json_stores import SHARED_PREFIX, json_store_key
from emulator.features.stores.rules import STORES, digest_of, store_key

ROWS: Final = 100
JSON_STORE: Final = "json_store"
_KINDS: Final = {each.name: each for each in STORES}
_DIFFERENCES: Final = 200
"""Differences that are shown."""
_NO_DRAFT: Final[dict[str, Any]] = {
    "draft": None,
    "problem": "",
    "is_changed": False,
    "differences": [],
    "more": False,
}
_NOUNS: Final = {"state": "state", "config": "store-config"}
"""The nouns of the command line, by the last word of a store's name. The others are the scope."""


@dataclass(frozen=True)
class Opened:
    """One store, as its address names it, and its content."""

    store: str
    client_id: str
    channel_id: str
    user: str
    id: str
    """The id of a JSON store."""
    text: bytes | None = None
    """`None` if nothing is stored."""

    @property
    def digest(self) -> str:
        """A hash of the store's content."""
        return digest_of(self.text)

    @property
    def value(self) -> Any:
        return msgspec.json.decode(self.text or b"{}")

    @property
    def pretty(self) -> str:
        return pretty(self.value)

    @property
    def size(self) -> int:
        return len(self.text or b"")

    @property
    def limit(self) -> int:
        """The largest size of the store, in bytes."""
        return MAX_JSON_STORE_BYTES if self.store == JSON_STORE else MAX_STORE_BYTES

    @property
    def address(self) -> dict[str, str]:
        """The query parameters that name the store."""
        names = ("store", "client_id", "channel_id", "user", "id")
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    @property
    def role(self) -> Role:
        """The role that may write the store."""
        if self.store == JSON_STORE:
            return Role.ADMIN if self.id.startswith(SHARED_PREFIX) else Role.BROADCASTER
        kind = _KINDS[self.store]
        return Role.VIEWER if kind.per_viewer else Role.BROADCASTER if kind.per_channel else Role.ADMIN

    def command(self, verb: str) -> list[str]:
        """Return the words of the `extcli` command that reads the store."""
        scope, _, kind = self.store.rpartition("_")
        scope = "hidden" if scope == "extension_hidden" else scope.replace("_", "-")
        words = ["json-store", verb, self.id] if self.store == JSON_STORE else [_NOUNS[kind], verb, scope]
        role = f"{self.role}:{self.user}" if self.user else str(self.role)
        content = ["@store.json"] if verb == "set" else []
        return [*words, *content, "--client-id", self.client_id, "--channel", self.channel_id, "--as", role]


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the stores of all extensions, and the one that the query names."""
    opened = await _open(service, query) if query.get("store") else None
    values = {**await _lists(service, query), **_NO_DRAFT, "opened": opened}
    return values | {"step": "edit" if query.get("edit") else "read"}


async def submit(service: Service, query: Query, fields: Query) -> dict[str, Any]:
    """Compare the editor's text with the store; with the step `save`, write it unless the store has changed since."""
    opened = await _open(service, fields)
    draft, base = fields.get("text", ""), fields.get("base", "")
    values = {**await _lists(service, query), **_NO_DRAFT, "opened": opened, "step": "compare"}
    values |= {"draft": draft, "is_changed": base != opened.digest}
    try:
        wanted = json_codec.decode(draft.encode(), dict)
    except BadRequest as error:
        return values | {"step": "edit", "problem": error.detail}
    values |= _first_differences(opened.value, wanted)
    if fields.get("step") != "save" or base != opened.digest:
        return values
    written = await service.calls.call(_call(opened, wanted), "")
    if written.status == Conflict.status:
        opened = await _open(service, fields)
        return values | {"opened": opened, "is_changed": True, **_first_differences(opened.value, wanted)}
    if written.status >= 400:
        return values | {"step": "edit", "problem": _problem(written.body)}
    now = await _open(service, fields)
    return (
        values
        | await _lists(service, query)
        | {"opened": now, "step": "saved", **_first_differences(wanted, now.value)}
    )


async def _lists(service: Service, query: Query) -> dict[str, Any]:
    only = Filter(query.get("only_client", ""), query.get("only_channel", ""), query.get("search", ""))
    stores = await service.contents.page("stores", only, limit=ROWS, cursor=query.get("cursor", FIRST))
    objects = await service.contents.page("json_stores", only, limit=ROWS, cursor=query.get("json_cursor", FIRST))
    return {
        "only": only,
        "stores": stores,
        "objects": objects,
        "kinds": [*_KINDS, JSON_STORE],
        "suggested": suggested(service, query),
    }


async def _open(service: Service, query: Query) -> Opened:
    """Return the store that these parameters name. Raises `BadRequest` if they name none."""
    caller = suggested(service, query)
    opened = Opened(
        query.get("store", ""), caller.client_id, caller.channel_id, query.get("user", ""), query.get("id", "")
    )
    admin = Caller(opened.client_id, Role.ADMIN, opened.channel_id, None, "")
    if opened.store == JSON_STORE:
        key = json_store_key(admin, opened.channel_id, opened.id or "default")
        opened = replace(opened, user="", id=key.name)
    elif kind := _KINDS.get(opened.store):
        user = ""
        if kind.per_viewer:
            if not opened.user:
                raise missing_parameter("user", f"{opened.store} has one store per user; name one")
            user = (await viewer_of(service, opened.client_id, opened.channel_id, opened.user)).opaque_id
        per_extension = service.settings.channel_stores_per_extension
        key = store_key(kind, admin, opened.channel_id, user_id=user, per_extension=per_extension)
        opened = replace(opened, user=opened.user if kind.per_viewer else "", id="")
    else:
        raise invalid_parameter("store", opened.store[:40], f"one of {', '.join(_KINDS)}, json_store")
    found = await service.engine.documents.read([key], now=service.clock.now())
    return replace(opened, text=found.get(key))


def _call(opened: Opened, wanted: Any) -> CallBody:
    """Return the call that writes a store, unless it has changed since it was opened."""
    query = {"expected": opened.digest} | ({"id": opened.id} if opened.id else {})
    is_id = opened.user.isdecimal()
    return CallBody(
        f"{SERVICE}{opened.store}?{urlencode(query)}",
        opened.client_id,
        "POST",
        wanted,
        opened.role,
        opened.user if is_id else "",
        opened.channel_id,
        "" if is_id else opened.user,
    )


def _first_differences(before: Any, after: Any) -> dict[str, Any]:
    found: list[Difference] = list(islice(differences(before, after), _DIFFERENCES + 1))
    return {"differences": found[:_DIFFERENCES], "more": len(found) > _DIFFERENCES}


def _problem(body: object) -> str:
    """Return why a call was refused."""
    try:
        answer = msgspec.json.decode(bytes(body)) if isinstance(body, msgspec.Raw) else {}
    except msgspec.DecodeError:
        answer = {}
    return str(answer.get("info") or answer.get("reason") or "the service refused it")


SCREENS = (Screen("stores", "Stores", read, submit=submit, is_live=lambda query: not query.get("edit")),)

"""Stores: their contents, and an editor that shows the difference before it writes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import urlencode

import msgspec

from emulator.contract.limits import MAX_JSON_STORE_BYTES, MAX_STORE_BYTES
from emulator.control.calls import CallBody
from emulator.control.contents import ContentFilter
from emulator.core.callers import Caller, Role
from emulator.core.errors import BadRequest, Conflict
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import invalid_parameter, missing_parameter
from emulator.core.wire.url import SERVICE
from emulator.dashboard.json_text import differences
from emulator.dashboard.screen import Query, Screen, Service, suggested_place, viewer_of
from emulator.features.stores.json_stores import SHARED_ID_PREFIX, json_store_key
from emulator.features.stores.rules import STORES, digest_of

MAX_ROWS = 100
JSON_STORE = "json_store"
_STORE_KINDS = {each.name: each for each in STORES}
_MAX_DIFFERENCES = 200
"""Differences that are shown."""
_COMMAND_NOUNS = {"state": "state", "config": "store-config"}
"""The nouns of the command line, by the last word of a store's name. The others are the scope."""


@dataclass(frozen=True)
class OpenedStore:
    """One store, as its address names it, and its content."""

    store: str
    client_id: str
    channel_id: str
    user: str
    id: str
    """The id of a JSON store."""
    text: bytes | None
    """`None` if nothing is stored."""

    @property
    def digest(self) -> str:
        """A hash of the store's content."""
        return digest_of(self.text)

    @property
    def content(self) -> str:
        return (self.text or b"{}").decode()

    @property
    def value(self) -> Any:
        return msgspec.json.decode(self.content)

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
            return Role.ADMIN if self.id.startswith(SHARED_ID_PREFIX) else Role.BROADCASTER
        kind = _STORE_KINDS[self.store]
        return Role.VIEWER if kind.per_viewer else Role.BROADCASTER if kind.per_channel else Role.ADMIN

    def command(self, verb: str) -> list[str]:
        """Return the words of the `extcli` command that reads the store."""
        scope, _, kind = self.store.rpartition("_")
        scope = "hidden" if scope == "extension_hidden" else scope.replace("_", "-")
        words = ["json-store", verb, self.id] if self.store == JSON_STORE else [_COMMAND_NOUNS[kind], verb, scope]
        role = f"{self.role}:{self.user}" if self.user else str(self.role)
        content = ["@store.json"] if verb == "set" else []
        return [*words, *content, "--client-id", self.client_id, "--channel", self.channel_id, "--as", role]


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the stores of all extensions, and the one that the query names."""
    only = ContentFilter(search=query["search"])
    return {
        "only": only,
        "stores": await service.contents.page("stores", only, limit=MAX_ROWS, cursor=query["cursor"]),
        "objects": await service.contents.page("json_stores", only, limit=MAX_ROWS, cursor=query["json_cursor"]),
        "kinds": [*_STORE_KINDS, JSON_STORE],
        "opened": await _read_store(service, query) if query["store"] else None,
        "step": "edit" if query["edit"] else "read",
        "draft": None,
        "problem": "",
        "is_changed": False,
        "differences": (),
        "most": _MAX_DIFFERENCES,
    }


async def submit(service: Service, query: Query, fields: Query) -> dict[str, Any]:
    """Compare the editor's text with the store; with the step `save`, write it unless the store has changed since."""
    opened = await _read_store(service, fields)
    draft, step, problem = fields["text"], "compare", ""
    is_changed = fields["base"] != opened.digest
    try:
        wanted = json_codec.decode(draft.encode(), dict)
    except BadRequest as error:
        wanted, step, problem = opened.value, "edit", f"{error.detail}{_problem_line(error.detail, draft)}"
    if step == "compare" and fields["step"] == "save" and not is_changed:
        written = await service.calls.call(_write_call(opened, wanted), "")
        opened = await _read_store(service, fields)
        is_changed = written.status == Conflict.status
        if written.status < 400:
            step = "saved"
        elif not is_changed:
            step, problem = "edit", _refusal_text(written.body)
    pair = (wanted, opened.value) if step == "saved" else (opened.value, wanted)
    return await read(service, query) | {
        "opened": opened,
        "step": step,
        "draft": draft,
        "problem": problem,
        "is_changed": is_changed,
        "differences": list(islice(differences(*pair), _MAX_DIFFERENCES)),
    }


async def _read_store(service: Service, query: Query) -> OpenedStore:
    """Return the store that these parameters name. Raises `BadRequest` if they name none."""
    place, store = suggested_place(service, query), query["store"]
    user, id = query["user"], query["id"]
    admin = Caller(place.client_id, Role.ADMIN, place.channel_id, None, "")
    if store == JSON_STORE:
        key = json_store_key(admin, place.channel_id, id or "default")
        user, id = "", key.name
    elif kind := _STORE_KINDS.get(store):
        user, id, opaque_id = user if kind.per_viewer else "", "", ""
        if user:
            opaque_id = (await viewer_of(service, *place, user)).opaque_id
        elif kind.per_viewer:
            raise missing_parameter("user", f"{store} has one store per user; name a user")
        key = service.stores.key(kind, admin, place.channel_id, opaque_id)
    else:
        raise invalid_parameter("store", store[:40], f"one of {', '.join(_STORE_KINDS)}, json_store")
    found = await service.engine.documents.read([key], now=service.clock.now())
    return OpenedStore(store, *place, user, id, found.get(key))


def _write_call(opened: OpenedStore, wanted: Any) -> CallBody:
    """Return the call that writes a store, unless it has changed since it was opened."""
    query = {"expected": opened.digest} | ({"id": opened.id} if opened.id else {})
    user = {"user_id" if opened.user.isdecimal() else "opaque_user_id": opened.user}
    path = f"{SERVICE}{opened.store}?{urlencode(query)}"
    return CallBody(path, opened.client_id, "POST", wanted, opened.role, channel_id=opened.channel_id, **user)


def _problem_line(problem: str, draft: str) -> str:
    """Return the line of a text with the byte that a problem names, and what it holds."""
    if not (found := re.search(r"byte (\d+)", problem)):
        return ""
    before = draft.encode()[: int(found[1])].decode(errors="ignore")
    number = before.count("\n")
    return f", in line {number + 1}: {draft.splitlines()[number].strip()[:80]}"


def _refusal_text(body: object) -> str:
    """Return why a call was refused."""
    answer = msgspec.json.decode(bytes(body)) if isinstance(body, msgspec.Raw) else {}
    return str(answer.get("info") or answer.get("reason") or "the service refused the call")


SCREENS = (Screen("stores", "Stores", read, submit=submit, is_live=lambda query: not query["edit"]),)

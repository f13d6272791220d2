"""JSON stores: small objects under ids that developers choose (ruling S5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from emulator.contract.limits import MAX_JSON_STORE_BYTES
from emulator.core.callers import ANYONE, CHANNEL_WRITERS, Caller, check_extension_wide, required_channel
from emulator.core.changes import Change, Changes
from emulator.core.clock import DAY, Clock
from emulator.core.errors import BadRequest, Facts, NotFound, refusal
from emulator.core.keys import Key
from emulator.core.observability.audit import audit
from emulator.core.observability.facts import ABSENT, notice
from emulator.features.id_quota import IdQuota
from emulator.features.kinds import Kind, Measured, Subject
from emulator.features.stores.rules import check_stored, encode_document, replacing_edit, too_large
from emulator.features.stores.service import EXPECTED
from emulator.http.endpoint import CHANNEL, Call, Nothing, endpoint, id_of
from emulator.storage.kinds import Stored
from emulator.storage.records import DocumentRecord
from emulator.storage.shapes import Documents

_LIFETIME = 14 * DAY
"""In ms (ruling S5)."""
SHARED_ID_PREFIX = "global"
"""The prefix of JSON stores that all channels of an extension share."""
_STORE_ID = id_of("store")


@refusal(BadRequest, "Store too large", "S5", "The JSON store would be too large",
         "Store less under one id, or split it over several ids.")  # fmt: skip
def json_store_too_large(*, member: str, size: int, limit: int) -> Facts:
    return too_large(member, size, limit)


@refusal(NotFound, "Not Found", "S5", "Nothing is stored under this id",
         "Write it first: `extcli json-store set {id} KEY=JSON`.")  # fmt: skip
def nothing_stored(*, id: str) -> Facts:
    held, needed = f"id {id}, which was never written or has expired", "an id that was written in the last 14 days"
    return Facts(f"nothing is stored under {id}", held, needed)


@dataclass(eq=False, repr=False)
class JsonStores:
    """The JSON stores of all extensions."""

    _documents: Documents
    _clock: Clock
    _id_quota: IdQuota
    _changes: Changes

    @endpoint("GET", "/v1/e/json_store", roles=ANYONE, answer=dict[str, Any], query=(_STORE_ID, CHANNEL))
    async def read_json_store(self, call: Call) -> object:
        """Read a JSON store; 404 if it does not exist."""
        channel, store_id = call.channel, call.checked_id
        found = (await self.measure(call.caller, channel, store_id, "")).content
        if found is None:
            raise nothing_stored(id=store_id)
        return msgspec.Raw(found)

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        key = json_store_key(caller, channel, id)
        found = await self._documents.read([key], now=self._clock.now())
        if key not in found:
            notice(ABSENT, key)
        return Measured(content=found.get(key))

    @endpoint(
        "POST", "/v1/e/json_store", roles=CHANNEL_WRITERS, body=dict[str, Any], query=(_STORE_ID, CHANNEL, EXPECTED)
    )
    async def replace_json_store(self, call: Call) -> Nothing:
        """Write a JSON store: an object of at most 2 KiB. It expires after 14 days.

        Ids that start with `global` are extension-wide.
        """
        caller, store_id, channel = call.caller, call.checked_id, call.channel
        document, expected = call.any_body(), call.query.get("expected")
        if store_id.startswith(SHARED_ID_PREFIX):
            check_extension_wide(caller, store_id)
        key = json_store_key(caller, channel, store_id)
        text = encode_document(document, name="json_store", max_bytes=MAX_JSON_STORE_BYTES, refuse=json_store_too_large)
        now = self._clock.now()
        change, until = replacing_edit(key, text, expected), now + _LIFETIME
        write = partial(self._documents.update, [key], change, now=now, expires_at=until)
        await self._id_quota.write(key, caller, _LIFETIME, now, write)
        if not key.channel:
            audit("stores replaced", caller, records=1, json_store=store_id)
        await self._changes.committed(Change(key, "written", caller.opaque_id, at=now, content=text))
        return Nothing()


def json_store_key(caller: Caller, channel: str | None, store_id: str) -> Key:
    """Return the key of a JSON store. Ids that start with `global` are extension-wide; others need a channel."""
    of = "" if store_id.startswith(SHARED_ID_PREFIX) else required_channel(channel, "json_store")
    return Key("json_store", caller.client_id, store_id, of)


JSON_STORES = Kind(
    "json_stores",
    "the JSON stores, with their sizes",
    ("json_store",),
    _LIFETIME,
    (Stored(DocumentRecord, "json_store", partial(check_stored, max_bytes=MAX_JSON_STORE_BYTES)),),
    screen="stores",
    waits_for=Subject("json_store", "json_store", frozenset({"path", "equals"}), "default", shared=SHARED_ID_PREFIX),
)

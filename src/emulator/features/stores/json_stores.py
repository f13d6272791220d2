"""JSON stores: small objects under ids that developers choose (ruling S5)."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final

from emulator.contract.limits import MAX_JSON_STORE_BYTES
from emulator.core.callers import Caller, check_extension_wide
from emulator.core.changes import Change, Commits
from emulator.core.clock import Clock
from emulator.core.keys import Key
from emulator.core.observability.audit import audit
from emulator.core.observability.facts import ABSENT, notice
from emulator.features.id_quota import IdQuota
from emulator.features.stores.rules import (
    GLOBAL,
    JSON_STORE_LIFETIME,
    check_unchanged,
    encode_document,
    json_store_key,
    json_store_too_large,
    nothing_stored,
)
from emulator.storage.kinds import Kind, Measured, Shape, Subject
from emulator.storage.shapes import Documents


class JsonStores:
    """The JSON stores of all extensions."""

    def __init__(self, documents: Documents, clock: Clock, id_quota: IdQuota, commits: Commits) -> None:
        self._documents = documents
        self._clock = clock
        self._id_quota = id_quota
        self._commits = commits

    async def read(self, caller: Caller, channel: str | None, store_id: str) -> bytes:
        """Return the object's JSON text. Raises `NotFound`."""
        found = (await self.measure(caller, channel, store_id, "")).document
        if found is None:
            raise nothing_stored(id=store_id)
        return found

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        key = json_store_key(caller, channel, id)
        found = await self._documents.read([key], now=self._clock.now())
        if key not in found:
            notice(ABSENT, key)
        return Measured(document=found.get(key))

    async def replace(
        self, caller: Caller, channel: str | None, store_id: str, document: Any, *, expected: str | None = None
    ) -> None:
        """Write the object; it expires after 14 days. Raises `BadRequest` unless it is an object of at most 2 KiB.

        Raises `Forbidden` if all channels share the store and the caller is only a broadcaster, and `Conflict` if the
        digest of the store is not `expected`.
        """
        if store_id.startswith(GLOBAL):
            check_extension_wide(caller, store_id)
        key = json_store_key(caller, channel, store_id)
        text = encode_document(
            document, name="json_store", max_bytes=MAX_JSON_STORE_BYTES, too_large=json_store_too_large
        )
        now = self._clock.now()

        def change(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            check_unchanged(found.get(key), expected)
            return {key: text}

        work = self._documents.update([key], change, now=now, expires_at=now + JSON_STORE_LIFETIME)
        await self._id_quota.write(key, caller, JSON_STORE_LIFETIME, now, work)
        if not key.channel:
            audit("stores replaced", caller, records=1, json_store=store_id)
        await self._commits.committed(Change(key, "written", caller.opaque_id, at=now, content=text))


OBJECTS: Final = Kind(
    "json_stores",
    "the JSON stores, with their sizes",
    ("json_store",),
    Shape.DOCUMENTS,
    JSON_STORE_LIFETIME,
    "stores",
    waits_for=Subject("json_store", "json_store", frozenset({"path", "equals"}), "default", shared="global"),
    measure=attrgetter("json_stores.measure"),
)

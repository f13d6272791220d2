"""Reads and writes config and state stores, and publishes writes to subscribers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import msgspec
from msgspec import UNSET

from emulator.core.callers import Caller, Role, required_channel, role_error
from emulator.core.changes import Change, Changes
from emulator.core.clock import Clock
from emulator.core.keys import Key
from emulator.core.observability.audit import audit
from emulator.core.observability.facts import CHANGED, READ, REPLACED, notice
from emulator.core.settings import Settings
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import wrong_shape
from emulator.features.broadcast.service import PageEvents
from emulator.features.directory import Directory
from emulator.features.kinds import Kind, Measured, Subject
from emulator.features.stores import rules
from emulator.features.stores.patches import apply_patch
from emulator.features.stores.rules import CHANNEL_STATE, STORED, STORES, Store
from emulator.http.endpoint import Parameter
from emulator.realtime.publisher import Publisher
from emulator.storage.shapes import Documents, Edit, Texts

Patch = dict[str, Any] | list[Any] | msgspec.Raw
"""Undecoded if it comes from a large map."""
_EMPTY_STORE = b"{}"
_PATCH_FORM = "an array of operations or an object to merge"
EXPECTED = Parameter("expected", "Write only if the store still has the text with this SHA-256, in hex; otherwise 409.")
_RECORDS_PER_STEP = 16
"""Records read between two returns to the event loop."""
_STORES_BY_NAME = {store.name: store for store in STORES}
PUBLISHED_KINDS = (*(store.name for store in STORES if store.feed_id), "json_store")
"""The kinds of stores whose writes are published."""


@dataclass(eq=False, repr=False)
class Stores:
    """Config and state stores. A store is returned as its JSON text, `{}` if it was never written (ruling S2)."""

    _documents: Documents
    _clock: Clock
    _settings: Settings
    _directory: Directory
    _changes: Changes

    async def read(self, store: Store, caller: Caller, channel: str | None, *, user_id: str = "") -> msgspec.Raw:
        """Return the store of the caller, or of `user_id`.

        It may be a shared id, `U` plus a shared id, or an opaque id.
        """
        return msgspec.Raw(await self._read_record(store, caller, channel, user_id) or _EMPTY_STORE)

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        """Return the store of this name. Raises `BadRequest`."""
        store = _STORES_BY_NAME.get(id)
        if store is None:
            raise rules.no_store(name=id[:40], stores=_STORES_BY_NAME)
        if store.per_viewer and not user:
            raise rules.no_user(store=id)
        return Measured(content=await self._read_record(store, caller, channel, user if store.per_viewer else ""))

    async def read_users(
        self, store: Store, caller: Caller, channel: str | None, user_ids: list[str]
    ) -> AsyncIterator[list[bytes]]:
        """Yield the stores of up to 1,000 users as pages of members of a JSON object (ruling S1).

        Only admins may call it. Users without a stored record are left out.
        """
        if caller.role is not Role.ADMIN:
            raise role_error(caller, {Role.ADMIN}, "read other users' stores")
        users = iter(rules.unique_ids(user_ids))
        while page := list(islice(users, _RECORDS_PER_STEP)):
            records = await self._read_users_records(store, caller, channel, page)
            yield [json_codec.encode(user_id) + b":" + text for user_id, text in records.items()]

    async def read_all(
        self, stores: Mapping[str, Store], caller: Caller, channel: str | None
    ) -> dict[str, msgspec.Raw]:
        """Return several stores by name, all read at one instant. Without a channel, stores that need one are `{}`."""
        readable = {name: each for name, each in stores.items() if channel or not each.per_channel}
        keys = {name: self.key(each, caller, channel) for name, each in readable.items()}
        found = await self._read_keys(keys)
        return {name: msgspec.Raw(found.get(name, _EMPTY_STORE)) for name in stores}

    async def replace(
        self, store: Store, caller: Caller, channel: str | None, document: Any, *, expected: str | None = None
    ) -> msgspec.Raw:
        """Write the whole store and return it. Raises `BadRequest` unless it is an object of at most 64 KiB.

        Raises `Conflict` if the digest of the store is not `expected`.
        """
        key = self.key(store, caller, channel)
        text = rules.encode_document(document, name=store.name)
        if expected is not None:
            notice(READ, key)  # production would compare the digest of the lapsed record
        await self._write(store, [key], rules.replacing_edit(key, text, expected), whole=True)
        _audit_shared_change("stores replaced", store, caller)
        return msgspec.Raw(text)

    async def patch_record(self, store: Store, caller: Caller, channel: str | None, patch: Any) -> msgspec.Raw:
        """Apply a JSON Patch or a merge patch to the caller's record, and return the new record."""
        key = self.key(store, caller, channel)
        if not isinstance(patch, dict | list):
            raise wrong_shape(needed=_PATCH_FORM, problem=f"a patch must be {_PATCH_FORM}")
        written = await self._apply_patches(store, caller, {key: patch})
        return msgspec.Raw(written[key])

    async def edit_member(self, caller: Caller, channel: str, name: str, edit: Callable[[Any], Any]) -> None:
        """Change one member of the channel state. `edit` takes and returns its value, or `UNSET` for none.

        Raises `BadRequest` if the state grows too large.
        """
        key = self.key(CHANNEL_STATE, caller, channel)

        def change(found: Texts) -> Texts:
            members = msgspec.json.decode(found.get(key, _EMPTY_STORE))
            before = members.get(name, UNSET)
            after = members[name] = edit(before)
            if after is UNSET:
                del members[name]
            return {} if after is before else {key: rules.encode_document(members, name=CHANNEL_STATE.name)}

        await self._write(CHANNEL_STATE, [key], change)

    async def patch(self, store: Store, caller: Caller, channel: str | None, raw: bytes) -> None:
        """Apply a JSON Patch (array) or a merge patch (object), atomically (ruling S2).

        An admin's map of ids to patches changes all those viewer records, or all those channels' config, in one step.
        Only such a map may exceed the usual body limit. The records of a map together may have as many bytes as its
        body, because they are written in one transaction.
        """
        await self._apply_patches(store, caller, await self._patches_in_body(store, caller, channel, raw))

    async def _apply_patches(self, store: Store, caller: Caller, patches: Mapping[Key, Patch]) -> dict[Key, bytes]:
        done = await self._prepare_patches(store, patches) if len(patches) > 1 else {}

        def change(found: Texts) -> Texts:
            written = {}
            for key, patch in patches.items():
                text = found.get(key, _EMPTY_STORE)
                before, after = done.get(key, (b"", b""))
                written[key] = after if text == before else _patch_text(store, text, patch)
            return written

        written = await self._write(store, list(patches), change)
        _audit_shared_change("stores patched", store, caller, len(patches))
        return written

    async def _prepare_patches(self, store: Store, patches: Mapping[Key, Patch]) -> dict[Key, tuple[bytes, bytes]]:
        """Patch many records in short steps, before the transaction; return each text before and after."""
        done: dict[Key, tuple[bytes, bytes]] = {}
        size, keys, most = 0, iter(patches), self._settings.limits.user_map
        while page := list(islice(keys, _RECORDS_PER_STEP)):
            found = await self._documents.read(page, now=self._clock.now())
            for key in page:
                before = found.get(key, _EMPTY_STORE)
                after = _patch_text(store, before, patches[key])
                done[key] = (before, after)
                size += max(len(before), len(after))
                if size > most:
                    raise rules.records_too_large(records=len(done), size=size, limit=most)
                await asyncio.sleep(0)
        return done

    async def _patches_in_body(self, store: Store, caller: Caller, channel: str | None, raw: bytes) -> dict[Key, Patch]:
        """Return the patch of each record that the body of a PATCH changes. Raises `BadRequest` and `TooLarge`.

        A body over the usual limit must map ids to patches, which stay undecoded.
        """
        most = self._settings.limits.body
        if len(raw) <= most:
            body = json_codec.decode_any(raw)
            if not isinstance(body, dict | list):
                raise wrong_shape(needed=_PATCH_FORM, problem=f"the body must be {_PATCH_FORM}")
        elif raw.lstrip().startswith(b"["):
            body = []
        else:
            body = json_codec.decode(raw, dict[str, msgspec.Raw])
        if isinstance(body, list) or not rules.is_map_of_patches(store, caller, body):
            if len(raw) > most:
                raise rules.patch_too_large(size=len(raw), limit=most)
            return {self.key(store, caller, channel): body}
        for name, patch in body.items():
            if isinstance(patch, msgspec.Raw) and len(patch) > most:
                raise rules.patch_of_user_too_large(user=name, size=len(patch), limit=most)
        ids = rules.unique_ids(list(body))
        if not store.per_viewer:
            return {self.key(store, caller, channel_id): body[channel_id] for channel_id in ids}
        spellings: dict[str, str] = {}
        for user_id, opaque_id in (await self._directory.opaque_ids(caller.client_id, ids)).items():
            if (other := spellings.setdefault(opaque_id, user_id)) != user_id:
                raise rules.two_patches_of_a_user(user=user_id, other=other)
        return {self.key(store, caller, channel, opaque_id): body[each] for opaque_id, each in spellings.items()}

    async def _read_users_records(
        self, store: Store, caller: Caller, channel: str | None, user_ids: list[str]
    ) -> dict[str, bytes]:
        """Return the stored records of users, by the spelling in which each user was given.

        Users without a record are left out.
        """
        opaque_ids = await self._directory.opaque_ids(caller.client_id, user_ids)
        keys = {each: self.key(store, caller, channel, opaque_ids[each]) for each in user_ids}
        return await self._read_keys(keys)

    async def _read_record(self, store: Store, caller: Caller, channel: str | None, user_id: str) -> bytes | None:
        """Return the stored record of the caller, or of `user_id`; `None` if there is none."""
        if user_id:
            return (await self._read_users_records(store, caller, channel, [user_id])).get(user_id)
        key = self.key(store, caller, channel)
        notice(READ, key)
        return (await self._documents.read([key], now=self._clock.now())).get(key)

    async def _read_keys(self, keys: Mapping[str, Key]) -> dict[str, bytes]:
        """Return the stored records with these keys, by their names in `keys`, all read at one instant."""
        notice(READ, *keys.values())
        found = await self._documents.read(list(keys.values()), now=self._clock.now())
        return {name: found[key] for name, key in keys.items() if key in found}

    async def _write(self, store: Store, keys: Sequence[Key], change: Edit, *, whole: bool = False) -> dict[Key, bytes]:
        """Change all keys in one atomic step, and report each written key to subscribers and pages (rulings X5, B5).

        `whole` means that nothing of the earlier records stays.
        """
        now = self._clock.now()
        if not whole:
            notice(READ, *keys)
        environment = self._settings.environment
        lifetime = environment.config_lifetime if store.is_config else environment.state_lifetime
        expires_at = environment.expires_at(now, lifetime)
        written = await self._documents.update(keys, change, now=now, expires_at=expires_at)
        notice(REPLACED if whole else CHANGED, *keys)
        await self._changes.committed(
            *(Change(key, "written", key.user, at=now, content=text) for key, text in written.items())
        )
        return written

    def key(self, store: Store, caller: Caller, channel: str | None, user_id: str = "") -> Key:
        """Return the key of a record, which is also the topic of its updates. `user_id` names another user.

        Raises `BadRequest` if the store needs a channel and there is none (ruling A4).
        """
        is_own = store.per_extension or self._settings.channel_stores_per_extension
        return Key(
            store.name,
            caller.client_id if is_own else "",
            "",
            required_channel(channel, store.name) if store.per_channel else "",
            (user_id or caller.opaque_id) if store.per_viewer else "",
        )


async def publish_store(publisher: Publisher, pages: PageEvents, change: Change) -> None:
    """Publish a written store to its subscribers (rulings X5, B5). The content of `change` is the store's text."""
    key, text = change.key, cast("bytes", change.content)
    store = _STORES_BY_NAME.get(key.kind)
    if store is None:
        update = {"id": key.name, "value": msgspec.Raw(text)}
        await pages.publish(key, f"json_store_update:{key.name}", json_codec.encode(update))
        return
    if store.is_config:
        target, data = "config", {"config": msgspec.Raw(text), "config_id": store.feed_id}
    else:
        target, data = store.feed_id, {"topic_id": store.feed_id, "state": msgspec.Raw(text)}
    await publisher.try_publish(key, target, data)
    if store.per_channel:
        await pages.publish(key, f"{store.name}_update", text)


def _audit_shared_change(what: str, store: Store, caller: Caller, records: int = 1) -> None:
    """Log a change of data that the whole extension shares, or of several records."""
    if records > 1 or not (store.per_channel or store.per_viewer):
        audit(what, caller, records=records, store=store.name)


def _patch_text(store: Store, text: bytes, patch: Patch) -> bytes:
    decoded = json_codec.decode_any(bytes(patch)) if isinstance(patch, msgspec.Raw) else patch
    return rules.encode_document(apply_patch(msgspec.json.decode(text), decoded), name=store.name)


STORE_RECORDS = Kind(
    "stores",
    "the config and state stores, with their sizes",
    tuple(store.name for store in STORES),
    None,  # the sandbox, which alone offers lists, gives config the lifetime of state
    STORED,
    waits_for=Subject("store", "", frozenset({"path", "equals", "user"}), shared="", is_named=False),
)

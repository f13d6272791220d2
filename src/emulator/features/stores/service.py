"""Everything the service promises about stores."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from emulator.callers import Caller, Role
from emulator.clock import Clock
from emulator.config.settings import Settings
from emulator.engines.base import Documents, Key
from emulator.errors import BadRequest, Forbidden, NotFound, TooLarge
from emulator.features.stores.patches import patched
from emulator.features.stores.rules import (
    CHANNEL_CONFIG,
    CHANNEL_STATE,
    EXTENSION_CONFIG,
    EXTENSION_STATE,
    EXTENSION_VIEWER_STATE,
    JSON_STORE_LARGEST,
    JSON_STORE_LIFETIME,
    VIEWER_STATE,
    Store,
    checked_document,
    checked_users,
    is_map_of_patches,
    json_store_key,
    key_of,
    update_of,
)
from emulator.limits.id_quota import IdQuota
from emulator.realtime.publisher import Publisher
from emulator.wire import json_codec

Patch = dict[str, Any] | list[Any]
_EMPTY = b"{}"


class Stores:
    """Config and state stores. Answers are the stores' JSON texts, `{}` for one never written (ruling S2)."""

    def __init__(self, documents: Documents, clock: Clock, settings: Settings, publisher: Publisher) -> None:
        self._documents = documents
        self._clock = clock
        self._publisher = publisher
        self._environment = settings.environment
        self._apart = settings.channel_stores_per_extension
        self._largest_patch = settings.limits.body

    async def read(self, store: Store, caller: Caller, channel: str | None) -> bytes:
        """The caller's own record of a store."""
        key = self._key(store, caller, channel)
        return (await self._documents.read([key], now=self._clock.now())).get(key, _EMPTY)

    async def read_of(self, store: Store, caller: Caller, channel: str | None, user_id: str) -> bytes:
        """One user's record, for a backend."""
        key = self._key(store, caller, channel, user_id)
        return (await self._documents.read([key], now=self._clock.now())).get(key, _EMPTY)

    async def read_many(
        self, store: Store, caller: Caller, channel: str | None, users: list[str]
    ) -> dict[str, msgspec.Raw]:
        """Many users' records by id, for an admin; users without one are left out. At most 1,000 (ruling S1)."""
        if caller.role is not Role.ADMIN:
            raise Forbidden("role is not authorized", f"the role {caller.role} may not read other users' stores")
        keys = {self._key(store, caller, channel, user): user for user in checked_users(users)}
        found = await self._documents.read(list(keys), now=self._clock.now())
        return {user: msgspec.Raw(found[key]) for key, user in keys.items() if key in found}

    async def read_all(
        self, stores: Mapping[str, Store], caller: Caller, channel: str | None
    ) -> dict[str, msgspec.Raw]:
        """Several stores at one instant, under the given names; a store that needs a channel reads `{}` without one."""
        keys = {
            name: self._key(store, caller, channel)
            for name, store in stores.items()
            if channel or not store.per_channel
        }
        found = await self._documents.read(list(keys.values()), now=self._clock.now())
        return {name: msgspec.Raw(found.get(keys[name], _EMPTY) if name in keys else _EMPTY) for name in stores}

    async def replace(self, store: Store, caller: Caller, channel: str | None, document: Any) -> bytes:
        """Write the whole store and return it; the document must be an object of at most 64 KiB."""
        key = self._key(store, caller, channel)
        text = checked_document(document, name=store.name)
        await self._write(store, [key], lambda _: {key: text})
        return text

    async def patch_own(self, store: Store, caller: Caller, channel: str | None, patch: Any) -> bytes:
        """Apply a JSON Patch or Merge Patch to the caller's own record, and return it as it then is."""
        key = self._key(store, caller, channel)
        if not isinstance(patch, dict | list):
            raise BadRequest("Invalid body", "a patch is an array of operations or an object to merge")
        written = await self._write(
            store, [key], lambda found: {key: _patched(store, found.get(key, _EMPTY), copy.deepcopy(patch))}
        )
        return written[key]

    async def set_member(self, caller: Caller, channel: str, name: str, value: object) -> None:
        """Write one member of the channel state and leave the others; raises `BadRequest` if it grows too large."""
        await self.patch_own(CHANNEL_STATE, caller, channel, [{"op": "add", "path": _pointer(name), "value": value}])

    async def remove_member(self, caller: Caller, channel: str, name: str, members: frozenset[str]) -> None:
        """Take a member out of the channel state, if it is an object with just these members."""
        key = self._key(CHANNEL_STATE, caller, channel)

        def change(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            document = msgspec.json.decode(found.get(key, _EMPTY))
            value = document.pop(name, None)
            is_it = isinstance(value, dict) and value.keys() == members
            return {key: json_codec.encode(document)} if is_it else {}

        await self._write(CHANNEL_STATE, [key], change)

    async def patch(self, store: Store, caller: Caller, channel: str | None, body: Any, *, size: int = 0) -> None:
        """Apply a JSON Patch (array) or a Merge Patch (object): all of it or nothing (ruling S2).

        An admin's map of ids to patches changes all those users' records of a viewer store, or all those channels'
        config, in one step. Only such a map may be larger than other bodies; `size` is the body's, in bytes.
        """
        patches = self._patches(store, caller, channel, body)
        if size > self._largest_patch and not _is_map(store, caller, body):
            raise TooLarge(
                "Body too large", f"the body has {size} bytes; for one record {self._largest_patch} are taken"
            )

        def change(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            return {key: _patched(store, found.get(key, _EMPTY), patch) for key, patch in patches.items()}

        await self._write(store, list(patches), change)

    def _patches(self, store: Store, caller: Caller, channel: str | None, body: Any) -> dict[Key, Patch]:
        if not isinstance(body, dict | list):
            raise BadRequest("Invalid body", "the body must be an array of operations or an object to merge")
        if isinstance(body, list) or not _is_map(store, caller, body):
            return {self._key(store, caller, channel): body}
        ids = checked_users(list(body))
        if store.per_viewer:
            return {self._key(store, caller, channel, user): body[user] for user in ids}
        return {self._key(store, caller, place): body[place] for place in ids}

    async def _write(
        self, store: Store, keys: Sequence[Key], change: Callable[[Mapping[Key, bytes]], Mapping[Key, bytes]]
    ) -> dict[Key, bytes]:
        """One atomic step for all keys; whoever subscribed to one of them is told of it once (ruling X5)."""
        now = self._clock.now()
        lifetime = self._environment.config_lifetime if store.is_config else self._environment.state_lifetime
        ends_at = self._environment.ends(now, lifetime)
        written = await self._documents.update(keys, change, now=now, expires_at=ends_at)
        if store.has_feed:
            for key, text in written.items():
                await self._publisher.try_publish(key, *update_of(store, text))
        return written

    def topic(self, store: Store, caller: Caller, channel: str | None) -> Key:
        """What subscribers of a store follow: its key."""
        return self._key(store, caller, channel)

    def _key(self, store: Store, caller: Caller, channel: str | None, viewer: str = "") -> Key:
        return key_of(store, caller, channel, viewer=viewer, apart=self._apart)


class JsonStores:
    """Small objects under developers' ids (ruling S5)."""

    def __init__(self, documents: Documents, clock: Clock, id_quota: IdQuota) -> None:
        self._documents = documents
        self._clock = clock
        self._id_quota = id_quota

    async def read(self, caller: Caller, channel: str | None, store_id: str) -> bytes:
        """The object; raises `NotFound` when there is none."""
        key = json_store_key(caller, channel, store_id)
        found = await self._documents.read([key], now=self._clock.now())
        if key not in found:
            raise NotFound("Not Found", f"nothing is stored under {store_id}")
        return found[key]

    async def replace(self, caller: Caller, channel: str | None, store_id: str, document: Any) -> None:
        """Write the object; it lives 14 days."""
        key = json_store_key(caller, channel, store_id)
        text = checked_document(document, largest=JSON_STORE_LARGEST, name="json_store")
        now = self._clock.now()
        await self._id_quota.claim(key, JSON_STORE_LIFETIME)
        await self._documents.update([key], lambda _: {key: text}, now=now, expires_at=now + JSON_STORE_LIFETIME)


ALL_STATE = {
    "extension": EXTENSION_STATE,
    "channel": CHANNEL_STATE,
    "viewer": VIEWER_STATE,
    "extension_viewer": EXTENSION_VIEWER_STATE,
}
ALL_CONFIG = {"extension": EXTENSION_CONFIG, "channel": CHANNEL_CONFIG}


def _is_map(store: Store, caller: Caller, body: Any) -> bool:
    """Whether an admin's body patches the records of those whom it names."""
    return isinstance(body, dict) and caller.role is Role.ADMIN and is_map_of_patches(store, body)


def _pointer(name: str) -> str:
    """A JSON Pointer to a member."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _patched(store: Store, text: bytes, patch: Patch) -> bytes:
    return checked_document(patched(msgspec.json.decode(text), patch), name=store.name)

"""The directory of users: for each user who shared an id and wrote, the shared id and the opaque id (ruling A3).

It has two documents per user. The document under the shared id holds the user's latest opaque id; it is empty if all
tokens named the shared id only. The document under the opaque id holds the shared id. They live 90 days after the
user's last write with the shared id, as long as the codes that the user may hold.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec.structs import replace

from emulator.core.bounded_cache import BoundedCache
from emulator.core.callers import Caller, IdentifiedCaller, opaque_id_of
from emulator.core.clock import DAY, MINUTE, Clock
from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage.shapes import Documents, KeptDocuments, Texts

LIFETIME = 90 * DAY
"""How long documents live after the user's last write, in ms. They expire at the end of a day, so that a user's
documents are written once a day at most."""
_MAX_CACHED_USERS = 24_576
_RECORD_AGAIN_AFTER = MINUTE
_USERS_PER_READ = 250
"""Users that one engine operation looks up."""

_RecordedIds = BoundedCache[tuple[str, str], tuple[str, range]]
"""Client id and shared id → the opaque id that this process has recorded, and when it need not again, in Unix ms."""


class Directory:
    """Finds the ids of callers and users.

    A user may be given as shared id, as `U` and the shared id, or as opaque id.
    """

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._clock = clock
        self._recorded: _RecordedIds = BoundedCache(_MAX_CACHED_USERS)

    def forget(self) -> None:
        """Replace the cache, after a reset. A call that is still recording notices that, and records again."""
        self._recorded = BoundedCache(_MAX_CACHED_USERS)

    async def clock_moved(self) -> None:
        """Forget which ids are recorded, because they may have expired."""
        self.forget()

    async def identify(self, caller: Caller, *, writes: bool) -> IdentifiedCaller:
        """Return the caller with the opaque id under which votes and stores are kept.

        If the caller `writes`, also start to record the user's ids, and return what to await before the response, so
        that the ids and the request's own write share one commit. If awaiting raises `EngineError`, the user's next
        write records the ids. Raises `EngineError` if the directory cannot be read.
        """
        if caller.user_id is None or not (writes or caller.is_opaque_id_derived):
            return caller, None
        if not caller.is_opaque_id_derived:
            return caller, await self._record_ids(caller.client_id, caller.user_id, caller.opaque_id)
        # Never cached: another process may have recorded an opaque id since, and a vote must not miss it.
        key = _shared_key(caller.client_id, caller.user_id)
        if not writes:
            opaque_id = await self._documents.peek(key, now=self._clock.now())
            return (replace(caller, opaque_id=opaque_id.decode()) if opaque_id else caller), None
        recorded, ids = self._recorded, {key: b""}
        try:
            kept = await self._start_keeping(ids, replace=False)
        except EngineError as error:  # the request may store nothing, and then it need not fail
            opaque_id = await self._documents.peek(key, now=self._clock.now())
            recording = _raise_error(error) if opaque_id is None else None
        else:
            opaque_id = kept.found.get(key)
            recording = self._finish_recording(ids, kept, recorded, replace=False) if opaque_id is None else None
            if opaque_id:  # the other document lives as long
                recording = await self._record_ids(caller.client_id, caller.user_id, opaque_id.decode())
        return (replace(caller, opaque_id=opaque_id.decode()) if opaque_id else caller), recording

    async def opaque_ids(self, client_id: str, users: Sequence[str]) -> dict[str, str]:
        """Return the opaque id of each user, given in any spelling."""
        names = dict.fromkeys(name for user in users for name in (user, user.removeprefix("U")))
        found = await self._read_ids(_shared_key(client_id, name) for name in names)
        return {user: _opaque_id(user, found) for user in users}

    async def shared_ids(self, client_id: str, opaque_ids: Sequence[str]) -> dict[str, str]:
        """Return the shared ids of users, by opaque id; users who have not shared theirs are absent."""
        return await self._read_ids(_opaque_key(client_id, opaque_id) for opaque_id in opaque_ids)

    async def ids_of_caller(self, caller: Caller) -> set[str]:
        """Return all ids under which a list of users may contain the caller."""
        shared = caller.user_id
        if shared is None:
            found = await self.shared_ids(caller.client_id, [caller.opaque_id])
            shared = found.get(caller.opaque_id, "")
        names = {caller.opaque_id, opaque_id_of(caller.opaque_id)}
        return names | {shared, opaque_id_of(shared)} if shared else names

    async def aliases(self, client_id: str, users: Sequence[str]) -> list[tuple[str, ...]]:
        """Return all ids (shared and opaque) of each distinct user, the spelling from `users` first."""
        opaque_ids = await self.opaque_ids(client_id, users)
        shared_ids = await self.shared_ids(client_id, list(opaque_ids.values()))
        aliases: dict[str, tuple[str, ...]] = {}
        for user, opaque_id in opaque_ids.items():
            ids = [user, opaque_id]
            if shared := shared_ids.get(opaque_id):
                ids.append(shared)
            spelled = (name for each in ids for name in (each, each.removeprefix("U"), opaque_id_of(each)) if name)
            aliases.setdefault(opaque_id, tuple(dict.fromkeys(spelled)))
        return list(aliases.values())

    async def shared_ids_page(self, client_id: str, *, after: str, limit: int) -> list[str]:
        """Return up to `limit` shared ids in code point order, from the first one after `after`."""
        key = _shared_key(client_id, "")
        return await self._documents.users(key, after=after, limit=limit, now=self._clock.now())

    async def _record_ids(self, client_id: str, shared_id: str, opaque_id: str) -> Coroutine[Any, Any, None] | None:
        """Start to record a user's ids; return what to await, or `None` if this process has recorded them recently."""
        now = self._clock.now()
        known = self._recorded.get((client_id, shared_id))
        if known is not None and known[0] == opaque_id and now in known[1]:
            return None
        ids = {
            _shared_key(client_id, shared_id): opaque_id.encode(),
            _opaque_key(client_id, opaque_id): shared_id.encode(),
        }
        recorded = self._recorded
        try:
            kept = await self._start_keeping(ids, replace=True)
        except EngineError as error:
            return _raise_error(error)

        async def finish() -> None:
            await self._finish_recording(ids, kept, recorded, replace=True)
            same_end_until = _expiry(now) - LIFETIME + 1
            self._recorded[client_id, shared_id] = opaque_id, range(now, min(now + _RECORD_AGAIN_AFTER, same_end_until))

        return finish()

    async def _finish_recording(
        self, ids: Texts, kept: KeptDocuments, recorded: _RecordedIds, *, replace: bool
    ) -> None:
        """Wait until the ids are on disk, and write them again if a reset came after `keep`.

        The vote that they belong to may come after that reset. `recorded` is the cache at the time of `keep`.
        """
        if kept.saved is not None:
            await kept.saved
        while recorded is not self._recorded:
            recorded = self._recorded
            kept = await self._start_keeping(ids, replace=replace)
            if kept.saved is not None:
                await kept.saved

    def _start_keeping(self, ids: Texts, *, replace: bool) -> Coroutine[Any, Any, KeptDocuments]:
        now = self._clock.now()
        return self._documents.keep(ids, replace=replace, now=now, expires_at=_expiry(now))

    async def _read_ids(self, keys: Iterator[Key]) -> dict[str, str]:
        """Return the ids that these documents hold, by the ids that they are stored under."""
        found: dict[str, str] = {}
        while page := list(islice(keys, _USERS_PER_READ)):
            documents = await self._documents.read(page, now=self._clock.now())
            found |= {key.user: text.decode() for key, text in documents.items()}
        return found


def _expiry(now: int) -> int:
    return -(-(now + LIFETIME) // DAY) * DAY


async def _raise_error(error: EngineError) -> None:
    """Raise the error of a recording that could not begin."""
    raise error


def _opaque_id(user: str, shared: Mapping[str, str]) -> str:
    """Return the opaque id of a user. `shared` maps the shared ids in the directory to opaque ids, empty if unknown."""
    for name in (user, user.removeprefix("U")):
        if name in shared:
            return shared[name] or opaque_id_of(name)
    return user if user.startswith(("U", "A")) else opaque_id_of(user)


def _shared_key(client_id: str, shared_id: str) -> Key:
    return Key("user", client_id, "", "", shared_id)


def _opaque_key(client_id: str, opaque_id: str) -> Key:
    return Key("opaque", client_id, "", "", opaque_id)

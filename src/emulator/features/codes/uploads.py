"""A `PUT codes` in progress: the codes read so far, and their problems."""

from __future__ import annotations

import asyncio
from typing import Any

from emulator.callers import Caller
from emulator.clock import Clock
from emulator.contract.limits import MAX_SETS
from emulator.engines.pools import Pools
from emulator.engines.shapes import Key
from emulator.features.codes.duplicates import Duplicates
from emulator.features.codes.rules import (
    LIFETIME,
    MAX_ERRORS,
    NamesBody,
    ValidationErrors,
    check_codes,
    checked_indices,
    list_key,
)
from emulator.ids import NewId


class Upload:
    """The codes of one PUT, in lists that no set uses until `CodeSets.define`. `close` must be awaited."""

    def __init__(self, caller: Caller, pools: Pools, clock: Clock, new_id: NewId) -> None:
        self.caller = caller
        self._pools = pools
        self._clock = clock
        self._new_id = new_id
        self._errors = ValidationErrors()
        self._duplicates = Duplicates()
        self._lists: dict[int, Key] = {}
        self.sizes: dict[Key, int] = {}
        """The number of codes of each list."""
        self._abandoned: list[Key] = []

    async def add(self, array: int, at: int, codes: list[Any]) -> None:
        """Add the next codes of an array of the body: `codes[array][at:]`.

        Errors are collected for `list_by_index`; the 20th is raised at once.
        """
        check_codes(self._errors, array, at, codes)
        if not self._errors and array < MAX_SETS:
            self._duplicates.add((array, at), codes)
            now = self._clock.now()
            key = self._list_of(array)
            await self._pools.fill(key, codes, now=now, expires_at=now + LIFETIME)
            self.sizes[key] = self.sizes.get(key, 0) + len(codes)

    def restart(self) -> None:
        """Discard the codes read so far, because the body repeats the member `codes` or is refused."""
        self._duplicates.close()
        self._errors, self._duplicates = ValidationErrors(), Duplicates()
        self._abandoned += self._lists.values()
        self._lists.clear()
        self.sizes.clear()

    async def list_by_index(self, body: NamesBody, arrays: int) -> dict[int, Key]:
        """Return the key of the uploaded list of each set, by its index.

        Raises `BadRequest` with the first 20 errors of the whole body.
        """
        indices = checked_indices(self._errors, body, arrays)
        self._errors.check()
        for pair in self._duplicates.find(MAX_ERRORS):
            if pair is None:
                await asyncio.sleep(0)
            else:
                (one, first), (other, second) = pair
                self._errors.add(f"codes[{one}][{first}] and codes[{other}][{second}]: are the same code")
        self._errors.check()
        return {index: self._list_of(array) for array, index in enumerate(indices)}

    async def close(self) -> None:
        """Delete the temporary files, and the lists that were filled before a restart of the upload."""
        self._duplicates.close()
        if self._abandoned:
            await self._pools.discard(self._abandoned, now=self._clock.now())

    def _list_of(self, array: int) -> Key:
        if array not in self._lists:
            self._lists[array] = list_key(self.caller.client_id, self._new_id())
        return self._lists[array]

"""The data of namespaces on the medium of a process."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from emulator.contract.names import NAME
from emulator.control.operation import RESET
from emulator.core.config.settings import Settings
from emulator.core.keys import Key
from emulator.core.observability.request_context import DEFAULT_NAMESPACE
from emulator.namespaces.front import Front
from emulator.storage.engine import Medium
from emulator.storage.opening import file_of


@dataclass(frozen=True)
class Storage:
    """Opens, lists and deletes namespaces. All methods raise `EngineError`."""

    settings: Settings
    medium: Medium
    open: Callable[[str], AbstractAsyncContextManager[Front]]
    """Opens the service of a namespace."""

    async def names(self) -> Sequence[str]:
        """Return the stored namespaces of this environment in order, open or not, if the data is a file.

        Other storage is slow to search: then none.
        """
        if file_of(self.settings.data) is None:
            return []
        start = stored_name(self.settings, "")
        found = [name.removeprefix(start) for name in await self.medium.namespaces() if name.startswith(start)]
        return [name for name in found if re.fullmatch(NAME, name)]  # others are copies of a reset that can be undone

    async def size(self, namespace: str) -> int:
        """Return the number of records in a namespace that is not open, without the signing key."""
        return max(0, await self.medium.size(stored_name(self.settings, namespace)) - 1)

    async def remove(self, namespace: str) -> None:
        """Delete the data of a namespace that is not open in this process; absent data is fine.

        A process in which it is open finds it empty.
        """
        async with self.medium.engine(stored_name(self.settings, namespace)) as engine:
            if engine.survives_restart:
                await engine.reset()
                await engine.relay.publish(Key(RESET, "", ""), b"")
                await engine.drop()


def stored_name(settings: Settings, namespace: str) -> str:
    """Return the name of a namespace on the medium."""
    environment = settings.environment.name
    return environment if namespace == DEFAULT_NAMESPACE else f"{environment}/{namespace}"

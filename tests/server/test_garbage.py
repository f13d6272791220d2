"""Garbage collection of open and dropped namespaces."""

from __future__ import annotations

import gc
import weakref

from emulator.config.settings import Settings
from emulator.opening import open_app
from emulator.process.run import LongLived


async def test_many_open_namespaces_are_exempt_from_collections_and_freed_by_their_drop():
    gc.collect()
    gc.disable()
    try:
        async with open_app(Settings()) as (_, service):
            assert service.namespaces is not None
            LongLived(service.namespaces)
            exempt, dropped = gc.get_freeze_count(), []
            for number in range(210):
                front = await service.namespaces.front(f"n{number}")
                dropped.append(weakref.ref(front))
                del front
            assert gc.get_freeze_count() > exempt + 210 * 100

            for number in range(210):
                await service.namespaces.drop(f"n{number}")

            assert [] == [each for each in dropped if each() is not None]
    finally:
        gc.enable()
        gc.unfreeze()

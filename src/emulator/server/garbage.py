"""Garbage collection of the served process: less often, and not of services, which live long."""

from __future__ import annotations

import gc
from typing import Final

from emulator.namespaces.registry import Registry

_FEW: Final = 50
"""Dropped namespaces that wait for a collection, at least."""


def collect_garbage_less_often() -> None:
    """Collect garbage less often than after each 700 new objects: a request of 64 KiB may create 20,000."""
    gc.set_threshold(10_000, 20, 20)


class LongLived:
    """Exempts open services from collections: 2,000 namespaces have a million objects, which take 400 ms to search.

    Dropped ones are collected together, when they are a quarter as many as the open ones.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._dropped = 0
        gc.freeze()
        registry.on_opened, registry.on_dropped = gc.freeze, self._note_drop

    def _note_drop(self) -> None:
        self._dropped += 1
        if self._dropped >= max(_FEW, len(self._registry) // 4):
            self._dropped = 0
            gc.unfreeze()
            gc.collect()
            gc.freeze()

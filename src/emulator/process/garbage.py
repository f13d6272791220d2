"""Garbage collection of the served process: less often, and not of services, which are long-lived."""

from __future__ import annotations

import gc
from typing import Final

from emulator.namespaces.registry import Registry

_MANY: Final = 200
"""Namespaces whose objects take about 20 ms to search."""


def collect_garbage_less_often() -> None:
    """Collect garbage less often than after each 700 new objects: a request of 64 KiB may create 20,000."""
    gc.set_threshold(10_000, 20, 20)


class LongLived:
    """Exempts many open services from collections: searching the million objects of 2,000 namespaces takes 400 ms.

    A dropped one needs no collection: it has no circles of references, so it is freed when its last user ends.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._exempt = 0
        """How many were open at the latest exemption, or fewer: some have been dropped since."""
        gc.freeze()  # nearly all objects of the start exist until the process ends
        registry.on_opened = self._note_opened

    def _note_opened(self) -> None:
        count = len(self._registry)
        self._exempt = min(self._exempt, count)
        if count >= self._exempt + _MANY:
            gc.collect()  # garbage that exists now would never be freed
            gc.freeze()
            self._exempt = count

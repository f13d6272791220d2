"""Garbage collection of the served process: less often, and not of services, which live long."""

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

    Dropped ones are collected together, when they are as many as the open ones: a rare pause, but a long one.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._is_exempting = False
        self._dropped = 0
        gc.freeze()  # nearly all objects of the start live as long as the process
        registry.on_opened, registry.on_dropped = self._note_opened, self._note_drop

    def _note_opened(self) -> None:
        if len(self._registry) >= _MANY:
            self._is_exempting = True
            gc.freeze()

    def _note_drop(self) -> None:
        self._dropped += self._is_exempting
        if self._dropped >= max(_MANY, len(self._registry)):
            self._dropped = 0
            gc.unfreeze()
            gc.collect()
            gc.freeze()

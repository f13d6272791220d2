"""Checks that a service leaves nothing behind: no connections, subscriptions or tasks, and no warnings."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from support.service import LiveServer, live_server

LOGGERS = ("emulator", "asyncio", "uvicorn")
Resources = tuple[int, int, int]


class _Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in LOGGERS:
            self.lines.append(self.format(record))


def resources(live: LiveServer) -> Resources:
    """The numbers of connections, topics and tasks, once pending work is done."""

    async def count() -> Resources:
        await live.service.poll_updates.clock_moved()
        await live.service.engine.check()
        return len(live.service.gateway.admission), len(live.service.hub._subscribers), len(asyncio.all_tasks())

    return live.run(count())


def assert_released(live: LiveServer, before: Resources) -> None:
    """Fail if the resources stay above those before; a busy service may still have to see connections close."""
    until = time.monotonic() + 30
    while True:
        after = resources(live)
        if all(now <= then for now, then in zip(after, before, strict=True)):
            return
        assert time.monotonic() < until, f"{before} connections, topics and tasks became {after}"


@contextmanager
def leak_checked_server() -> Iterator[LiveServer]:
    """A service that must end with the resources it began with, and without a warning in the log."""
    warnings = _Warnings()
    logging.getLogger().addHandler(warnings)
    try:
        with live_server() as live:
            before = resources(live)
            yield live
            assert_released(live, before)
    finally:
        logging.getLogger().removeHandler(warnings)
    assert [] == warnings.lines

"""Opens the application for a port: a service for the plain paths, and one for each namespace in use.

A snapshot is loaded before the first request, and saved after the last.
"""

from __future__ import annotations

import asyncio
import logging
import os
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from emulator.app import Service, SharedParts
from emulator.control.gate import ControlGate
from emulator.core.clock import Clock
from emulator.core.errors import BadRequest, ConfigurationError, EngineError, ExportFailed
from emulator.core.extensions import Extensions
from emulator.core.observability.request_context import DEFAULT_NAMESPACE
from emulator.core.settings import DEFAULT_NAMESPACE_IDLE, Settings
from emulator.feature_list import FEATURES, Features
from emulator.namespaces.registry import Registry, stored_name
from emulator.namespaces.routing import NamespaceRouter
from emulator.namespaces.service_app import ServiceApp
from emulator.storage.engine import Medium
from emulator.storage.opening import open_medium

_SWEEP_INTERVAL = 60.0
_log = logging.getLogger("emulator")


@asynccontextmanager
async def open_app(
    settings: Settings, clock: Clock | None = None, *, features: Features = FEATURES
) -> AsyncIterator[tuple[ServiceApp | NamespaceRouter, Service]]:
    """Open the application for a port, and the service of its plain paths. `clock` is that service's clock."""
    is_closed = settings.registered_only or settings.environment.is_strict
    extensions = Extensions(settings.extensions, admits_any=not is_closed)
    shared = SharedParts(settings, extensions, features)
    medium = open_medium(settings.data)
    opened = partial(open_service, shared, medium)
    async with medium, opened(clock=clock) as service:
        if not settings.environment.has_control:
            yield service, service
            return
        gate = ControlGate(settings.control_hosts, settings.control_token)
        max_idle = settings.namespace_idle
        if max_idle is None and service.publisher.is_single_node:
            max_idle = DEFAULT_NAMESPACE_IDLE
        shared.namespaces = Registry(service, opened, settings, medium, max_idle or None)
        try:
            yield NamespaceRouter(shared.namespaces, gate), service
        finally:
            await shared.namespaces.close()


@asynccontextmanager
async def open_service(
    shared: SharedParts, medium: Medium, namespace: str = DEFAULT_NAMESPACE, *, clock: Clock | None = None
) -> AsyncIterator[Service]:
    """Open a service with its engine, on a medium, and its background tasks; raises `EngineError`."""
    async with medium.engine(stored_name(shared.settings, namespace)) as engine:
        service = Service(shared, engine, clock or Clock(), name=namespace)
        await service.key.sync()
        running = (
            _sweep(service, is_first=namespace == DEFAULT_NAMESPACE),
            service.metrics.watch_storage(service.control.check),
            service.gateway.ping_connections(),
        )
        background = [asyncio.create_task(each) for each in running]
        try:
            yield service
        finally:
            for task in background:
                task.cancel()
            for error in await asyncio.gather(*background, return_exceptions=True):
                if isinstance(error, Exception):
                    _log.error("a background task failed", exc_info=error)
            await service.close()
            if service.is_dropped:
                with suppress(EngineError):  # the data was deleted before; a few rows may stay
                    await engine.drop()


async def _sweep(service: Service, *, is_first: bool) -> None:
    """Remove a service's expired records from time to time.

    The first service of a process also does this at once, because a kill may have left much to delete, and compares its
    clock with the storage server's.
    """
    wait = 0.0 if is_first else _SWEEP_INTERVAL
    while True:
        await asyncio.sleep(wait)
        wait = _SWEEP_INTERVAL
        try:
            if is_first:
                await service.control.compare_clocks()
            await service.control.sweep()
            service.metrics.note_storage(ok=True)
        except EngineError as error:
            service.metrics.note_storage(ok=False)
            _log.warning("housekeeping failed, retrying later: %s", error)
        except Exception:
            _log.exception("unexpected failure in housekeeping")


_CHUNK_BYTES = 256 * 1024

OpenFile = Callable[[Path], AbstractContextManager[BinaryIO]]


@dataclass(frozen=True)
class SnapshotFiles:
    """The files of `--import` and `--export-on-exit`."""

    source: Path | None
    target: Path | None
    opened: OpenFile
    """Opens a file to read; raises `OSError`."""
    written: OpenFile
    """Opens a file that replaces the one at its path at the end of the block; raises `OSError`."""

    def check(self, settings: Settings) -> None:
        """Raise `ConfigurationError` if these options cannot work, before anything starts."""
        if not settings.environment.has_control:
            option = "--export-on-exit" if self.source is None else "--import"
            raise ConfigurationError(f"{option}: snapshots do not work with --production")
        if self.source is not None and not self._starts_empty and not self.source.is_file():
            raise ConfigurationError(f"--import {self.source}: there is no such file")
        if self.target is not None:
            folder = self.target.resolve().parent
            is_writable = folder.is_dir() and os.access(folder, os.W_OK)
            if self.target.is_dir() or not is_writable:
                raise ConfigurationError(f"--export-on-exit {self.target}: cannot write a file there")

    async def load(self, service: Service) -> None:
        """Load the file into the service. Raises `ConfigurationError` with the line of the first mistake."""
        if self.source is None:
            return
        if self._starts_empty:
            _log.info("%s does not exist yet; starting without data", self.source)
            return
        try:
            loaded = await service.snapshots.load(self._chunks(self.source))
        except BadRequest as error:
            raise ConfigurationError(f"--import {self.source}: {'; '.join(error.details)}") from None
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or "the compressed file is damaged or incomplete"
            raise ConfigurationError(f"--import {self.source}: {reason}") from None
        _log.info("imported %s records from %s", f"{sum(loaded.counts.values()):,}", self.source)

    async def save(self, service: Service) -> None:
        """Save the service's data to the file. If saving fails, the file is unchanged. Raises `ExportFailed`."""
        if self.target is None:
            return
        try:
            with self.written(self.target) as file:
                async for chunk in service.snapshots.save(keys=False):
                    file.write(chunk)
        except (OSError, EngineError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ExportFailed(f"--export-on-exit {self.target}: {reason}; the file was not changed") from None
        _log.info("exported all data to %s", self.target)

    @property
    def _starts_empty(self) -> bool:
        """Whether the file to import does not exist yet because the first run will export it."""
        if self.source is None or self.target is None or self.source.exists():
            return False
        return self.source.resolve() == self.target.resolve()

    async def _chunks(self, path: Path) -> AsyncIterator[bytes]:
        with self.opened(path) as file:
            while piece := file.read(_CHUNK_BYTES):
                yield piece

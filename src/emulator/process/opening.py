"""Opens the application for a port: a service for the plain paths, and one for each namespace in use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

from emulator.app import Service, Shared
from emulator.control.gate import ControlGate
from emulator.core.clock import Clock
from emulator.core.config.extensions import Extensions
from emulator.core.config.settings import NAMESPACE_IDLE, Settings
from emulator.core.errors import EngineError
from emulator.core.observability.request_context import DEFAULT_NAMESPACE
from emulator.feature_list import FEATURES, Features
from emulator.namespaces.front import Front
from emulator.namespaces.registry import Registry, stored_name
from emulator.namespaces.routing import NamespaceRouter
from emulator.storage.engine import Medium
from emulator.storage.opening import open_medium

_SWEEP_INTERVAL = 60.0
_log = logging.getLogger("emulator")


@asynccontextmanager
async def open_app(
    settings: Settings, clock: Clock | None = None, *, features: Features = FEATURES
) -> AsyncIterator[tuple[Front | NamespaceRouter, Service]]:
    """Open the application for a port, and the service of its plain paths. `clock` is that service's clock."""
    is_closed = settings.registered_only or settings.environment.is_strict
    extensions = Extensions(settings.extensions, admits_any=not is_closed)
    shared = Shared(settings, extensions, features)
    medium = open_medium(settings.data)
    opened = partial(open_service, shared, medium)
    async with medium, opened(clock=clock) as service:
        if not settings.environment.has_control:
            yield service, service
            return
        gate = ControlGate(settings.control_hosts, settings.control_token)
        max_idle = settings.namespace_idle
        if max_idle is None and service.publisher.is_single_node:
            max_idle = NAMESPACE_IDLE
        shared.namespaces = Registry(service, opened, settings, medium, max_idle or None)
        try:
            yield NamespaceRouter(shared.namespaces, gate), service
        finally:
            await shared.namespaces.close()


@asynccontextmanager
async def open_service(
    shared: Shared, medium: Medium, namespace: str = DEFAULT_NAMESPACE, *, clock: Clock | None = None
) -> AsyncIterator[Service]:
    """Open a service with its engine, on a medium, and its background tasks; raises `EngineError`."""
    async with medium.engine(stored_name(shared.settings, namespace)) as engine:
        service = Service(shared, engine, clock or Clock(), name=namespace)
        await service.key.sync()
        running = (
            _sweep(service, is_first=namespace == DEFAULT_NAMESPACE),
            service.metrics.watch_storage(service.control.check),
            service.gateway.keep_alive(),
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
            service.metrics.storage(ok=True)
        except EngineError as error:
            service.metrics.storage(ok=False)
            _log.warning("housekeeping failed, retrying later: %s", error)
        except Exception:
            _log.exception("unexpected failure of housekeeping")

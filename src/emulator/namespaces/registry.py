"""The namespaces of a process: opens the service of each on first use, counts its use, copies it, and drops it.

They are isolated because each has a `Service` of its own, with its own clock and its own namespace of the engine
(`opening.open_service`).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from msgspec import Struct

from emulator.contract.names import NAME_PATTERN
from emulator.control.operation import RESET
from emulator.core.clock import monotonic
from emulator.core.errors import Conflict, EngineError, NotFound, stopping
from emulator.core.hints import nearest, placeholder_hint
from emulator.core.ids import token_id
from emulator.core.keys import Key
from emulator.core.observability.audit import audit
from emulator.core.observability.request_context import DEFAULT_NAMESPACE as DEFAULT
from emulator.core.observability.request_context import give_hint, in_context, in_namespace
from emulator.core.settings import Settings
from emulator.namespaces import refusals
from emulator.namespaces.service_app import ServiceApp
from emulator.storage.engine import Medium

OpenService = Callable[[str], AbstractAsyncContextManager[ServiceApp]]
"""Opens the service of a namespace."""
_NAMESPACES_PER_STEP = 25
"""Namespaces that a listing counts before other requests run."""
_MAX_COMPARED = 200
"""Namespaces, those used last, among which a similar name is looked for."""
_CREATED, _DROPPED = "created", "dropped"
"""What changes a namespace."""
_log = logging.getLogger("emulator")


@dataclass
class _Tenant:
    """A namespace that is open, opening or closing.

    Times are seconds of `monotonic`, which moving a clock does not change.
    """

    opened_at: float = field(default_factory=monotonic)
    used_at: float = field(default_factory=monotonic)
    requests: int = 0
    """The requests that are running."""
    copies: int = 0
    """The copies of it that are being made."""
    change: str = ""
    """`_CREATED` while it becomes a copy, `_DROPPED` while it is dropped, else empty."""
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while it opens, becomes a copy, or is dropped: requests wait for that."""
    service: ServiceApp | None = None

    @property
    def is_busy(self) -> bool:
        return bool(self.requests or self.copies or self.change or (self.service and self.service.sockets))


class NamespaceDetails(Struct):
    """A namespace in use."""

    name: str
    records: int
    """The number of documents, polls, buffers, lists and sets of codes in it."""
    age: int
    """Seconds since its first use."""
    idle: int
    """Seconds since its last use."""
    sockets: int


class NamespaceList(Struct):
    """The namespaces in use, by name; `default` is absent."""

    namespaces: list[str]
    details: list[NamespaceDetails]


class Registry:
    """The namespaces in use. All but `default` are created on first use."""

    def __init__(
        self, default: ServiceApp, open_service: OpenService, settings: Settings, medium: Medium, max_idle: float | None
    ) -> None:
        """`max_idle` is in seconds: a namespace that no request and no socket uses for so long is dropped.

        A task of the running event loop drops them until `close`.
        """
        self.default = default
        self._open_service = open_service
        self._settings = settings
        self._medium = medium
        self.max_idle = max_idle
        self._watching = asyncio.create_task(self._drop_idle_regularly(max_idle)) if max_idle is not None else None
        self._tenants = {DEFAULT: _Tenant(service=default)}
        """Those in use; the default one always is."""
        self._is_closed = False
        self._started_at = monotonic()
        """Since when namespaces that were never open in this process are idle."""

    async def recent_names(self, most: int | None = None) -> list[str]:
        """Return the names of the namespaces without `default`, in order: all, or the most recently used."""
        used = await self._last_uses()
        latest_first = sorted(used, key=lambda name: -used[name])
        return sorted(latest_first[:most])

    async def _last_uses(self) -> dict[str, float]:
        """Return when each namespace without `default` was used last, open or not."""
        stored = await self._stored_names()
        used = {name: tenant.used_at for name, tenant in self._tenants.items() if name != DEFAULT}
        for name in stored:
            used.setdefault(name, self._started_at)
        return used

    async def _stored_names(self) -> Sequence[str]:
        """Return the stored namespaces of this environment in order, open or not, if the data is a file.

        Other storage is slow to search: then none.
        """
        if self._medium.path is None:
            return []
        start = stored_name(self._settings, "")
        stored = await self._medium.namespaces()
        found = [name.removeprefix(start) for name in stored if name.startswith(start)]
        # Others are copies of a reset that can be undone.
        return [name for name in found if re.fullmatch(NAME_PATTERN, name)]

    async def exists(self, name: str) -> bool:
        """Return whether a namespace is open, or storage has it."""
        return name in self._tenants or name in await self._stored_names()

    async def hint_at_similar_name(self, name: str) -> None:
        """Give the current request a hint if its namespace is new, and another has a similar name."""
        used = await self.recent_names(_MAX_COMPARED)
        if name not in used:
            near = nearest(name, used)
            give_hint(
                placeholder_hint("namespace", name) or (near and f"{name} is a new namespace; did you mean {near}?")
            )

    async def list_details(self, most: int | None = None) -> NamespaceList:
        """List the namespaces without `default`: all, or the most recently used. This opens no namespace."""
        details = []
        for number, name in enumerate(await self.recent_names(most)):
            if number % _NAMESPACES_PER_STEP == _NAMESPACES_PER_STEP - 1:
                await asyncio.sleep(0)  # SQLite returns without a pause, and each namespace takes a tenth of a ms
            details.append(await self._details(name))
        return NamespaceList([each.name for each in details], details)

    async def _details(self, name: str) -> NamespaceDetails:
        tenant, now = self._tenants.get(name), monotonic()
        if tenant is None or tenant.service is None:
            since = int(now - self._started_at if tenant is None else now - tenant.opened_at)
            size = await self._medium.size(stored_name(self._settings, name))
            return NamespaceDetails(name, max(0, size - 1), since, since, 0)  # without the signing key
        service = tenant.service
        idle = 0 if tenant.is_busy else int(now - tenant.used_at)
        return NamespaceDetails(name, await service.control.size(), int(now - tenant.opened_at), idle, service.sockets)

    def find_open(self, name: str) -> ServiceApp | None:
        """Return the service of a namespace that is open."""
        return tenant.service if (tenant := self._tenants.get(name)) else None

    async def open(self, name: str, *, creates: bool = True) -> ServiceApp:
        """Return the service of a namespace, opened on first use.

        Raises `TooManyRequests` beyond the limit, and unless it `creates`, `NotFound` for a namespace that is not in
        use.
        """
        while True:
            if not creates and not await self.exists(name):
                raise refusals.not_created(name=name)
            tenant = self._tenant(name)
            tenant.used_at = monotonic()
            async with tenant.changing:
                if self._tenants.get(name) is tenant:  # otherwise it was dropped in between
                    return await self._open_tenant(name, tenant)

    def _tenant(self, name: str) -> _Tenant:
        """Return the entry of a namespace, created if the namespace is not in use."""
        if self._is_closed:
            raise stopping()
        tenant = self._tenants.get(name)
        if tenant is None:
            limit = self._settings.limits.namespaces
            if len(self._tenants) > limit:  # the default one does not count
                raise refusals.too_many(limit=limit)
            tenant = self._tenants[name] = _Tenant()
        return tenant

    async def _open_tenant(self, name: str, tenant: _Tenant) -> ServiceApp:
        """Open a namespace unless it is open. The caller holds `changing`."""
        if tenant.service is None:
            try:
                with in_context(None), in_namespace(name):  # background tasks do not belong to the first request
                    tenant.service = await tenant.stack.enter_async_context(self._open_service(name))
            except BaseException:
                self._tenants.pop(name, None)
                raise
        return tenant.service

    @contextmanager
    def in_use(self, name: str) -> Iterator[None]:
        """Count the block as use of a namespace, so that it is not dropped as idle."""
        tenant = self._tenants[name]
        tenant.requests += 1
        try:
            yield
        finally:
            tenant.requests -= 1
            tenant.used_at = monotonic()

    async def create(self, name: str = "", source: str = "") -> str:
        """Create a namespace with this name, or a free one, and return its name.

        With a source, it begins with the data and the clock of that namespace. Raises `Conflict` if it is in use and
        not empty, or if it or the source is being copied or dropped, and `NotFound` for a source that is not in use.
        """
        name = checked_namespace(name) if name else f"ns-{token_id()[:12].lower()}"
        with in_namespace(name):
            if source:
                await self._fork(checked_namespace(source), name)
            else:
                _check_empty(name, await (await self.open(name)).control.size())
            audit("namespace created", named=name, source=source)
        return name

    async def _fork(self, source: str, name: str) -> None:
        if source == name:
            raise refusals.copy_of_itself(name=name)
        if not await self.exists(source):
            raise refusals.no_source(name=source)
        origin = self._tenant(source)
        if origin.change == _DROPPED:
            raise refusals.being_changed(name=source, change=_DROPPED)
        origin.copies += 1  # from here on, it is not dropped
        try:
            await self._copy_into(name, await self.open(source, creates=False))
        except NotFound:  # it was itself a copy, which has failed meanwhile
            raise refusals.no_source(name=source) from None
        finally:
            origin.copies -= 1
            origin.used_at = monotonic()

    async def _copy_into(self, name: str, source: ServiceApp) -> None:
        """Copy another namespace into this new or empty one. If that fails, a new namespace is dropped."""
        target = self._tenant(name)
        if target.change:
            raise refusals.being_changed(name=name, change=target.change)
        target.change = _CREATED  # from here on, no other call copies to it or drops it
        try:
            async with target.changing:
                is_new = target.service is None and name not in await self._stored_names()
                service = await self._open_tenant(name, target)
                try:
                    _check_empty(name, await service.control.size())
                    await service.copy(source)
                except BaseException:
                    if is_new:
                        await self._delete_and_close(name, target)
                    raise
        finally:
            target.change = ""
            if target.service is None and self._tenants.get(name) is target:  # storage failed before it was opened
                self._tenants.pop(name)

    async def drop(self, name: str) -> None:
        """Delete a namespace with its data, clock and connections.

        The next use creates a new one. Raises `Conflict` while the namespace is being copied, or is being created as a
        copy.
        """
        with in_namespace(checked_namespace(name)):
            await self._drop(name)
            audit("namespace dropped", named=name)

    async def _drop(self, name: str) -> None:
        # Other users of the name wait, because the entry exists.
        tenant = self._tenants.setdefault(name, _Tenant())
        if tenant.copies or tenant.change == _CREATED:
            raise refusals.being_changed(name=name, change="copied" if tenant.copies else _CREATED)
        if name == DEFAULT:
            self.default.end_held()
            await self.default.reset()
            return
        tenant.change = _DROPPED
        try:
            async with tenant.changing:
                if self._tenants.get(name) is tenant:  # otherwise another call has dropped it
                    await self._delete_and_close(name, tenant)
        finally:
            tenant.change = ""

    async def _delete_and_close(self, name: str, tenant: _Tenant) -> None:
        """Delete the data of a namespace, and close it if it is open. The caller holds `changing`."""
        if tenant.service is None:
            ending: Awaitable[object] = self._delete_stored(name)
        else:
            tenant.service.end_held()
            await tenant.service.reset()
            tenant.service.is_dropped = True
            tenant.service = None
            ending = tenant.stack.aclose()
        try:
            await ending
        finally:
            self._tenants.pop(name)

    async def _delete_stored(self, name: str) -> None:
        """Delete the data of a namespace that is not open here. A process in which it is open finds it empty."""
        async with self._medium.engine(stored_name(self._settings, name)) as engine:
            await engine.reset()
            await engine.relay.publish(Key(RESET, "", ""), b"")
            await engine.drop()

    async def _drop_idle_regularly(self, max_idle: float) -> None:
        while True:
            await asyncio.sleep(max(0.05, min(60.0, max_idle / 4)))
            await self.drop_idle(max_idle)

    async def drop_idle(self, max_idle: float) -> None:
        """Drop the namespaces without requests and sockets whose last use is `max_idle` seconds ago.

        A namespace only in storage counts as last used before this process started.
        """
        for each in self._tenants.values():
            if each.is_busy:  # a socket may be open for days, and be closed for a second
                each.used_at = monotonic()
        try:
            used = await self._last_uses()
        except EngineError as error:
            _log.warning("cannot look for idle namespaces, retrying later: %s", error)
            return
        for name in used:
            tenant = self._tenants.get(name)
            if tenant is not None and (tenant.service is None or tenant.is_busy):
                continue  # it opens, closes or is used
            seconds = monotonic() - (tenant.used_at if tenant else self._started_at)
            if seconds >= max_idle:
                await self._try_to_drop_idle(name, seconds)

    async def _try_to_drop_idle(self, name: str, seconds: float) -> None:
        with in_namespace(name):
            try:
                await self._drop(name)
                _log.info("dropped the namespace %s after %.0f s without use", name, seconds)
            except EngineError as error:
                _log.warning("the idle namespace %s was not dropped, retrying later: %s", name, error)
            except Conflict:
                return  # it came into use in between
            except Exception:
                _log.exception("unexpected failure while dropping the idle namespace %s", name)

    @property
    def open_services(self) -> list[ServiceApp]:
        """The services of all namespaces that are open."""
        return [tenant.service for tenant in self._tenants.values() if tenant.service is not None]

    async def close(self) -> None:
        """Close the services of all namespaces but `default`, including services that are still opening."""
        self._is_closed = True
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        for tenant in list(self._tenants.values()):
            async with tenant.changing:
                tenant.service = None
                await tenant.stack.aclose()
        self._tenants.clear()


def checked_namespace(name: str) -> str:
    """Return a valid name of a namespace. Raises `NotFound` for an empty one, and `BadRequest` for an invalid one."""
    if not name:
        raise refusals.no_name()
    if not re.fullmatch(NAME_PATTERN, name):
        raise refusals.invalid_name(name=name)
    return name


def _check_empty(name: str, size: int) -> None:
    if size:
        raise refusals.has_data(name=name)


def stored_name(settings: Settings, namespace: str) -> str:
    """Return the name of a namespace on the medium."""
    environment = settings.environment.name
    return environment if namespace == DEFAULT else f"{environment}/{namespace}"

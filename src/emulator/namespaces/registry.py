"""The namespaces of a process: opens the service of each on first use, counts its use, and drops it.

They are isolated because each has a `Service` of its own, with its own clock and its own namespace of the engine
(`opening.open_service`).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from emulator.clock import monotonic
from emulator.errors import BadRequest, Conflict, EngineError, NotFound, TooManyRequests
from emulator.ids import token_id
from emulator.observability.audit import audit
from emulator.observability.request_context import detached, namespace
from emulator.web.front import Front

DEFAULT: Final = "default"
"""The namespace of the plain paths."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_log = logging.getLogger("emulator")

Open = Callable[[str], AbstractAsyncContextManager[Front]]
"""Opens the service of a namespace."""


@dataclass
class _Tenant:
    """A namespace that is open or opening. Times are in seconds of `monotonic`, which no move of a clock changes."""

    opened_at: float
    used_at: float
    requests: int = 0
    """The requests that are running."""
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    front: Front | None = None


class Details(Struct):
    """A namespace in use."""

    name: str
    records: int
    """The documents, polls, buffers, lists and sets of codes that it holds."""
    age: int
    """Seconds since its first use."""
    idle: int
    """Seconds since its last use."""
    sockets: int


class Listing(Struct):
    """The namespaces in use, by name; `default` is absent."""

    namespaces: list[str]
    details: list[Details]


class Registry:
    """The namespaces in use. All but `default` are created on first use."""

    def __init__(self, default: Front, open_front: Open, max_open: int, max_idle: int | None = None) -> None:
        """`max_idle` is in seconds: a namespace that no request and no socket uses for so long is dropped."""
        self.default = default
        self._open = open_front
        self._max_open = max_open
        self._max_idle = max_idle
        self._watching: asyncio.Task[None] | None = None
        self._tenants: dict[str, _Tenant] = {}

    def __len__(self) -> int:
        """The number of namespaces in use, without `default`."""
        return len(self._tenants)

    def names(self, latest: int) -> list[str]:
        """Return the names of the namespaces that were used last, without `default`, in order."""
        return sorted(sorted(self._tenants, key=lambda name: -self._tenants[name].used_at)[:latest])

    async def listing(self, latest: int | None = None) -> Listing:
        """List the namespaces in use, without `default`: all, or those that were used last."""
        now = monotonic()
        chosen = sorted(self._tenants.items(), key=lambda each: -each[1].used_at)[:latest]
        details = [
            Details(name, await front.size(), int(now - tenant.opened_at), int(now - tenant.used_at), front.sockets)
            for name, tenant in sorted(chosen, key=lambda each: each[0])
            if (front := tenant.front) is not None
        ]
        return Listing([each.name for each in details], details)

    def find(self, name: str) -> Front | None:
        """Return the service of a namespace that is open."""
        tenant = self._tenants.get(name)
        return tenant.front if tenant is not None else None

    async def front(self, name: str) -> Front:
        """Return the service of a namespace, opened on first use; log lines name it from here on.

        Raises `BadRequest` for an invalid name, and `TooManyRequests` beyond the limit.
        """
        if checked(name) == DEFAULT:
            return self.default
        namespace.set(name)
        while True:
            tenant = self._tenants.get(name)
            if tenant is None:
                if len(self._tenants) >= self._max_open:
                    detail = f"the limit of {self._max_open} is reached; DELETE /_ns/<name> drops one"
                    raise TooManyRequests("Too many namespaces", detail)
                tenant = self._tenants[name] = _Tenant(monotonic(), monotonic())
            tenant.used_at = monotonic()
            async with tenant.opening:
                if self._tenants.get(name) is not tenant:  # it was dropped meanwhile
                    continue
                if tenant.front is None:
                    try:
                        with detached():  # background tasks do not belong to the first request
                            tenant.front = await tenant.stack.enter_async_context(self._open(name))
                    except BaseException:
                        self._tenants.pop(name, None)
                        raise
                return tenant.front

    @contextmanager
    def in_use(self, name: str) -> Iterator[None]:
        """Count a request of the block as use of a namespace, so that it is not idle."""
        tenant = self._tenants.get(name)
        if tenant is None:  # `default`
            yield
            return
        tenant.requests += 1
        try:
            yield
        finally:
            tenant.requests -= 1
            tenant.used_at = monotonic()

    async def create(self, name: str = "", source: str = "") -> str:
        """Create a namespace with this name, or a free one, and return its name.

        With a source, it begins with the data and the clock of that namespace. Raises `Conflict` if it is in use and
        not empty, and `NotFound` for a source that is not in use.
        """
        name = checked(name) if name else f"ns-{token_id()[:12].lower()}"
        if source and source != DEFAULT and checked(source) not in self._tenants:
            raise NotFound("No such namespace", f"from: there is no namespace {source} in use; GET /_ns lists them")
        is_new = name not in self._tenants and name != DEFAULT
        front = await self.front(name)
        if not is_new and await front.size():
            raise Conflict("Namespace in use", f"the namespace {name} has data; DELETE /_ns/{name} drops it")
        if source:
            try:
                await front.copy(await self.front(source))
            except BaseException:
                if is_new:
                    await self._drop(name)
                raise
        audit("namespace created", named=name, source=source)
        return name

    async def drop(self, name: str) -> None:
        """Delete a namespace with its data, clock and connections. The next use creates a new one."""
        await self._drop(checked(name))
        audit("namespace dropped", named=name)

    async def _drop(self, name: str) -> None:
        front = await self.front(name)
        tenant = self._tenants.get(name)
        if tenant is None:  # `default`
            front.end_held()
            await front.reset()
            return
        async with tenant.opening:  # the next use waits: closing also deletes what has this name in a file
            if self._tenants.get(name) is tenant:  # otherwise another call has dropped it
                front.end_held()
                await front.reset()
                front.drop_on_close()
                tenant.front = None
                try:
                    await tenant.stack.aclose()
                finally:
                    self._tenants.pop(name)

    def start(self) -> None:
        """Begin to drop idle namespaces, if they are to be dropped."""
        if self._max_idle is not None:
            self._watching = asyncio.create_task(self._watch(self._max_idle))

    async def _watch(self, max_idle: int) -> None:
        while True:
            await asyncio.sleep(max(0.05, min(60.0, max_idle / 4)))
            await self.drop_idle(max_idle)

    async def drop_idle(self, max_idle: float) -> None:
        """Drop the namespaces without requests and sockets whose last use is `max_idle` seconds ago."""
        for name, tenant in list(self._tenants.items()):
            front, idle = tenant.front, monotonic() - tenant.used_at
            if front is None or idle < max_idle or tenant.requests or front.sockets:
                continue
            try:
                await self._drop(name)
                _log.info("dropped the namespace %s after %.0f s without use", name, idle)
            except EngineError as error:
                _log.warning("the idle namespace %s was not dropped, retrying later: %s", name, error)

    def end_held(self) -> None:
        """End the requests that wait for something, in all namespaces: the service stops."""
        for front in (self.default, *(tenant.front for tenant in self._tenants.values())):
            if front is not None:
                front.end_held()

    async def close(self) -> None:
        """Close the services of all namespaces but `default`."""
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        tenants, self._tenants = self._tenants, {}
        for tenant in tenants.values():
            await tenant.stack.aclose()


def checked(name: str) -> str:
    """Return a valid name of a namespace. Raises `NotFound` for an empty one, and `BadRequest` for an invalid one."""
    if not name:
        raise NotFound("Not Found", "the path of a namespace is /_ns/<name>/…")
    if not _NAME.fullmatch(name):
        raise BadRequest("Invalid namespace", "namespace: must be 1 to 64 letters, digits, '-' and '_'")
    return name

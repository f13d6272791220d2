"""Runs a service in a thread, on a free loopback port, and makes clients for it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import jwt

from emulator.app import Service
from emulator.control.undo import Undo
from emulator.core.clock import Clock
from emulator.core.environment import PRODUCTION
from emulator.core.extensions import Extension
from emulator.core.settings import Settings
from emulator.feature_list import FEATURES, Features
from emulator.http.endpoint import Call
from emulator.http.hot_path import HOT_ENDPOINTS, HotPath
from emulator.http.mount import Application
from emulator.http.response import in_one_chunk
from emulator.process.http_server import Server, Tls, base_url, listen, uvicorn_config
from emulator.process.opening import open_app
from emulator.process.run import prepare_service
from support.constants import CHANNEL as CHANNEL
from support.constants import CLIENT_ID as CLIENT_ID
from support.constants import OTHER_ID as OTHER_ID
from support.constants import OTHER_SECRET as OTHER_SECRET
from support.constants import PREVIOUS_SECRET as PREVIOUS_SECRET
from support.constants import SECRET as SECRET
from support.shared_connections import SharedConnections

T = TypeVar("T")

OURS, THEIRS = Extension(CLIENT_ID, (SECRET,)), Extension(OTHER_ID, (OTHER_SECRET,))


def in_production(*extensions: Extension, **settings: Any) -> Settings:
    """Return settings of production with these registered extensions; without, with `OURS`."""
    return Settings(PRODUCTION, extensions={each.client_id: each for each in extensions or (OURS,)}, **settings)


class StillTicks:
    """The time that rates see. It stands still until a test lets it pass, so no rate depends on the machine's speed."""

    def __init__(self) -> None:
        self.now = 10**18

    def __call__(self) -> int:
        return self.now

    def let_pass(self, ms: int) -> None:
        self.now += ms * 1_000_000


def still_clock() -> Clock:
    """Return a clock for a service whose rates see no time pass before `LiveServer.let_pass`."""
    return Clock(ticks=StillTicks())


NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of plain HTTP. Making one for each client would cost 0.3 ms, and loading certificates 20 ms."""


class Client(httpx.Client):
    """An `httpx.Client` with a timeout. Most have the base URL `/v1/e/` and a credential."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(timeout=30, verify=NO_TLS, trust_env=False, **settings)


class RunningService:
    """A running service at a URL."""

    def __init__(self, url: str, connections: SharedConnections | None = None) -> None:
        """Without shared connections, each client has its own."""
        self.url = url
        self.connections = connections
        self._http = Client(base_url=url, transport=connections)

    def client(
        self,
        role: str | None,
        *,
        user: str | None = None,
        channel: str | None = None,
        opaque: str | None = None,
        client_id: str = CLIENT_ID,
        key: bytes = SECRET,
        **claims: Any,
    ) -> Client:
        """Return a client with a self-signed token. Claims that are `None` are omitted."""
        payload = {"role": role, "user_id": user, "channel_id": channel, "opaque_user_id": opaque, **claims}
        token = jwt.encode({name: value for name, value in payload.items() if value is not None}, key)
        return self.bearer(token, client_id=client_id)

    def bearer(self, token: str, *, client_id: str = CLIENT_ID) -> Client:
        """Return a client with this token."""
        headers = {"Authorization": f"{client_id} {token}"}
        return Client(base_url=f"{self.url}/v1/e/", headers=headers, transport=self.connections)

    def connect(self) -> socket.socket:
        """Return a new connection, for bytes that no client for HTTP would send."""
        address = urlsplit(self.url)
        return socket.create_connection((address.hostname or "", address.port or 0), timeout=60)

    def exchange(self, *pieces: bytes) -> bytes:
        """Send bytes on a new connection, and return all that comes until the service closes it."""
        received = b""
        with self.connect() as connection:
            with suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent
                for piece in pieces:
                    connection.sendall(piece)
            while more := connection.recv(65_536):
                received += more
        return received

    def reset(self) -> None:
        """Delete all data and reset the clock."""
        self._http.post("/_emulator/reset").raise_for_status()

    def now(self) -> int:
        """Return the service's time in Unix ms."""
        return int(self._http.get("/_emulator/clock").raise_for_status().json()["now"])

    def set(self, instant: int, *, freeze: bool = True) -> None:
        """Set the service's clock to `instant` (Unix ms) and freeze it."""
        self._http.post("/_emulator/clock", json={"set": instant, "freeze": freeze}).raise_for_status()

    def freeze(self) -> int:
        """Freeze the clock, and return its time in Unix ms."""
        return int(self._http.post("/_emulator/clock", json={"freeze": True}).raise_for_status().json()["now"])

    def advance(self, ms: int) -> list[dict[str, Any]]:
        """Advance the clock, and return what expired."""
        answer = self._http.post("/_emulator/clock", json={"advance": ms}).raise_for_status().json()
        return list(answer["expired"])


class LiveServer(RunningService):
    """A service in a thread of this process."""

    def __init__(self, url: str, service: Service, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(url, SharedConnections())
        self.service = service
        self._loop = loop

    def empty(self) -> None:
        """Delete all namespaces but the default one, and all data; reset the clock. HTTP would take 3 ms."""
        self.run(self._empty())

    async def _empty(self) -> None:
        namespaces = self.service.namespaces
        assert namespaces is not None, "production cannot be reset"
        for name in await namespaces.recent_names():
            await namespaces.drop(name)
        call = Call(None, {}, b"", "", "", in_one_chunk(b""))
        await Undo.reset.handler(self.service.undo, call)

    def let_pass(self, ms: int) -> None:
        """Let time pass for the rates of a service that has a `still_clock`."""
        self.service.clock.ticks.let_pass(ms)

    def close(self) -> None:
        """Close the connections of all clients."""
        assert self.connections is not None
        self.connections.close_all()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the service's event loop, and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)


@contextmanager
def live_server(
    settings: Settings | None = None,
    *,
    clock: Clock | None = None,
    hot: frozenset[tuple[str, str]] = HOT_ENDPOINTS,
    hot_path: type[HotPath] = HotPath,
    features: Features = FEATURES,
    wrap: Callable[[Application], Application] = lambda app: app,
    prepare: Callable[[str], Awaitable[None]] | None = None,
    tls: Tls | None = None,
) -> Iterator[LiveServer]:
    """Run a service in a thread until the context ends. A test may pass the service's clock to move it itself.

    `prepare` is called with the URL, before the service is ready.
    """
    (listener,) = listen("127.0.0.1", 0)
    url = base_url("127.0.0.1", listener, tls) + (settings.root_path if settings else "")
    ready = threading.Event()
    started: list[tuple[LiveServer, asyncio.AbstractEventLoop, Server]] = []

    async def serve() -> None:
        chosen = settings or Settings()
        async with open_app(chosen, clock, features=features) as (app, service):
            wrapped = wrap(app)

            async def start() -> None:
                if prepare is not None:
                    await prepare_service(service, lambda _: prepare(url))
                ready.set()

            hot_part = hot_path(service.dispatcher, hot) if wrapped is app else None
            config = uvicorn_config(wrapped, chosen, hot_part, tls=tls)
            server = Server(config, start, timeout=chosen.limits.request_timeout)
            loop = asyncio.get_running_loop()
            started.append((LiveServer(url, service, loop), loop, server))
            await server.serve([listener])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(timeout=60), "the service did not start"
    live, loop, server = started[0]
    try:
        yield live
    finally:
        live.close()
        if thread.is_alive():
            loop.call_soon_threadsafe(server.stop)
        thread.join(timeout=10)


def real_seconds() -> int:
    """Return the machine's time in Unix seconds, for the `exp` of tokens."""
    return int(time.time())

"""Connections of games or pages that count the broadcasts they receive.

Only this module and `api/websocket.py` import websockets.
"""

from __future__ import annotations

import asyncio
import base64
import json
import zlib
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from extcli import bounded_json, clock
from extcli.api import envelope
from extcli.api.http import is_loopback
from extcli.api.trust import certificates
from extcli.api.websocket import translate_errors
from extcli.errors import Refused, ServerError, Unreachable
from extcli.reading.shapes import SHAPE_ERRORS

_AT_ONCE = 50
"""Handshakes at the same time."""
_PAGE_QUERY = "/app/simulation?protocol=7&client=js&version=7.0.3&flash=false"
_PAGE_CHANNEL = "twitch.pubsub.{}.{}"
_OTHER_MESSAGE = (*SHAPE_ERRORS, RecursionError, zlib.error)
"""Errors while reading a message that is not one of the broadcasts."""


@dataclass(slots=True)
class Received:
    """The broadcasts that one connection has received."""

    times: array[int]
    """How often each came."""
    last: int = -1
    disordered: int = 0
    """How many came after a later one."""
    awaited: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when `awaited` broadcasts have come, or when the connection is closed."""
    closed: str = ""
    """Why the service closed the connection; empty while it is open."""
    at: array[float] = field(default_factory=lambda: array("d"))
    """When each came first, in seconds of `clock.elapsed`, in the order of `numbers`."""
    numbers: array[int] = field(default_factory=lambda: array("l"))


class Listeners:
    """A crowd of connections."""

    def __init__(self, url: str, ws_url: str, *, client_id: str, event: str, seed: int, broadcasts: int) -> None:
        self._url = url
        self._ws_url = ws_url
        self._client_id = client_id
        self._event = event
        self._seed = seed
        self._broadcasts = broadcasts
        self.received: list[Received] = []
        self._missing = 0
        self._complete = asyncio.Event()
        self._open: list[ClientConnection] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._connect: Callable[[], Awaitable[ClientConnection]]
        self._number_of: Callable[[str | bytes], int | None]

    async def open_games(self, count: int, token: str, timeout: float) -> None:
        """Open connections of games, authenticate and subscribe each. Raises `CliError`."""

        async def begin(socket: ClientConnection) -> None:
            await self._request(socket, 1, "authenticate", "", {"client_id": self._client_id, "jwt": token}, timeout)
            await self._request(socket, 2, "subscribe", "broadcast", {"topic_id": self._event}, timeout)

        await self._open_all(count, self._ws_url, begin, self._number_in_update, timeout)

    async def open_pages(self, count: int, channel: str, token: str, timeout: float) -> None:
        """Open connections of pages, and subscribe each with a token, which production needs. Raises `CliError`."""
        scheme, _, rest = self._url.partition("://")
        url = f"{'wss' if scheme == 'https' else 'ws'}://{rest}{_PAGE_QUERY}"
        topic = _PAGE_CHANNEL.format(self._client_id, channel)
        subscription = {"auth": f"{self._client_id} {token}", "channel": topic}

        async def begin(socket: ClientConnection) -> None:
            await asyncio.wait_for(socket.recv(), timeout)
            await socket.send(json.dumps({"event": "pusher:subscribe", "data": subscription}))
            _check_subscribed(await asyncio.wait_for(socket.recv(), timeout))

        await self._open_all(count, url, begin, self._number_in_page_event, timeout)

    async def wait(self, seconds: float) -> None:
        """Wait until every connection has received every broadcast or is closed, but no longer than `seconds`."""
        if self._missing > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._complete.wait(), seconds)
        # A frame that was sent twice arrives before the response to a ping.
        with suppress(TimeoutError, ConnectionClosed):
            await asyncio.wait_for(asyncio.gather(*(self._pong(socket) for socket in self._open)), seconds)

    def skip(self) -> None:
        """Stop waiting for one of the broadcasts, because the service refused it."""
        self._missing -= len(self.received)
        self._check_complete()

    async def reopen(self, index: int, sent: int, seconds: float) -> None:
        """Wait until a connection has received `sent` broadcasts, at most `seconds`; then close it and open it again.

        Raises `CliError`.
        """
        received = self.received[index]
        if len(received.numbers) < sent and not received.closed:
            received.awaited, received.arrived = sent, asyncio.Event()
            with suppress(TimeoutError):
                await asyncio.wait_for(received.arrived.wait(), seconds)
        if received.closed:
            return
        self._tasks[index].cancel()
        await self._open[index].close()
        self._open[index] = await self._connect()
        self._tasks[index] = asyncio.create_task(self._listen(self._open[index], received))

    async def close(self) -> None:
        """Close all connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for socket in self._open:
            socket.transport.abort()

    async def _open_all(
        self,
        count: int,
        url: str,
        begin: Callable[[ClientConnection], Awaitable[None]],
        number_of: Callable[[str | bytes], int | None],
        timeout: float,
    ) -> None:
        gate = asyncio.Semaphore(_AT_ONCE)

        async def open_one() -> ClientConnection:
            async with gate:
                with translate_errors(url):
                    socket = await connect(
                        url,
                        compression=None,
                        proxy=None if is_loopback(urlsplit(url).hostname or "") else True,
                        ssl=certificates() if url.startswith("wss:") else None,
                        open_timeout=timeout,
                        close_timeout=1,
                        max_size=None,
                        max_queue=None,
                        ping_interval=None,
                    )
                    await begin(socket)
                return socket

        self._connect, self._number_of = open_one, number_of
        self._missing = count * self._broadcasts
        self._open = await asyncio.gather(*(open_one() for _ in range(count)))
        self.received = [Received(array("H", bytes(2 * self._broadcasts))) for _ in range(count)]
        self._tasks = [
            asyncio.create_task(self._listen(socket, received))
            for socket, received in zip(self._open, self.received, strict=True)
        ]

    async def _pong(self, socket: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            await (await socket.ping())

    async def _request(
        self, socket: ClientConnection, number: int, action: str, target: str, data: object, timeout: float
    ) -> None:
        await socket.send(envelope.request(action, target, data, number))
        while True:
            text = await asyncio.wait_for(socket.recv(), timeout)
            message = envelope.read_message(text.encode() if isinstance(text, str) else text)
            if message is None:
                raise Unreachable(f"{self._ws_url} replied with a message without meta")
            if message.request_id == number:
                if message.errors:
                    raise envelope.error_of(f"{action} {target}".strip(), message)
                return

    async def _listen(self, socket: ClientConnection, received: Received) -> None:
        try:
            while True:
                text = await socket.recv()
                now = clock.elapsed()
                try:
                    number = self._number_of(text)
                except _OTHER_MESSAGE:
                    continue
                if number is not None and 0 <= number < self._broadcasts:
                    self._note(received, number, now)
        except ConnectionClosed as closed:
            code = closed.rcvd.code if closed.rcvd else 1006
            received.closed = f"closed with {code}"
            received.arrived.set()
            self._missing -= sum(not times for times in received.times)
            self._check_complete()

    def _note(self, received: Received, number: int, now: float) -> None:
        if not received.times[number]:
            received.at.append(now)
            received.numbers.append(number)
            self._missing -= 1
            if len(received.numbers) >= received.awaited:
                received.arrived.set()
        received.times[number] = min(received.times[number] + 1, 0xFFFF)
        received.disordered += number < received.last
        received.last = max(received.last, number)
        self._check_complete()

    def _check_complete(self) -> None:
        if self._missing <= 0:
            self._complete.set()

    def _number_in_update(self, text: str | bytes) -> int | None:
        """Return the number of this run's broadcast in an update, or `None`."""
        message = bounded_json.decoded(text)
        data = message.get("data") if message.get("meta", {}).get("target") == self._event else None
        return self._number(data.get("data") if isinstance(data, dict) else None)

    def _number_in_page_event(self, text: str | bytes) -> int | None:
        """Return the number of this run's broadcast in a page's message, which may be compressed, or `None`."""
        frame = bounded_json.decoded(text)
        if str(frame.get("event", "")).startswith("pusher"):
            return None
        data = frame.get("data")
        message = (bounded_json.decoded(data) if isinstance(data, str) else data or {}).get("message", "")
        if message[:1] not in ("{", "["):
            message = zlib.decompress(base64.b64decode(message), 32 + zlib.MAX_WBITS)
        event = bounded_json.decoded(message)
        return self._number(event.get("data")) if event.get("event", "").endswith(self._event) else None

    def _number(self, data: object) -> int | None:
        if not isinstance(data, dict) or data.get("simulation") != self._seed:
            return None
        number = data.get("number")
        return number if isinstance(number, int) else None


def _check_subscribed(text: str | bytes) -> None:
    """Raise `CliError` for the refusal of a page's subscription. Services of others may confirm in other words."""
    try:
        frame = bounded_json.decoded(text)
        if frame["event"] != "pusher:subscription_error":
            return
        data = bounded_json.decoded(frame["data"])
        status, why = int(data["status"]), str(data["error"])
    except _OTHER_MESSAGE:
        return
    body = json.dumps({"reason": why, "info": why}).encode()
    raise (Refused if status < 500 else ServerError)("pusher:subscribe", status, body)


def closings(all: Sequence[Received]) -> dict[str, int]:
    """Return how many connections the service closed, by the reason."""
    return Counter(each.closed for each in all if each.closed)

"""A run of games or pages that must receive broadcasts: sends them at planned instants, and counts what arrives.

Only this module and `api/websocket.py` import websockets.
"""

from __future__ import annotations

import asyncio
import base64
import json
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from extcli import bounded_json, clock
from extcli.api import websocket
from extcli.api.call import SERVICE, Call, encoded
from extcli.api.connection import certificates
from extcli.config.urls import is_loopback
from extcli.errors import Refused
from extcli.output.sanitize import visible
from extcli.reading import SHAPE_ERRORS
from extcli.session import BROADCASTER, Session
from extcli.simulate import outcome
from extcli.simulate.crowds import Sending, extend_tokens, reopenings, requests_of, run
from extcli.simulate.plan import Plan, entries_plan
from extcli.simulate.result import Options, conclude

_AT_ONCE = 50
"""Handshakes at the same time."""
_PAGE_QUERY = "/app/simulation?protocol=7&client=js&version=7.0.3&flash=false"
_OTHER_MESSAGE = (*SHAPE_ERRORS, zlib.error)
"""Errors while reading a message that is not one of the broadcasts."""


@dataclass(frozen=True, slots=True)
class Audience:
    """The broadcasts that each connection must receive."""

    broadcasts: int
    kind: str
    """`page` or `game`."""
    event: str
    channel: str
    seed: int = 0


class Listener:
    """One connection, and the broadcasts that it has received."""

    def __init__(self, audience: Audience, url: str, client_id: str, token: str, timeout: float) -> None:
        """`url` is the address of the WebSocket, and `timeout` the seconds that each step may take."""
        self.audience = audience
        self.url = url
        self.client_id = client_id
        self.token = token
        self.timeout = timeout
        self.arrived: dict[int, float] = {}
        """When each broadcast came first, by its number, in seconds of `clock.elapsed`."""
        self.doubled = 0
        self.disordered = 0
        """How many broadcasts came after a later one."""
        self.closed = ""
        """Why the service closed the connection; empty while it is open."""
        self._changed = asyncio.Event()
        """Set when a broadcast has come, or the connection is closed."""
        self._socket: ClientConnection
        self._listening: asyncio.Task[None] | None = None

    async def open(self, gate: asyncio.Semaphore) -> None:
        """Connect and subscribe. Raises `CliError`."""
        async with gate:
            with websocket.translate_errors(self.url):
                async with asyncio.timeout(self.timeout):
                    self._socket = await connect(
                        self.url,
                        compression=None,
                        proxy=None if is_loopback(urlsplit(self.url).hostname or "") else True,
                        ssl=certificates() if self.url.startswith("wss:") else None,
                        close_timeout=1,
                        max_queue=None,
                        ping_interval=None,
                    )
                    await (self._subscribe_page() if self.audience.kind == "page" else self._subscribe_game())
        self._listening = asyncio.create_task(self._listen())

    async def _subscribe_page(self) -> None:
        await self._socket.recv()
        topic = f"twitch.pubsub.{self.client_id}.{self.audience.channel}"
        subscription = {"auth": f"{self.client_id} {self.token}", "channel": topic}
        await self._socket.send(json.dumps({"event": "pusher:subscribe", "data": subscription}))
        answer = await self._socket.recv(decode=False)
        if b"pusher:subscription_error" in answer:
            raise Refused("pusher:subscribe", 403, answer)

    async def _subscribe_game(self) -> None:
        identity = {"client_id": self.client_id, "jwt": self.token}
        requests = (("authenticate", "", identity), ("subscribe", "broadcast", {"topic_id": self.audience.event}))
        for number, (action, target, data) in enumerate(requests, 1):
            await self._socket.send(websocket.request(action, target, data, number))
            message = None
            while message is None or message.request_id != number:
                message = websocket.read_message(await self._socket.recv(decode=False))
            if message.errors:
                raise websocket.error_of(f"{action} {target}".strip(), message)

    async def _listen(self) -> None:
        last = -1
        try:
            while True:
                text = await self._socket.recv()
                now, number = clock.elapsed(), None
                with suppress(*_OTHER_MESSAGE):
                    number = self._number_in(text)
                if number is None:
                    continue
                self.doubled += number in self.arrived
                self.arrived.setdefault(number, now)
                self.disordered += number < last
                last = max(last, number)
                self._changed.set()
        except ConnectionClosed as closed:
            self.closed = f"closed with {closed.rcvd.code if closed.rcvd else 1006}"
            self._changed.set()

    def _number_in(self, text: str | bytes) -> int | None:
        """Return the number of the broadcast in a message, which may be compressed for pages; `None` in another one.

        Another message may also raise an error.
        """
        message = bounded_json.decoded(text)
        if self.audience.kind == "game":
            event, data = message["meta"]["target"], message["data"]["data"]
        else:
            data = message["data"]
            body = (bounded_json.decoded(data) if isinstance(data, str) else data)["message"]
            if body[:1] not in ("{", "["):
                body = zlib.decompress(base64.b64decode(body), 32 + zlib.MAX_WBITS)
            message = bounded_json.decoded(body)
            event, data = message["event"], message["data"]
        is_own = event.endswith(self.audience.event) and data["simulation"] == self.audience.seed
        return int(data["number"]) if is_own and 0 <= data["number"] < self.audience.broadcasts else None

    async def wait(self, count: int) -> None:
        """Wait until this many broadcasts have come, or the connection is closed, but not longer than the timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.timeout):
                while len(self.arrived) < count and not self.closed:
                    self._changed.clear()
                    await self._changed.wait()

    async def wait_for_repeats(self) -> None:
        """Wait for the response to a ping. A frame that was sent twice arrives before it."""
        with suppress(TimeoutError, ConnectionClosed):
            async with asyncio.timeout(self.timeout):
                await (await self._socket.ping())

    async def reopen(self, count: int, gate: asyncio.Semaphore) -> None:
        """Wait until this many broadcasts have come; then close the connection and open it again. Raises `CliError`."""
        await self.wait(count)
        if self._listening and not self.closed:
            self._listening.cancel()
            await self._socket.close()
            await self.open(gate)

    def close(self) -> None:
        """End the connection."""
        if self._listening:
            self._listening.cancel()
            self._socket.transport.abort()


def simulate(session: Session, audience: Audience, options: Options) -> None:
    """Run an audience, print what it received, and raise an error if it is not as planned or expected."""
    size, broadcasts, resolver = options.connections, audience.broadcasts, session.resolver
    will = (
        f"will: {size:,} {audience.kind}s receive {broadcasts:,} broadcasts each, "
        f"{size * broadcasts:,} deliveries, each of them once and in order"
    )
    session.output.report(will)
    credentials = session.credentials(BROADCASTER)
    service, method = session.service_with(credentials), resolver.broadcast_method(post=False)

    def call(number: int) -> Call:
        data = {"simulation": audience.seed, "number": number}
        message = {"event": audience.event, "target": "broadcast", "user_id": audience.channel, "data": data}
        return Call(method, f"{SERVICE}broadcast", service.query, encoded(message))

    if service.withhold:
        service.withhold(call(0))
    plan = entries_plan(1, broadcasts, options.pace, audience.seed)
    extend_tokens(credentials, plan)
    request = requests_of(session, plan, [credentials.token()], call)
    sending = Sending(resolver.url(), plan, request, Options(options.pace, connections=1), timeout=resolver.timeout())
    page_url = f"ws{resolver.url().removeprefix('http')}{_PAGE_QUERY}"
    to, url = (resolver.url(), page_url) if audience.kind == "page" else (resolver.ws_url(), resolver.ws_url())
    token = session.credentials(BROADCASTER, to=to).token()
    listeners = [Listener(audience, url, resolver.client_id(), token, resolver.timeout()) for _ in range(size)]
    run(session, _listen(listeners, sending, options), sending, "broadcasts")
    about = {"simulation": "socket", "what": "event", "id": audience.event, "requests": "broadcasts"}
    numbers = {"seed": audience.seed, "viewers": size, "will": will, "notes": ()}
    comparison = _compare(sending.measured, listeners)
    conclude(session, options, about | numbers, comparison, _facts(plan, sending, listeners))


async def _listen(listeners: Sequence[Listener], sending: Sending, options: Options) -> None:
    """Open the connections, send all broadcasts, and wait for their arrival. Some connections are opened again."""
    measured, at, gate = sending.measured, sending.plan.at, asyncio.Semaphore(_AT_ONCE)
    waiting = reopenings(sending.plan.seed, options, at)

    async def after(number: int) -> None:
        while waiting and number + 1 < len(at) and waiting[0][0] <= at[number + 1]:
            chosen = listeners[int(waiting.pop(0)[1] * len(listeners))]
            await chosen.reopen(sum(map(outcome.is_accepted, measured.status)), gate)
            measured.reopened += 1

    sending.after = after
    try:
        await asyncio.gather(*(each.open(gate) for each in listeners))
        await sending.run()
        expected = sum(not outcome.is_refused(status) for status in measured.status)
        await asyncio.gather(*(each.wait(expected) for each in listeners))
        await asyncio.gather(*(each.wait_for_repeats() for each in listeners))
    finally:
        for each in listeners:
            each.close()


def _compare(measured: outcome.Measured, listeners: Sequence[Listener]) -> outcome.Comparison:
    """Compare what arrived with what was sent. Only a broadcast without a clear response leaves a doubt."""
    unplanned = {
        "doubled": sum(each.doubled for each in listeners),
        "out of order": sum(each.disordered for each in listeners),
    }
    lost = Counter(each.closed for each in listeners if each.closed)
    faults = [f"{visible(reason)}: {count:,} of the connections" for reason, count in lost.items()]
    found = sum(len(each.arrived) for each in listeners)
    return outcome.compare_each("deliveries", measured.status, found, unplanned, faults, times=len(listeners))


def _facts(plan: Plan, sending: Sending, listeners: Sequence[Listener]) -> dict[str, Any]:
    """Return what the broadcasts came to. Latencies and points are of deliveries, not of responses."""
    planned = sending.measured.due
    arrived = chain.from_iterable(each.arrived.items() for each in listeners)
    delivered = [(planned[number], at - sending.started) for number, at in arrived]
    return outcome.facts_of(plan, sending.measured) | {
        "latencies": outcome.latencies(at - due for due, at in delivered),
        "series": outcome.points_over_time([due for due, _ in delivered], delivered, []),
    }

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
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from extcli import bounded_json, clock
from extcli.api import websocket
from extcli.api.call import SERVICE, Call, encoded
from extcli.api.connection import tls_context
from extcli.config.urls import is_loopback
from extcli.errors import Refused
from extcli.reading import SHAPE_ERRORS
from extcli.session import BROADCASTER, Session
from extcli.simulate import outcome
from extcli.simulate.crowds import PlanRun, extend_token_lifetime, reopenings_before, request_maker, run_with_progress
from extcli.simulate.plan import plan_entries
from extcli.simulate.result import Options, report_result

_PARALLEL_HANDSHAKES = 50
"""Handshakes at the same time."""
_PAGE_QUERY = "/app/simulation?protocol=7&client=js&version=7.0.3&flash=false"
_FOREIGN_MESSAGE_ERRORS = (*SHAPE_ERRORS, zlib.error)
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


@dataclass(eq=False, repr=False)
class Listener:
    """One connection, and the broadcasts that it has received."""

    audience: Audience
    url: str
    """The address of the WebSocket."""
    client_id: str
    token: str
    timeout: float
    """Seconds that each step may take."""
    arrivals: dict[int, float] = field(default_factory=dict)
    """When each broadcast came first, by its number, in seconds of `clock.elapsed`."""
    doubled: int = 0
    out_of_order: int = 0
    """How many broadcasts came after a later one."""
    close_reason: str = ""
    """Why the service closed the connection; empty while it is open."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a broadcast has come, or the connection is closed."""
    _socket: ClientConnection = field(init=False)
    _reading: asyncio.Task[None] | None = None

    async def open(self, gate: asyncio.Semaphore) -> None:
        """Connect and subscribe. Raises `CliError`."""
        async with gate:
            with websocket.translate_errors(self.url):
                async with asyncio.timeout(self.timeout):
                    self._socket = await connect(
                        self.url,
                        compression=None,
                        proxy=None if is_loopback(urlsplit(self.url).hostname or "") else True,
                        ssl=tls_context() if self.url.startswith("wss:") else None,
                        close_timeout=1,
                        max_queue=None,
                        ping_interval=None,
                    )
                    await (self._subscribe_page() if self.audience.kind == "page" else self._subscribe_game())
        self._reading = asyncio.create_task(self._read())

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

    async def _read(self) -> None:
        """Record the broadcasts that arrive until the connection is closed."""
        last = -1
        try:
            while True:
                text = await self._socket.recv()
                now, number = clock.elapsed(), None
                with suppress(*_FOREIGN_MESSAGE_ERRORS):
                    number = self._number_in(text)
                if number is None:
                    continue
                self.doubled += number in self.arrivals
                self.arrivals.setdefault(number, now)
                self.out_of_order += number < last
                last = max(last, number)
                self._changed.set()
        except ConnectionClosed as closed:
            self.close_reason = f"closed with {closed.rcvd.code if closed.rcvd else 1006}"
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
                while len(self.arrivals) < count and not self.close_reason:
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
        if self._reading and not self.close_reason:
            self._reading.cancel()
            await self._socket.close()
            await self.open(gate)

    def close(self) -> None:
        """End the connection."""
        if self._reading:
            self._reading.cancel()
            self._socket.transport.abort()


def simulate(session: Session, audience: Audience, options: Options) -> None:
    """Run an audience, print what it received, and raise an error if it is not as planned or expected."""
    size, broadcasts, resolver = options.connections, audience.broadcasts, session.resolver
    deliveries = f"{size * broadcasts:,} deliveries"
    will = f"expected: {size:,} {audience.kind}s receive {broadcasts:,} broadcasts once and in order, {deliveries}"
    session.output.report(will)
    credentials = session.credentials(BROADCASTER)
    service, method = session.service_with(credentials), resolver.broadcast_method(post=False)

    def call(number: int) -> Call:
        data = {"simulation": audience.seed, "number": number}
        message = {"event": audience.event, "target": "broadcast", "user_id": audience.channel, "data": data}
        return Call(method, f"{SERVICE}broadcast", service.query, encoded(message))

    if service.withhold:
        service.withhold(call(0))
    plan = plan_entries(1, broadcasts, options.pace, audience.seed)
    extend_token_lifetime(credentials, plan)
    make_request = request_maker(session, plan, [credentials.token()], call)
    plan_run = PlanRun(resolver.url(), plan, make_request, Options(options.pace, connections=1), resolver.timeout())
    page_url = f"ws{resolver.url().removeprefix('http')}{_PAGE_QUERY}"
    to, url = (resolver.url(), page_url) if audience.kind == "page" else (resolver.ws_url(), resolver.ws_url())
    token = session.credentials(BROADCASTER, to=to).token()
    listeners = [Listener(audience, url, resolver.client_id(), token, resolver.timeout()) for _ in range(size)]
    run_with_progress(session, _send_and_listen(listeners, plan_run, options), plan_run, "broadcasts")
    about = {"simulation": "socket", "what": "event", "id": audience.event, "requests": "broadcasts"}
    numbers = {"seed": audience.seed, "viewers": size, "will": will, "notes": ()}
    comparison = _compare_deliveries(plan_run.outcomes, listeners)
    report_result(session, options, about | numbers, comparison, _delivery_facts(plan_run, listeners))


async def _send_and_listen(listeners: Sequence[Listener], plan_run: PlanRun, options: Options) -> None:
    """Open the connections, send all broadcasts, and wait for their arrival. Some connections are opened again."""
    outcomes, instants, gate = plan_run.outcomes, plan_run.plan.instants, asyncio.Semaphore(_PARALLEL_HANDSHAKES)
    reopenings = [*reopenings_before(options, instants)[1:], 0]

    async def reopen_due_connections(number: int) -> None:
        for _ in range(reopenings[number]):
            chosen = listeners[outcomes.reopened % len(listeners)]
            await chosen.reopen(sum(map(outcome.is_accepted, outcomes.status)), gate)
            outcomes.reopened += 1

    plan_run.after_request = reopen_due_connections
    try:
        await asyncio.gather(*(each.open(gate) for each in listeners))
        await plan_run.run()
        expected = sum(not outcome.is_refused(status) for status in outcomes.status)
        await asyncio.gather(*(each.wait(expected) for each in listeners))
        await asyncio.gather(*(each.wait_for_repeats() for each in listeners))
    finally:
        for each in listeners:
            each.close()


def _compare_deliveries(outcomes: outcome.RequestOutcomes, listeners: Sequence[Listener]) -> outcome.Comparison:
    """Compare what arrived with what was sent. Only a broadcast without a clear response leaves a doubt."""
    unplanned = {
        "doubled": sum(each.doubled for each in listeners),
        "out of order": sum(each.out_of_order for each in listeners),
    }
    closed = Counter(each.close_reason for each in listeners if each.close_reason)
    faults = [f"{reason}: {count:,} of the connections" for reason, count in closed.items()]
    found = sum(len(each.arrivals) for each in listeners)
    return outcome.compare_items("deliveries", outcomes.status, found, unplanned, faults, times=len(listeners))


def _delivery_facts(plan_run: PlanRun, listeners: Sequence[Listener]) -> dict[str, Any]:
    """Return the figures of a run. Latencies and points are of deliveries, not of responses."""
    due = plan_run.outcomes.due
    arrivals = chain.from_iterable(each.arrivals.items() for each in listeners)
    delivered = [(due[number], at - plan_run.started) for number, at in arrivals]
    return outcome.run_facts(plan_run.plan, plan_run.outcomes) | {
        "latencies": outcome.latencies(at - due for due, at in delivered),
        "series": outcome.points_over_time([due for due, _ in delivered], delivered, []),
    }

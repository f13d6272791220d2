"""A run of connections that must receive broadcasts: sends them at planned instants, and counts what arrives."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from extcli import clock
from extcli.errors import ErrorResponse, Unreachable, Withheld
from extcli.output.progress import progress_bar_of
from extcli.output.sanitize import visible
from extcli.session import BROADCASTER, Session
from extcli.simulate.crowds import Options, loop_factory
from extcli.simulate.crowds import reopenings as reopenings_of
from extcli.simulate.listeners import Listeners, closings
from extcli.simulate.outcome import Comparison, Count, Tally, latencies, points_over_time
from extcli.simulate.result import conclude, document

PAGE, GAME = "page", "game"


@dataclass(frozen=True, slots=True)
class Audience:
    """The settings of a simulation of listeners: its connections, and the broadcasts that each must receive."""

    connections: int
    broadcasts: int
    kind: str
    """`PAGE` or `GAME`."""
    event: str
    channel: str
    seed: int = 0


@dataclass(slots=True)
class _Sent:
    """When each broadcast was sent, and whether sending failed. Times are of `clock.elapsed`."""

    planned: list[float]
    refusals: list[str] = field(default_factory=list)
    first: float = 0.0
    last: float = 0.0
    """When the first and the last broadcast were sent."""
    accepted: int = 0
    unknown: int = 0
    lag: float = 0.0
    reopened: int = 0


def simulate(session: Session, audience: Audience, options: Options) -> None:
    """Run an audience, print what it received, and raise an error if it is not as planned or expected."""
    will = (
        f"will: {audience.connections:,} {audience.kind}s receive {audience.broadcasts:,} broadcasts each, "
        f"{audience.connections * audience.broadcasts:,} deliveries, each of them once and in order"
    )
    session.output.report(will)
    sender = _Sender(session, audience, options)
    if session.dry_run:
        sender.send(0)
        raise Withheld
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            listeners, sent = runner.run(sender.run())
    except KeyboardInterrupt:
        session.output.report(f"interrupted after {sender.done()[1]} broadcasts; the result is not compared")
        raise
    comparison = _compare(audience, listeners, sent)
    start = sent.planned[0]  # the times of deliveries are seconds from it
    due = [sent.planned[number] - start for each in listeners.received for number in each.numbers]
    done = [at - start for each in listeners.received for at in each.at]
    tally = _tally(audience, sent, [arrived - planned for planned, arrived in zip(due, done, strict=True)])
    points = points_over_time(due, done, [True] * len(due), [])
    found = document(
        comparison,
        tally,
        options.expectations,
        points,
        simulation="socket",
        what="event",
        id=audience.event,
        requests="broadcasts",
        seed=audience.seed,
        viewers=audience.connections,
        will=will,
        notes=(),
    )
    conclude(session, found, comparison, options.report)


class _Sender:
    """Opens the connections, and sends the broadcasts through the REST API."""

    def __init__(self, session: Session, audience: Audience, options: Options) -> None:
        self._session = session
        self._audience = audience
        self._manner = options.manner
        self._instants = options.pace.instants(audience.broadcasts)
        self._service = session.service(BROADCASTER)
        self._method = session.resolver.broadcast_method(post=False)
        self._finished = 0

    def done(self) -> tuple[int, str]:
        """Return the number of broadcasts that have ended, and that number in words for the progress bar."""
        return self._finished, f"{self._finished:,} of {self._audience.broadcasts:,}"

    def send(self, number: int) -> None:
        """Send one broadcast. Raises `CliError`."""
        audience = self._audience
        data = {"simulation": audience.seed, "number": number}
        self._service.broadcast(audience.event, data, target="broadcast", channel=audience.channel, method=self._method)

    async def run(self) -> tuple[Listeners, _Sent]:
        audience, resolver = self._audience, self._session.resolver
        listeners = Listeners(
            resolver.url(),
            resolver.ws_url(),
            client_id=resolver.client_id(),
            event=audience.event,
            seed=audience.seed,
            broadcasts=audience.broadcasts,
        )
        timeout = resolver.timeout()
        is_page = audience.kind == PAGE
        try:
            credentials = self._session.credentials(BROADCASTER, to=resolver.url() if is_page else resolver.ws_url())
            token = await asyncio.to_thread(credentials.token)
            if is_page:
                await listeners.open_pages(audience.connections, audience.channel, token, timeout)
            else:
                await listeners.open_games(audience.connections, token, timeout)
            async with progress_bar_of(self._session.output, audience.broadcasts, self.done):
                sent = await self._send_all(listeners)
                await listeners.wait(timeout)
        finally:
            await listeners.close()
        return listeners, sent

    async def _send_all(self, listeners: Listeners) -> _Sent:
        start = clock.elapsed()
        sent = _Sent([start + at for at in self._instants])
        reopenings = deque(reopenings_of(self._audience.seed, self._manner, self._instants))
        for number, at in enumerate(sent.planned):
            while reopenings and start + reopenings[0][0] <= at:
                _, share = reopenings.popleft()
                index = int(share * self._audience.connections)
                await listeners.reopen(index, sent.accepted, self._session.resolver.timeout())
                sent.reopened += 1
            await asyncio.sleep(max(at - clock.elapsed(), 0))
            sent.last = clock.elapsed()
            sent.first = sent.first or sent.last
            sent.lag = max(sent.lag, sent.last - at)
            try:
                await asyncio.to_thread(self.send, number)
                sent.accepted += 1
            except ErrorResponse as error:
                sent.refusals.append(f"{error.status} {error.why}".strip())
                if error.status >= 500:
                    sent.unknown += 1
                else:
                    listeners.skip()
            except Unreachable:
                sent.unknown += 1
            self._finished = number + 1
        return sent


def _compare(audience: Audience, listeners: Listeners, sent: _Sent) -> Comparison:
    found = sum(sum(map(bool, each.times)) for each in listeners.received)
    doubled = sum(sum(times - 1 for times in each.times if times > 1) for each in listeners.received)
    disordered = sum(each.disordered for each in listeners.received)
    size, least = audience.connections, sent.accepted
    counts = [
        Count("deliveries", size * audience.broadcasts, (size * least, size * (least + sent.unknown)), found),
        Count("doubled", 0, (0, 0), doubled),
        Count("out of order", 0, (0, 0), disordered),
    ]
    lost = closings(listeners.received)
    faults = [
        f"{count:,} {'connection was' if count == 1 else 'connections were'} {visible(reason)}"
        for reason, count in lost.items()
    ]
    return Comparison([each for each in counts if each.planned or each.found], sent.unknown * size, faults)


def _tally(audience: Audience, sent: _Sent, delays: Sequence[float]) -> Tally:
    span = sent.last - sent.first
    return Tally(
        planned=audience.broadcasts,
        sent=audience.broadcasts,
        answered=sent.accepted + len(sent.refusals),
        refused=audience.broadcasts - sent.accepted - sent.unknown,
        late=0,
        failed=sent.unknown,
        unsent=0,
        repeated=0,
        reopened=sent.reopened,
        rate=(audience.broadcasts - 1) / span if span else 0.0,
        lag=sent.lag,
        latencies=latencies(delays),
        reasons=dict(Counter(sent.refusals)),
    )

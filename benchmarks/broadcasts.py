"""Goals 7 and 8, broadcasts: `python benchmarks/broadcasts.py [ROUNDS]`, or `make bench-peers`.

A game broadcasts an event to many subscribers, all on sockets of one client process. The servers run on core 0 and the
clients on core 1, one server at a time in each round, with equal texts:

service      games that subscribe to an event, or pages with the published SDK
websockets   the `websockets` library's server and its `broadcast()`
ws           `peers/ws.js`: the Node library sends each message to each client
nats-server  of Debian's package, with its own protocol, not WebSocket; left out if it is not installed
C loop       `peers/c_loop.c`: one `send` per client and nothing else; left out without a C compiler

Goal 7 is the deliveries per second of a burst of 20 to 1,000 subscribers: once with all messages in one segment, which
a server can answer with one write per subscriber, and once spaced: each message is sent as soon as the first client
has received the one before. Goal 8 is the time until the last client has one broadcast. The C loop shows how much of
it the kernel needs. A round is the median of several repetitions.

The service receives and answers each broadcast as a request with JSON, and checks it; the others only repeat bytes.
Figures include the processor time of the server per delivery, of which most is the kernel's. Without a goal: pages, and
the latency of the other subscribers while one never reads, divided by that before.
"""

from __future__ import annotations

import gc
import http.client
import json
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from audience import authorization
from common import Address, pin_to_core, processor_time, start_server
from crowd import Crowd, Socket
from nats import NatsSocket
from peers import FOLDER, start_node, start_program
from report import Row, main, ratios
from servers import CLIENT_ID

NATS = shutil.which("nats-server", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
COMPILER = shutil.which("cc")
C_LOOP = "C loop"
SUBSCRIBERS = 1_000
MANY = 5_000
BURST = 20
REPEATS = 3
STALLED_ROUNDS = 100


def socket_request(action: str, target: str = "", **data: object) -> bytes:
    """Return the text of a socket request."""
    return json.dumps({"action": action, "params": {"request_id": 1, "target": target}, "data": data}).encode()


def post(address: Address, path: str, role: str, body: object, user: str = "1") -> dict[str, object]:
    """Send a REST request for channel 1; return the response."""
    with closing(http.client.HTTPConnection(*address)) as connection:
        connection.request("POST", f"/v1/e/{path}", json.dumps(body), {"Authorization": authorization(user, role)})
        response = connection.getresponse()
        assert response.status == 200, response.status
        return dict(json.loads(response.read()))


def authentication(address: Address) -> bytes:
    """Return the request that links a socket to channel 1, with a token that another socket got for a PIN."""
    with closing(Socket(address)) as first:
        first.finish_handshake()
        pin = post(address, "link/pin", "broadcaster", {})["pin"]
        first.send(socket_request("authenticate", client_id=CLIENT_ID, pin=pin))
        token = json.loads(first.message())["data"]["jwt"]
    return socket_request("authenticate", client_id=CLIENT_ID, jwt=token)


class Kind(NamedTuple):
    """A kind of subscriber."""

    path: str
    greetings: int
    """Texts that the server sends first."""
    requests: Sequence[bytes]


class Setup(NamedTuple):
    """The subscribers of a server, and a client that broadcasts to them."""

    crowd: Crowd
    sender: Socket
    request: bytes
    length: int
    """Bytes of the text that each subscriber receives."""
    process: int
    """The id of the server's process."""

    def broadcast(self, times: int = 1, *, spaced: bool = False) -> list[float]:
        """Broadcast `times` times; return the seconds until each subscriber had all of them, in order."""
        started = perf_counter()
        if spaced:
            self.sender.send(self.request)
            received = self.crowd.wait_for(times, self.length, lambda: self.sender.send(self.request))
        else:
            self.sender.send(*[self.request] * times)
            received = self.crowd.wait_for(times, self.length)
        for _ in range(times):
            self.sender.message()
        return [each - started for each in received]

    def last(self, times: int = 1, *, spaced: bool = False) -> float:
        """Return the median time until the last subscriber had all of `times` broadcasts, in seconds."""
        return statistics.median(self.broadcast(times, spaced=spaced)[-1] for _ in range(REPEATS))


def kinds(address: Address) -> dict[str, Kind]:
    """Return how games and pages subscribe to the event `hit` of channel 1."""
    data = f'{{"channel":"twitch.pubsub.{CLIENT_ID}.1","auth":"{authorization("1")}"}}'
    subscription = f'{{"event":"pusher:subscribe","data":{data}}}'
    return {
        "games": Kind(
            "/0.2.0/bench", 0, (authentication(address), socket_request("subscribe", "broadcast", topic_id="hit"))
        ),
        "pages": Kind("/app/key?protocol=7", 1, (subscription.encode(),)),
    }


@contextmanager
def service(name: str, size: int, data: int = 100) -> Iterator[tuple[Setup, Address, Kind]]:
    """Open `size` games or pages, and a game that broadcasts `data` bytes."""
    with ExitStack() as stack:
        address, process = start_server(stack, "sockets")
        kind = kinds(address)[name]
        crowd = stack.enter_context(
            closing(Crowd(address, size, kind.requests, path=kind.path, greetings=kind.greetings))
        )
        sender = stack.enter_context(closing(Socket(address)))
        sender.finish_handshake()
        request = socket_request("broadcast", topic="hit", data="x" * data)
        for each in (authentication(address), request):
            sender.send(each)
            assert b'"errors"' not in sender.message()
        (length,) = {len(one.message()) for one in crowd.sockets}
        yield Setup(crowd, sender, request, length, process), address, kind


@contextmanager
def reference(name: str, size: int, length: int) -> Iterator[Setup]:
    """Open `size` clients of a server that repeats each text to all, the sender included."""
    with ExitStack() as stack:
        client = Socket
        if name == "websockets":
            address, process = start_server(stack, "websockets")
        elif name == "ws":
            address, process = start_node(stack, "ws.js", "PORT")
        elif name == C_LOOP:
            program = Path(stack.enter_context(tempfile.TemporaryDirectory()), "c_loop")
            subprocess.run([str(COMPILER), "-O2", "-o", program, FOLDER / "c_loop.c"], check=True)
            address, process = start_program(stack, program, "PORT")
        else:
            address, process = start_program(stack, NATS, "-c", "nats.conf", "-a", "127.0.0.1", "-p", "PORT")
            client = NatsSocket
        crowd = stack.enter_context(closing(Crowd(address, size, client=client)))
        sender = stack.enter_context(closing(client(address)))
        sender.finish_handshake()
        for each in (*crowd.sockets, sender):
            if isinstance(each, NatsSocket):
                each.answer_first_ping()
        yield Setup(crowd, sender, b"x" * length, length, process)


class Burst(NamedTuple):
    """How a number of broadcasts is sent."""

    name: str
    times: int = 1
    spaced: bool = False


ONE = Burst("one broadcast")
BURSTS = (Burst(f"{BURST} in one segment", BURST), Burst(f"{BURST} spaced", BURST, spaced=True))


class Results:
    """The time of the last subscriber in each round, in seconds, and the processor time, by server and burst."""

    def __init__(self, name: str, size: int, rounds: int, references: Sequence[str], bursts: Sequence[Burst]) -> None:
        self._size = size
        self._last: dict[tuple[str, Burst], list[float]] = {}
        self._used: dict[tuple[str, Burst], list[float]] = {}
        with ExitStack() as stack:
            ours, *_ = stack.enter_context(service(name, size))
            setups = {"service": ours}
            for each in references:
                setups[each] = stack.enter_context(reference(each, size, ours.length))
            setups["again"] = setups[references[0]]
            for number in range(rounds + 1):
                for burst in bursts:
                    for server, setup in setups.items():
                        self._measure(server, setup, burst, keep=number > 0)

    def _measure(self, server: str, setup: Setup, burst: Burst, *, keep: bool) -> None:
        gc.collect()
        before = processor_time(setup.process)
        last = setup.last(burst.times, spaced=burst.spaced)
        if keep:  # the first round is a warm-up
            deliveries = REPEATS * burst.times * self._size
            self._last.setdefault((server, burst), []).append(last)
            self._used.setdefault((server, burst), []).append((processor_time(setup.process) - before) / deliveries)

    def row(
        self, goal: str, name: str, burst: Burst, server: str, must: float | None, stretch: float | None, of: str = ""
    ) -> Row:
        """Compare the time of the last client (goal 8), or the deliveries per second, of the server `of`, or ours."""
        is_time = burst.times == 1
        compared = of or "service"
        ours, theirs = self._last[compared, burst], self._last[server, burst]
        first = next(each for each, _ in self._last if each != "service")
        again = ratios(self._last["again", burst], self._last[first, burst])
        figures = {}
        for each in (compared, server):
            median = statistics.median(self._last[each, burst])
            if is_time:
                figures[f"{each}: ms"] = median * 1e3
            else:
                figures[f"{each}: deliveries/s"] = burst.times * self._size / median
            figures[f"{each}: processor µs per delivery"] = statistics.median(self._used[each, burst]) * 1e6
        values = ratios(ours, theirs) if is_time else ratios(theirs, ours)
        title = f"{burst.name} to {self._size:,} {name}{of and f': {of}'} / {server}"
        return Row(goal, title, values, again, must, stretch, higher_is_better=not is_time, figures=figures)


def stalled_row(name: str) -> Row:
    """Compare the latency of the other subscribers before and while one never reads."""
    with service(name, SUBSCRIBERS, 4_000) as (setup, address, kind):

        def p99() -> float:
            times = sorted(each for _ in range(STALLED_ROUNDS) for each in setup.broadcast())
            return times[int(len(times) * 0.99)]

        p99()
        before, again = p99(), p99()
        with closing(Socket(address, 4_096, kind.path)) as stalled:
            stalled.finish_handshake()
            for request in kind.requests:
                stalled.send(request)
            for _ in range(len(kind.requests) + kind.greetings):
                stalled.message()
            during = p99()
    title = f"p99 of a broadcast to {SUBSCRIBERS:,} {name} while one never reads / before"
    return Row("8", title, [during / before], [again / before], None, None, higher_is_better=False)


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goals 7 and 8. The time of a round follows from the number of messages, not from `seconds`."""
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    pin_to_core(1)
    gc.disable()  # so that the clients do not pause during a measurement
    references = ("websockets", *(["nats-server"] if NATS else []))
    games = Results("games", SUBSCRIBERS, rounds, references, BURSTS)
    few, many = (
        Results("games", size, rounds, ("ws", *([C_LOOP] if COMPILER else [])), (ONE,)) for size in (SUBSCRIBERS, MANY)
    )
    pages = Results("pages", SUBSCRIBERS, rounds, ("websockets",), (ONE, *BURSTS))
    found = []
    for burst in BURSTS:
        found.append(games.row("7", "games", burst, "websockets", 4.0, 8.0))
        if NATS:
            found.append(games.row("7", "games", burst, "nats-server", 2.0, 4.0))
        found.append(pages.row("7", "pages", burst, "websockets", None, None))
    found.append(few.row("8", "games", ONE, "ws", 0.9, 0.7))
    found.append(many.row("8", "games", ONE, "ws", 0.6, 0.4))
    for each in (few, many) if COMPILER else ():
        found.append(each.row("8", "games", ONE, "ws", None, None, of=C_LOOP))
        found.append(each.row("8", "games", ONE, C_LOOP, None, None, of="service"))
    found.append(pages.row("8", "pages", ONE, "websockets", None, None))
    return [*found, *map(stalled_row, ("games", "pages"))]


if __name__ == "__main__":
    main(rows)

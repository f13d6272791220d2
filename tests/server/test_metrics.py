"""The Prometheus metrics of a running service, and their bounded cardinality (operations, Watching)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import jwt
import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.exceptions import InvalidStatus

from emulator.core.environment import AnonymousLimits
from emulator.core.settings import Limits, Settings
from engines.redis_server import RedisServer
from support.process import server_process
from support.service import CHANNEL, SECRET, Client, RunningService, live_server
from support.socket_client import SocketClient

REQUESTS = 2_000


class Scrape:
    """One scrape of the metrics."""

    def __init__(self, service: RunningService) -> None:
        with Client(base_url=service.url) as client:
            text = client.get("/_emulator/metrics").raise_for_status().text
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self._values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def __len__(self) -> int:
        return len(self._values)

    def value(self, name: str, **labels: str) -> float:
        """Return the value of a series, 0 if it is absent."""
        return self._values.get((name, frozenset(labels.items())), 0.0)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path) as server:
        yield server


def send_all(service: RunningService, requests: Iterator[bytes]) -> int:
    """Send pipelined requests over one connection; return how many were answered."""
    answered = 0
    with service.connect() as connection:
        while batch := list(islice(requests, 50)):
            connection.sendall(b"".join(batch))
            heads, tail = 0, b""
            while heads < len(batch):
                received = connection.recv(262_144)
                assert received, "the server closed the connection"
                heads += (tail + received).count(b"HTTP/1.1 ")
                tail = received[-8:]
            answered += heads
    return answered


def varied(number: int) -> bytes:
    """Return a request that is unique in everything a client can choose."""
    name = f"x{number}"
    token = jwt.encode({"role": "viewer", "user_id": name, "channel_id": name}, SECRET)
    head = f"Host: {name}\r\nX-Request-Id: {name}\r\nAuthorization: {name} {token}\r\n"
    line = [
        f"GET /v1/e/vote?id={name} HTTP/1.1",
        f"GET /v1/e/{name} HTTP/1.1",
        f"GET /{name}/{name} HTTP/1.1",
        f"POST /v1/e/vote?id={name} HTTP/1.1",
        f"PURGE /v1/e/vote/{name} HTTP/1.1",
    ][number % 5]
    return f"{line}\r\n{head}Content-Length: 11\r\n\r\n".encode() + b'{"value":1}'


@pytest.mark.long
def test_no_path_id_client_or_request_id_adds_a_series():
    with live_server(Settings(limits=Limits(ids=2 * REQUESTS))) as live, SocketClient(live) as game:
        game.request("x", "y")
        send_all(live, (varied(number) for number in range(10)))
        Scrape(live)  # adds the series of the scrape itself
        before = len(Scrape(live))

        answered = send_all(live, (varied(number) for number in range(10, REQUESTS + 10)))
        for number in range(200):
            game.request(f"action-{number}", f"target-{number}", {"x": number})

        assert (REQUESTS, before) == (answered, len(Scrape(live)))


def test_socket_requests_are_counted_by_action_unknown_ones_together():
    with live_server() as live, SocketClient(live) as game:
        for action, target in (("subscribe", "state"), ("get", "state"), ("get", "state"), ("x", ""), ("y", "z")):
            game.request(action, target)
        scrape = Scrape(live)

    counted = [
        sum(scrape.value("emulator_socket_requests_total", action=action, status=status) for status in ("401", "404"))
        for action in ("subscribe", "get", "")
    ]
    assert [1, 2, 2] == counted
    assert 2 == scrape.value("emulator_socket_request_duration_seconds_count", action="get")
    assert 1 == scrape.value("emulator_sockets")
    assert 1 == scrape.value("emulator_unauthenticated_sockets")


def test_refusals_are_counted_by_the_reason_sent():
    limits = Limits(namespaces=1, body=100, anonymous=AnonymousLimits(address_sockets=1))
    with live_server(Settings(limits=limits)) as live, Client(base_url=live.url) as client:
        assert 1 == send_all(live, iter([b"GET / HTTP/1.1\r\nX: " + b"x" * 66_000]))
        statuses = [client.get(f"/_ns/{name}/_emulator/live").status_code for name in ("a", "b")]
        too_large = live.client("viewer", user="1").post("vote", content=b" " * 200).json()["reason"]
        with SocketClient(live) as game:
            with pytest.raises(InvalidStatus):
                SocketClient(live)
            game.socket.send("x" * 3_000_000)
            assert 1009 == game.close_code()
        scrape = Scrape(live)

    assert [200, 429] == statuses
    reasons = ("Headers too large", "Too many namespaces", "Too many connections", "Message too large", too_large)
    assert [1, 1, 1, 1, 1] == [scrape.value("emulator_limited_total", reason=reason) for reason in reasons]


def test_lost_and_restored_storage_shows_at_once(redis: RedisServer):
    with server_process("--data", redis.url()) as served, Client(base_url=served.url) as client:
        viewer = served.client("viewer", user="1", channel=CHANNEL)
        viewer.get("vote").raise_for_status()
        before = Scrape(served)
        redis.kill()
        viewer.get("vote")
        during = Scrape(served)
        redis.start()
        while client.get("/_emulator/ready").status_code != 200:
            pass
        after = Scrape(served)

    reachable = [each.value("emulator_storage_reachable") for each in (before, during, after)]
    failures = [each.value("emulator_storage_failures_total") for each in (before, during)]
    assert [1, 0, 1] == reachable
    assert 0 == failures[0] < failures[1]

"""What Prometheus is told of a running service, and that no client can make it more (operations, Watching)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

import jwt
import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.exceptions import InvalidStatus

from emulator.config.settings import Limits, Settings
from engines.redis_server import RedisServer
from support.process import server_process
from support.service import CHANNEL, SECRET, Client, RunningService, live_server
from support.socket_client import SocketClient

CROWD = 5_000
VOTES = {"method": "POST", "path": "/v1/e/vote"}


class Scraped:
    """One reading of the metrics, as Prometheus reads it."""

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
        """That of one series; 0 while there is none."""
        return self._values.get((name, frozenset(labels.items())), 0.0)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path) as server:
        yield server


def crowd(service: RunningService, requests: Iterator[bytes]) -> int:
    """Send requests over one connection, a few at once, and return how many were answered."""
    answered = 0
    with socket.create_connection(("127.0.0.1", urlsplit(service.url).port or 0), timeout=20) as connection:
        while some := list(islice(requests, 50)):
            connection.sendall(b"".join(some))
            heads, tail = 0, b""
            while heads < len(some):
                came = connection.recv(262_144)
                assert came, "the connection ended"
                heads += (tail + came).count(b"HTTP/1.1 ")
                tail = came[-8:]
            answered += heads
    return answered


def varied(number: int) -> bytes:
    """A request that differs from all others in all that a client may choose."""
    name = f"x{number}"
    token = jwt.encode({"role": "viewer", "user_id": name, "channel_id": name}, SECRET)
    head = f"Host: {name}\r\nX-Request-Id: {name}\r\nAuthorization: {name} {token}\r\n"
    what = [
        f"GET /v1/e/vote?id={name} HTTP/1.1",
        f"GET /v1/e/{name} HTTP/1.1",
        f"GET /{name}/{name} HTTP/1.1",
        f"POST /v1/e/vote?id={name} HTTP/1.1",
        f"PURGE /v1/e/vote/{name} HTTP/1.1",
    ][number % 5]
    return f"{what}\r\n{head}Content-Length: 11\r\n\r\n".encode() + b'{"value":1}'


def test_no_path_id_client_or_request_id_adds_a_series():
    with live_server(Settings(limits=Limits(ids=2 * CROWD))) as live, SocketClient(live) as game:
        game.request("x", "y")
        crowd(live, (varied(number) for number in range(10)))
        Scraped(live)  # which adds the series of the scraping itself
        before = len(Scraped(live))

        answered = crowd(live, (varied(number) for number in range(10, CROWD + 10)))
        for number in range(200):
            game.request(f"action-{number}", f"target-{number}", {"x": number})

        assert (CROWD, before) == (answered, len(Scraped(live)))


def test_each_family_has_the_type_that_its_name_says(live: RunningService):
    families = Scraped(live).families

    assert {
        "emulator": "info",
        "emulator_requests": "counter",
        "emulator_request_duration_seconds": "histogram",
        "emulator_socket_requests": "counter",
        "emulator_socket_request_duration_seconds": "histogram",
        "emulator_limited": "counter",
        "emulator_storage_failures": "counter",
        "emulator_storage_reachable": "gauge",
        "emulator_sockets": "gauge",
        "emulator_event_loop_lag_seconds": "gauge",
    } == {
        name.removesuffix("_info"): "info" if name.endswith("_info") else family.type
        for name, family in families.items()
        if name.startswith("emulator")
    }


def test_durations_of_an_endpoint_are_a_histogram_that_counts_every_answer():
    with live_server() as live:
        viewer = live.client("viewer", user="1", channel=CHANNEL)
        for value in (1, 2, 100):
            viewer.post("vote", json={"value": value})
        scraped = Scraped(live)

    buckets = [
        sample.value
        for sample in scraped.families["emulator_request_duration_seconds"].samples
        if sample.name.endswith("_bucket") and VOTES.items() <= sample.labels.items()
    ]
    assert 3 == buckets[-1] == scraped.value("emulator_request_duration_seconds_count", **VOTES)
    assert sorted(buckets) == buckets
    assert 0 < scraped.value("emulator_request_duration_seconds_sum", **VOTES) < 3
    assert (2, 1) == tuple(scraped.value("emulator_requests_total", **VOTES, status=each) for each in ("200", "400"))


def test_socket_requests_are_counted_by_action_and_unknown_ones_together():
    with live_server() as live, SocketClient(live) as game:
        for action, target in (("subscribe", "state"), ("get", "state"), ("get", "state"), ("x", ""), ("y", "z")):
            game.request(action, target)
        scraped = Scraped(live)

    counted = [
        sum(scraped.value("emulator_socket_requests_total", action=action, status=status) for status in ("401", "404"))
        for action in ("subscribe", "get", "")
    ]
    assert [1, 2, 2] == counted
    assert 2 == scraped.value("emulator_socket_request_duration_seconds_count", action="get")
    assert 1 == scraped.value("emulator_sockets")


def test_what_a_limit_refuses_is_counted_by_the_reason_that_the_client_is_given():
    with live_server(Settings(limits=Limits(caller_rate=1, body=100))) as live:
        viewer = live.client("viewer", user="1", channel=CHANNEL)
        too_large = viewer.post("vote", content=b" " * 200).json()["reason"]
        reasons = [viewer.get("vote").json().get("reason") for _ in range(20)]
        scraped = Scraped(live)

    too_often = next(reason for reason in reasons if reason)
    assert 1 == scraped.value("emulator_limited_total", reason=too_large)
    assert reasons.count(too_often) == scraped.value("emulator_limited_total", reason=too_often)


def test_what_is_refused_before_it_reaches_an_endpoint_is_counted_too():
    with live_server(Settings(limits=Limits(namespaces=1, sockets=1))) as live, Client(base_url=live.url) as client:
        assert 1 == crowd(live, iter([b"GET / HTTP/1.1\r\nX: " + b"x" * 66_000]))
        statuses = [client.get(f"/_ns/{name}/_emulator/live").status_code for name in ("a", "b")]
        with SocketClient(live) as game:
            with pytest.raises(InvalidStatus):
                SocketClient(live)
            game.socket.send("x" * 3_000_000)
            assert 1009 == game.close_code()
        scraped = Scraped(live)

    assert [200, 429] == statuses
    reasons = ("Headers too large", "Too many namespaces", "Too many connections", "Message too large")
    assert [1, 1, 1, 1] == [scraped.value("emulator_limited_total", reason=reason) for reason in reasons]


def test_a_storage_that_is_gone_shows_at_once_and_when_it_is_back_too(redis: RedisServer):
    with server_process("--data", redis.url()) as served, Client(base_url=served.url) as client:
        viewer = served.client("viewer", user="1", channel=CHANNEL)
        viewer.get("vote").raise_for_status()
        well = Scraped(served)
        redis.kill()
        viewer.get("vote")
        gone = Scraped(served)
        redis.start()
        while client.get("/_emulator/ready").status_code != 200:
            pass
        back = Scraped(served)

    reachable = [each.value("emulator_storage_reachable") for each in (well, gone, back)]
    failures = [each.value("emulator_storage_failures_total") for each in (well, gone, back)]
    assert ([1, 0, 1], [0, 1]) == (reachable, failures[:2])
    assert failures[2] >= 1


def test_the_lag_of_the_event_loop_is_the_length_of_a_turn(live: RunningService):
    assert 0 < Scraped(live).value("emulator_event_loop_lag_seconds") < 1

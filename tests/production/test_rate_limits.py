"""Rate limits per caller, address and client id: 429 with `Retry-After` (ruling W4)."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from emulator.core.callers import Caller, Role
from emulator.core.clock import DAY, SECOND, Clock
from emulator.core.environment import PRODUCTION
from emulator.core.limits import RateLimit, RateLimits
from emulator.core.settings import Limits, Settings
from support.service import (
    CLIENT_ID,
    Client,
    LiveServer,
    StillTicks,
    in_production,
    live_server,
    real_seconds,
    still_clock,
)
from support.socket_client import SocketClient

A_FEW = Limits(caller_rate=2, client_rate=6)
"""Bursts of 10 requests per caller, and 30 per client id."""


@pytest.fixture
def limited() -> Iterator[LiveServer]:
    with live_server(Settings(limits=A_FEW), clock=still_clock()) as live:
        yield live


def statuses(client: Client, times: int, path: str = "vote") -> list[int]:
    return [client.get(path).status_code for _ in range(times)]


def test_a_caller_has_five_seconds_of_requests_and_is_told_when_more_succeed(limited: LiveServer):
    viewer, other = (limited.client("viewer", user=user, channel="777") for user in "12")
    assert [*[200] * 10, 429, 429] == statuses(viewer, 12)

    refused = viewer.post("vote", json={"value": 1})
    assert (429, "1") == (refused.status_code, refused.headers["retry-after"])
    told = {"reason": "Too many requests", "info": "too many requests from this caller; retry in 1 s"}
    assert told.items() <= refused.json().items()
    assert 0 == other.get("vote").json()["count"], "a refused request has no effect"

    limited.let_pass(int(refused.headers["retry-after"]) * SECOND)
    assert [200, 200, 429] == statuses(viewer, 3)
    for move in ({"advance": DAY}, {"set": 0}, {"freeze": True}):  # the service's clock changes no rate
        httpx.post(f"{limited.url}/_emulator/clock", json=move).raise_for_status()
        assert [429, 429] == statuses(viewer, 2)
        limited.let_pass(SECOND)
        assert [200, 200, 429] == statuses(viewer, 3)
    limited.reset()
    assert [200] == statuses(viewer, 1)


def test_by_default_the_crowd_of_one_extension_is_not_limited():
    settings = Settings(PRODUCTION)
    limits = RateLimits(still_clock(), per_caller=settings.caller_rate, per_client=settings.limits.client_rate)

    for number in range(50_000):  # at one instant
        limits.check_caller(Caller(CLIENT_ID, Role.VIEWER, "777", None, f"U{number}"))


def test_all_tokens_of_a_caller_share_its_rate(limited: LiveServer):
    clients = [limited.client("viewer", user="1", channel="777", jti=str(number)) for number in range(12)]

    assert [*[200] * 10, 429, 429] == [client.get("vote").status_code for client in clients]


def test_all_callers_of_a_client_id_share_its_rate_but_requests_without_a_token_do_not(limited: LiveServer):
    with Client(base_url=f"{limited.url}/v1/e/") as stranger:
        for headers in ({"Authorization": CLIENT_ID}, {}):
            pins = [stranger.post("link/pin", headers=headers, json={"identifier": CLIENT_ID}) for _ in range(20)]
            assert {200} == {each.status_code for each in pins}
    viewers = [limited.client("viewer", user=str(number), channel="777") for number in range(31)]
    other_client_id = limited.client("viewer", user="1", channel="777", client_id="another")

    answers = [viewer.get("vote") for viewer in viewers]

    assert [*[200] * 30, 429] == [answer.status_code for answer in answers]
    assert "requests with client id my-extension" in answers[-1].json()["info"]
    assert [200] == statuses(other_client_id, 1)


@pytest.mark.parametrize("role", ["backend", "admin"])
def test_the_extensions_servers_have_ten_times_the_rate(role: str):
    with live_server(Settings(limits=Limits(caller_rate=1)), clock=still_clock()) as live:
        assert [*[200] * 50, 429] == statuses(live.client(role, channel="777"), 51)


@pytest.mark.parametrize(
    ("path", "body"), [("link/pin", {"identifier": CLIENT_ID}), ("authtoken", {"app_id": CLIENT_ID, "role": "viewer"})]
)
def test_requests_without_a_token_are_counted_by_address(path: str, body: dict[str, str]):
    with (
        live_server(Settings(limits=Limits(caller_rate=1)), clock=still_clock()) as live,
        Client(base_url=f"{live.url}/v1/e/") as stranger,
    ):
        assert [*[200] * 50, 429] == [stranger.post(path, json=body).status_code for _ in range(51)]


@pytest.mark.parametrize("header", [None, f"{CLIENT_ID} no.token.atall"])
def test_invalid_credentials_are_counted_by_address(header: str | None):
    settings = Settings(limits=Limits(caller_rate=1), proxies=("127.0.0.1",))
    with live_server(settings, clock=still_clock()) as live, Client(base_url=f"{live.url}/v1/e/") as stranger:
        known, new = (live.client("viewer", user=user, channel="777") for user in "12")
        known.get("vote").raise_for_status()

        def failed(times: int, address: str = "203.0.113.7") -> list[httpx.Response]:
            headers = {"X-Forwarded-For": address, **({"Authorization": header} if header else {})}
            return [stranger.get("vote", headers=headers) for _ in range(times)]

        answers = failed(51)
        new.headers["X-Forwarded-For"] = known.headers["X-Forwarded-For"] = "203.0.113.7"

        assert [*[401] * 50, 429] == [answer.status_code for answer in answers]
        assert "1" == answers[-1].headers["retry-after"]
        assert "too many invalid credentials from this address" in answers[-1].json()["info"]
        assert (200, 429) == (known.get("vote").status_code, new.get("vote").status_code)
        assert [401] == [answer.status_code for answer in failed(1, "203.0.113.8")]
        live.let_pass(SECOND)
        assert (200, 401) == (new.get("vote").status_code, failed(1)[0].status_code)


def test_unregistered_client_ids_are_counted_by_address():
    with (
        live_server(Settings(limits=Limits(caller_rate=1), registered_only=True), clock=still_clock()) as live,
        Client(base_url=f"{live.url}/v1/e/") as stranger,
    ):
        pins = [stranger.post("link/pin", headers={"Authorization": f"none-{number}"}) for number in range(51)]

    assert [*[401] * 50, 429] == [answer.status_code for answer in pins]


def test_socket_requests_count_towards_the_callers_rate(limited: LiveServer):
    caller = {"user": "777", "channel": "777"}
    token = limited.client("broadcaster", **caller).headers["Authorization"].split()[1]
    with SocketClient(limited) as game:
        game.data("authenticate", data={"client_id": CLIENT_ID, "jwt": token})
        for _ in range(10):
            game.data("get", "state", {"state_id": "channel"})
        error = game.error("get", "state", {"state_id": "channel"})
        rest_status = limited.client("broadcaster", **caller).get("vote").status_code

    assert (429, "too many requests from this caller; retry in 1 s") == (error["status"], error["detail"])
    assert 429 == rest_status


def test_the_sandbox_has_no_limit_by_default():
    with live_server(clock=still_clock()) as live:
        assert {200} == set(statuses(live.client("viewer", user="1", channel="777"), 520))


def test_production_allows_a_hundred_requests_a_second_by_default():
    with live_server(in_production(), clock=still_clock()) as live:
        viewer = live.client("viewer", user="1", channel="777", exp=real_seconds() + 3_600)
        assert [*[200] * 500, 429] == statuses(viewer, 501)


def test_idle_keys_are_swept():
    ticks = StillTicks()
    limit = RateLimit(Clock(ticks=ticks), 1_000)
    for number in range(50_000):
        ticks.let_pass(1)
        assert 0 == limit.delay(("app", str(number)))

    assert len(limit._due) < 25_000


UNCOUNTED_BEFORE = [
    ("GET", "/nowhere", 404),
    ("GET", "/v1/e/nothing", 404),
    ("POST", "/_emulator/reset", 404),
    ("GET", "/_emulator/ui/polls", 404),
    ("GET", "/_ns/other/v1/e/vote", 404),
    ("PUT", "/v1/e/vote", 405),
    ("PURGE", "/v1/e/vote", 405),
    ("HEAD", "/v1/e/rank/nothing", 404),
    ("HEAD", "/schema", 200),
    ("OPTIONS", "/v1/e/vote", 200),
    ("OPTIONS", "/nowhere", 404),
    ("GET", "/_emulator/metrics", 200),
    ("GET", "/schema", 200),
    ("GET", "/schema/openapi.json", 200),
    ("GET", "/schema/viewer.js", 200),
]


def test_requests_that_reach_no_caller_count_for_their_address():
    settings = in_production(limits=Limits(caller_rate=1), proxies=("127.0.0.1",))
    with live_server(settings, clock=still_clock()) as live, Client(base_url=live.url) as client:
        for number, (method, path, status) in enumerate(UNCOUNTED_BEFORE):
            client.headers["X-Forwarded-For"] = f"203.{number}.113.1"
            answers = [client.request(method, path) for _ in range(51)]

            assert [*[status] * 50, 429] == [each.status_code for each in answers], path
            assert "1" == answers[-1].headers["retry-after"]
            assert path.startswith("/v1/") is ("access-control-allow-origin" in answers[-1].headers)
        health = [client.get(f"/_emulator/{name}").status_code for name in ("live", "ready") for _ in range(60)]
        viewer = live.client("viewer", user="1", channel="777", exp=real_seconds() + 60)
        viewer.headers["X-Forwarded-For"] = client.headers["X-Forwarded-For"]

        assert len(UNCOUNTED_BEFORE) == live.service.metrics.limited["Too many requests"]
        assert {200} == {*health, viewer.get("vote").status_code}


def test_the_sandbox_counts_no_request_for_its_address(limited: LiveServer):
    """Nor those of health checks and the control API."""
    with Client(base_url=limited.url) as client:
        paths = ("/nowhere", "/_emulator/live", "/_emulator/ready", "/_emulator/clock")
        assert {404, 200} == {client.get(path).status_code for path in paths * 20}

"""How many PINs one address may request without a token, so that it cannot fill the storage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator.core.clock import SECOND
from support.service import CLIENT_ID, Client, LiveServer, in_production, live_server, real_seconds, still_clock

BODY = {"identifier": CLIENT_ID}


@pytest.fixture
def still() -> Iterator[LiveServer]:
    """A production service whose rates see no time pass, behind a trusted proxy."""
    with live_server(in_production(proxies=("127.0.0.1",)), clock=still_clock()) as live:
        yield live


def statuses(live: LiveServer, times: int, path: str = "pin", address: str = "203.0.113.1") -> list[int]:
    with Client(base_url=f"{live.url}/v1/e/", headers={"X-Forwarded-For": address}) as stranger:
        return [stranger.post(path, json=BODY).status_code for _ in range(times)]


@pytest.mark.parametrize("path", ["pin", "link/pin"])
def test_an_address_may_request_30_pins_a_minute_and_is_told_when_to_retry(still: LiveServer, path: str):
    assert [*[200] * 30, 429, 429] == statuses(still, 32, path)
    with Client(base_url=f"{still.url}/v1/e/", headers={"X-Forwarded-For": "203.0.113.1"}) as stranger:
        refused = stranger.post(path, json=BODY)
    assert (429, "2") == (refused.status_code, refused.headers["retry-after"])
    assert "too many PINs requested from this address; retry in 2 s" == refused.json()["info"]
    broadcaster = still.client("broadcaster", user="777", channel="777", exp=real_seconds() + 3_600)
    broadcaster.headers["X-Forwarded-For"] = "203.0.113.1"
    assert [200] * 40 == [broadcaster.post("link/pin").status_code for _ in range(40)]

    still.let_pass(2 * SECOND)
    assert [200, 429] == statuses(still, 2, path)


def test_both_calls_and_a_whole_ipv6_network_share_the_limit(still: LiveServer):
    statuses(still, 15, "pin", "2001:db8::1")
    statuses(still, 15, "link/pin", "2001:db8::2")

    assert ([429], [200]) == (
        statuses(still, 1, "pin", "2001:db8:0:ffff::3"),
        statuses(still, 1, "pin", "2001:db8:1::1"),
    )


def test_a_viewers_token_does_not_lift_the_limit(still: LiveServer):
    viewer = still.client("viewer", user="1", channel="777", exp=real_seconds() + 3_600)

    assert [*[200] * 30, 429] == [viewer.post("link/pin").status_code for _ in range(31)]


def test_the_sandbox_has_no_limit_on_pin_requests(live: LiveServer):
    assert {200} == set(statuses(live, 40))

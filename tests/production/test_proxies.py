"""The client address: the address of the connection, or the one that a trusted proxy forwards (ruling A6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from emulator.core.errors import ConfigurationError
from emulator.core.settings import Limits, Settings, read_settings
from support.middleware import Middleware
from support.service import CLIENT_ID, Client, LiveServer, live_server, still_clock

FORWARDED = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}


@pytest.fixture(scope="module")
def behind_proxy() -> Iterator[LiveServer]:
    with live_server(Settings(proxies=("127.0.0.1",))) as live:
        yield live


def test_the_nearest_hop_counts_that_is_not_a_named_proxy():
    # Only a named proxy is trusted
    for proxies, address in [
        ((), "127.0.0.0"),
        (("203.0.113.9", "10.0.0.0/8"), "127.0.0.0"),
        (("127.0.0.1",), "203.0.113.0"),
        (("10.0.0.0/8", "127.0.0.0/8"), "203.0.113.0"),
    ]:
        with live_server(Settings(proxies=proxies)) as live:
            seen = live.client("viewer", user="1").get("user_info", headers=FORWARDED).json()["ip_address"]

        assert address == seen

    # Of several hops the nearest that is not a proxy counts
    forwarded = {"X-Forwarded-For": "198.51.100.1, 203.0.113.7, 10.1.2.3"}
    with live_server(Settings(proxies=("127.0.0.1", "10.0.0.0/8"))) as live:
        seen = live.client("viewer", user="1").get("user_info", headers=forwarded).json()["ip_address"]

    assert "203.0.113.0" == seen


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ("2001:db8:1:2::7", "2001:db8:1::"),
        ("[2001:db8::7]:443", "2001:db8::"),
        ("::ffff:203.0.113.7", "203.0.113.0"),
        ("203.0.113.7:443", "203.0.113.0"),
        *[
            (invalid, "127.0.0.0")
            for invalid in ("", "x", "203.0.113.7, x", "203.0.113.256", "fe80::1%x", "203.0.113.7:x", "[::1", "a:1")
        ],
    ],
)
def test_a_forwarded_address_may_have_a_port_and_an_invalid_one_is_ignored(
    behind_proxy: LiveServer, forwarded: str, address: str
):
    client = behind_proxy.client("viewer", user="1")

    assert address == client.get("user_info", headers={"X-Forwarded-For": forwarded}).json()["ip_address"]


class Schemes(Middleware):
    """Notes whether the client of each request used https."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        schemes.append(scope["scheme"])
        await self._app(scope, receive, send)


schemes: list[str] = []


@pytest.mark.parametrize(("proxies", "trusted"), [(("127.0.0.1",), "https"), (("203.0.113.9",), "http")])
def test_a_named_proxy_tells_whether_its_client_used_https(proxies: tuple[str, ...], trusted: str):
    schemes.clear()
    with live_server(Settings(proxies=proxies), wrap=Schemes) as live, Client(base_url=live.url) as client:
        for told in ("https", "http", "wss", "ftp", "https, http", ""):
            client.get("/_emulator/live", headers={"X-Forwarded-Proto": told})
        client.get("/_emulator/live")

    assert [trusted, *["http"] * 6] == schemes


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "vote", {"Authorization": f"{CLIENT_ID} no.token.atall"}),
        ("POST", "link/pin", {"Authorization": CLIENT_ID}),
        ("POST", "authtoken", {}),
    ],
    ids=["invalid tokens", "client ids", "no credential"],
)
def test_the_addresses_of_an_ipv6_network_of_48_bits_share_a_rate(method: str, path: str, headers: dict[str, str]):
    settings = Settings(proxies=("127.0.0.1",), limits=Limits(caller_rate=1))
    with live_server(settings, clock=still_clock()) as live, Client(base_url=f"{live.url}/v1/e/") as client:

        def status(address: str) -> int:
            return client.request(method, path, headers={**headers, "X-Forwarded-For": address}).status_code

        statuses = [status(f"2001:db8:1:{number:x}::1") for number in range(51)]

        assert [51, 50] == [statuses.index(429) + 1, len([each for each in statuses if each != 429])]
        assert 429 != status("2001:db8:2::1")


def test_the_control_api_ignores_x_forwarded_host(behind_proxy: LiveServer):
    with Client(base_url=behind_proxy.url) as client:
        forwarded = client.get("/_emulator/clock", headers={"Host": "evil.example", "X-Forwarded-Host": "localhost"})

    assert 403 == forwarded.status_code


@pytest.mark.parametrize("proxy", ["*", "0.0.0.0/0", "::/0", "proxy.example", "", "127.0.0.1/8"])
def test_a_proxy_must_be_an_address_and_not_every_address(proxy: str):
    settings: dict[str, Any] = {"production": False, "data": "sqlite://", "check_data": str, "extensions": None}

    with pytest.raises(ConfigurationError, match="--proxy"):
        read_settings(**settings, proxies=(proxy,))

"""Where a request comes from is what its connection says, unless a named proxy says for whom it speaks."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.config.settings import Limits, Settings, read_settings
from emulator.errors import ConfigurationError
from support.service import CLIENT_ID, Client, live_server

FORWARDED = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}


def address_seen(proxies: tuple[str, ...]) -> str:
    with live_server(Settings(proxies=proxies)) as live:
        return str(live.client("viewer", user="1").get("user_info", headers=FORWARDED).json()["ip_address"])


@pytest.mark.parametrize("proxies", [(), ("203.0.113.9",), ("10.0.0.0/8",)])
def test_nobody_is_believed_who_was_not_named(proxies: tuple[str, ...]):
    assert "127.0.0.1" == address_seen(proxies)


@pytest.mark.parametrize("proxies", [("127.0.0.1",), ("10.0.0.0/8", "127.0.0.0/8")])
def test_a_named_proxy_is_believed(proxies: tuple[str, ...]):
    assert "203.0.113.7" == address_seen(proxies)


def test_of_several_hops_the_nearest_that_is_no_proxy_is_the_caller():
    forwarded = {"X-Forwarded-For": "198.51.100.1, 203.0.113.7, 10.1.2.3"}
    with live_server(Settings(proxies=("127.0.0.1", "10.0.0.0/8"))) as live:
        seen = live.client("viewer", user="1").get("user_info", headers=forwarded).json()["ip_address"]

    assert "203.0.113.7" == seen


@pytest.mark.parametrize(
    "said", ["rubbish", "", "203.0.113.7, unknown", "203.0.113.256", "fe80::1%rubbish", "203.0.113.7:x", "[::1", "a:1"]
)
def test_what_is_no_address_is_not_believed_of_a_named_proxy_either(said: str):
    with live_server(Settings(proxies=("127.0.0.1",))) as live:
        client = live.client("viewer", user="1")
        seen = client.get("user_info", headers={"X-Forwarded-For": said}).json()["ip_address"]

    assert "127.0.0.1" == seen


@pytest.mark.parametrize(
    ("said", "address"),
    [("2001:db8::7", "2001:db8::7"), ("[2001:db8::7]:443", "2001:db8::7"), ("203.0.113.7:443", "203.0.113.7")],
)
def test_an_address_may_come_with_a_port(said: str, address: str):
    with live_server(Settings(proxies=("127.0.0.1",))) as live:
        client = live.client("viewer", user="1")
        seen = client.get("user_info", headers={"X-Forwarded-For": said}).json()["ip_address"]

    assert address == seen


def test_strangers_behind_a_proxy_are_counted_one_by_one():
    settings = Settings(proxies=("127.0.0.1",), limits=Limits(caller_rate=1))
    with live_server(settings) as live, Client(base_url=f"{live.url}/v1/e/") as client:
        live.freeze()

        def asked(address: str, times: int) -> list[int]:
            headers = {"Authorization": CLIENT_ID, "X-Forwarded-For": address}
            return [client.post("link/pin", headers=headers).status_code for _ in range(times)]

        assert [*[200] * 50, 429] == asked("203.0.113.7", 51)
        assert [200] == asked("203.0.113.8", 1)


def test_the_control_api_goes_by_the_host_it_was_called_by():
    with live_server(Settings(proxies=("127.0.0.1",))) as live, Client(base_url=live.url) as client:
        forwarded = client.get("/_emulator/clock", headers={"Host": "evil.example", "X-Forwarded-Host": "localhost"})

    assert 403 == forwarded.status_code


@pytest.mark.parametrize("proxy", ["*", "0.0.0.0/0", "::/0", "proxy.example", "", "127.0.0.1/8"])
def test_what_is_no_address_is_refused_and_so_is_everybody(proxy: str):
    asked: dict[str, Any] = {"production": False, "data": "sqlite://", "extensions": None}

    with pytest.raises(ConfigurationError, match="--proxy"):
        read_settings(**asked, proxies=(proxy,))

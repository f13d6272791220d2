"""A web page of another origin uses the namespaces that exist, and creates none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from emulator.core.settings import Settings
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, RunningService, live_server

USER = {"app_id": CLIENT_ID, "channel_id": CHANNEL, "role": "viewer", "user_id": "1"}

FOREIGN = [
    *({"Origin": origin} for origin in ("https://page.example", "null", "http://127.0.0.1:1")),
    *({"Sec-Fetch-Site": site} for site in ("cross-site", "same-site")),
    {"Host": "rebound.example", "Sec-Fetch-Site": "same-origin"},
    {"Host": "rebound.example", "Origin": "http://rebound.example"},
    {"Host": "rebound.example:8282", "Sec-Fetch-Site": "none"},
    *({"Host": host} for host in ("127.0.0.1.rebound.example", "2130706433", "0.0.0.0", "[::ffff:0.0.0.0]", "[")),
    *({"Origin": origin} for origin in ("http://[", "//[", "http://127.0.0.1@[")),
]
"""Headers of requests from pages of other origins.

Some are of a page whose name has come to mean this machine, or that calls it by an address without a network.
"""
OWN = [
    {},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Host": "192.0.2.10:8282"},
    {"Host": "[2001:db8::1]"},
    {"Host": "LOCALHOST"},
]
"""Headers of programs, also on other machines, of addresses that a person types, and of the dashboard."""


@pytest.fixture
def client(live: LiveServer) -> Iterator[Client]:
    with Client(base_url=live.url) as client:
        yield client


def listed(client: Client) -> list[str]:
    return list(client.get("/_ns").raise_for_status().json()["namespaces"])


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_a_foreign_page_creates_no_namespace_and_can_read_why(client: Client, headers: dict[str, str]):
    for path in ("v1/e/vote", "_emulator/sdk.js", "", "v1/e/authtoken"):
        answer = client.get(f"/_ns/blue/{path}", headers=headers)

        assert (404, []) == (answer.status_code, listed(client))
        assert "extcli ns new blue" in answer.text
        assert "v1/e" not in path or "*" == answer.headers["access-control-allow-origin"]


@pytest.mark.parametrize("headers", OWN, ids=str)
def test_a_program_and_the_address_bar_create_a_namespace(client: Client, headers: dict[str, str]):
    client.get("/_ns/blue/v1/e/vote", headers=headers)

    assert ["blue"] == listed(client)


@pytest.mark.parametrize("headers", [{}, *FOREIGN], ids=str)
def test_a_preflight_creates_no_namespace_and_gets_a_response(client: Client, headers: dict[str, str]):
    answer = client.options("/_ns/blue/v1/e/vote", headers=headers)

    assert (200, "*") == (answer.status_code, answer.headers["access-control-allow-origin"])
    assert [] == listed(client)


@pytest.mark.parametrize("headers", FOREIGN[:5], ids=str)
def test_a_foreign_page_uses_a_namespace_that_exists(client: Client, live: LiveServer, headers: dict[str, str]):
    client.post("/_ns/blue").raise_for_status()
    viewer = RunningService(f"{live.url}/_ns/blue").client("viewer", user="1", channel=CHANNEL)

    assert 200 == viewer.post("vote", json={"value": 1}, headers=headers).status_code
    assert 200 == client.get("/_ns/blue/_emulator/sdk.js", headers=headers).status_code


def test_an_allowed_host_name_creates_a_namespace():
    with live_server(Settings(control_hosts=("service.internal",))) as live, Client(base_url=live.url) as client:
        for name, host in (("a", "service.internal"), ("b", "service.internal:8282"), ("c", "SERVICE.internal")):
            path = f"/_ns/{name}/v1/e/authtoken"
            assert 404 == client.post(path, json=USER, headers={"Host": f"x{host}"}).status_code
            assert 200 == client.post(path, json=USER, headers={"Host": host}).status_code


@pytest.mark.parametrize("origin", ["http://[", "//[", "\xff"])
@pytest.mark.parametrize("path", ["_emulator/clock", "_ns", "_emulator/ui/polls"])
def test_an_origin_that_is_no_url_is_foreign(client: Client, path: str, origin: str):
    assert 403 == client.get(f"/{path}", headers=[(b"Origin", origin.encode("latin-1"))]).status_code


@pytest.mark.parametrize("path", ["ws", "app/key"])
@pytest.mark.parametrize("origin", ["https://page.example", "http://["])
def test_a_socket_of_a_foreign_page_creates_no_namespace(client: Client, live: LiveServer, path: str, origin: Any):
    address = f"{live.url.replace('http', 'ws')}/_ns/blue/{path}"
    with pytest.raises(InvalidStatus) as refused:
        connect(address, origin=origin)

    assert (404, []) == (refused.value.response.status_code, listed(client))
    client.post("/_ns/blue").raise_for_status()
    with connect(address, origin="https://page.example"):
        assert ["blue"] == listed(client)

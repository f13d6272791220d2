"""A web page of another origin uses the namespaces that exist, and creates none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from support.service import CHANNEL, Client, LiveServer, RunningService

FOREIGN = [
    {"Origin": "https://page.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Host": "rebound.example", "Sec-Fetch-Site": "same-origin"},
    {"Host": "rebound.example", "Origin": "http://rebound.example"},
]
"""Headers of requests from pages of other origins. Two are of a page whose name has come to mean this machine."""
OWN = [{}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}, {"Host": "service.internal"}]
"""Headers of programs, of addresses that a person types, and of the dashboard."""


@pytest.fixture
def client(live: LiveServer) -> Iterator[Client]:
    with Client(base_url=live.url) as client:
        yield client


def listed(client: Client) -> list[str]:
    return list(client.get("/_ns").raise_for_status().json()["namespaces"])


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize("path", ["v1/e/vote", "_emulator/sdk.js", "", "v1/e/authtoken"])
def test_a_foreign_page_creates_no_namespace(client: Client, headers: dict[str, str], path: str):
    answer = client.get(f"/_ns/blue/{path}", headers=headers)

    assert (404, []) == (answer.status_code, listed(client))
    assert "extcli ns new blue" in answer.text


@pytest.mark.parametrize("headers", OWN, ids=str)
def test_a_program_and_the_address_bar_create_a_namespace(client: Client, headers: dict[str, str]):
    client.get("/_ns/blue/v1/e/vote", headers=headers)

    assert ["blue"] == listed(client)


def test_a_page_can_read_why_it_creates_no_namespace(client: Client):
    answer = client.post("/_ns/blue/v1/e/vote", headers={"Origin": "https://page.example"})

    assert (404, "*") == (answer.status_code, answer.headers["access-control-allow-origin"])


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


@pytest.mark.parametrize("path", ["ws", "app/key"])
def test_a_socket_of_a_foreign_page_creates_no_namespace(client: Client, live: LiveServer, path: str):
    address = f"{live.url.replace('http', 'ws')}/_ns/blue/{path}"
    with pytest.raises(InvalidStatus) as refused:
        connect(address, origin="https://page.example")

    assert (404, []) == (refused.value.response.status_code, listed(client))
    client.post("/_ns/blue").raise_for_status()
    with connect(address, origin="https://page.example"):
        assert ["blue"] == listed(client)


def test_a_namespace_that_a_foreign_page_used_and_that_was_dropped_is_gone(client: Client):
    client.post("/_ns/blue").raise_for_status()
    client.delete("/_ns/blue").raise_for_status()

    assert 404 == client.get("/_ns/blue/v1/e/vote", headers={"Sec-Fetch-Site": "cross-site"}).status_code

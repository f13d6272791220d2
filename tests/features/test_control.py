"""Access to monitoring and to the control API (operations, Watching and Controlling) (ruling W5)."""

from __future__ import annotations

import re

import pytest

from emulator.core.settings import Settings
from support.service import Client, LiveServer, live_server

CONTROL = [("GET", "/_emulator/clock"), ("POST", "/_emulator/clock"), ("POST", "/_emulator/reset")]
MONITORING = ["/_emulator/live", "/_emulator/ready", "/_emulator/metrics", "/schema/openapi.json"]


def statuses(client: Client, **headers: str) -> set[int]:
    return {client.request(method, path, content=b"{}", headers=headers).status_code for method, path in CONTROL}


def test_a_running_service_is_live_and_ready(stranger: Client):
    live, ready = stranger.get("/_emulator/live").json(), stranger.get("/_emulator/ready").json()

    assert {"status": "live"} == live
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", ready.pop("version"))
    assert {"status": "ready", "environment": "sandbox", "data": "sqlite"} == ready


@pytest.mark.parametrize("path", MONITORING)
def test_monitoring_accepts_any_host_in_both_environments(live: LiveServer, production: LiveServer, path: str):
    for service in (live, production):
        with Client(base_url=service.url, headers={"Host": "service.internal"}) as client:
            assert 200 == client.get(path).status_code


@pytest.mark.parametrize("host", ["LOCALHOST:8282", "127.9.9.9", "[::1]:8282", "[::1]"])
def test_the_control_api_accepts_loopback_hosts(stranger: Client, host: str):
    assert {200} == statuses(stranger, Host=host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "192.168.1.5",
        "0.0.0.0",
        "localhost.evil.example",
        "localhost@evil.example",
        "[fe80::1]",
        "[",
        "",
    ],
)
def test_control_refuses_other_hosts(stranger: Client, host: str):
    assert {403} == statuses(stranger, Host=host)


@pytest.mark.parametrize("host", ["evil.example#localhost", "127.0.0.1, evil.example", "localhost/x"])
def test_control_refuses_malformed_hosts(stranger: Client, host: str):
    assert {400} == statuses(stranger, Host=host)


def test_the_control_api_accepts_hosts_given_as_options():
    with live_server(Settings(control_hosts=("Emulator.CI",))) as live, Client(base_url=live.url) as client:
        assert {200} == statuses(client, Host="emulator.ci:8282")
        assert {200} == statuses(client, Host="emulator.ci", **{"X-Forwarded-For": "6.6.6.6"})
        assert {403} == statuses(client, Host="other.ci:8282")
        assert {403} == statuses(client, Host="localhost", **{"X-Forwarded-For": "6.6.6.6"})


FOREIGN = [
    {"X-Forwarded-For": "127.0.0.1, 6.6.6.6"},
    {"X-Forwarded-For": "2001:db8::1"},
    {"X-Forwarded-For": "unknown"},
    {"X-Real-IP": "6.6.6.6"},
    {"X-Forwarded-Host": "evil.example"},
    {"Forwarded": 'for="[2001:db8::1]:80";proto=http, for=127.0.0.1'},
    {"Forwarded": "proto=https"},
    *(
        {"Origin": each}
        for each in ("https://evil.example", "http://localhost:1", "null", "file://", "http://127.0.0.1")
    ),
    *({"Sec-Fetch-Site": each} for each in ("cross-site", "same-site")),
    *({"Origin": "null", "Sec-Fetch-Site": each} for each in ("cross-site", "same-site", "none")),
    {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_control_refuses_other_origins_and_clients_of_a_proxy(stranger: Client, viewer, headers: dict[str, str]):
    viewer().post("vote", json={"value": 1})

    assert {403} == statuses(stranger, Host="localhost", **headers)
    assert 1 == viewer().get("vote").json()["count"]


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "localhost:3000", "X-Forwarded-Proto": "https"},
        {"X-Forwarded-For": "::1, ::ffff:127.0.0.1, 127.0.0.1:99"},
        {"Forwarded": 'for="[::1]:4711";host="localhost:3000", For=127.0.0.1'},
        {"X-Forwarded-Proto": "https", "X-Forwarded-Port": "443"},
    ],
    ids=str,
)
def test_the_control_api_accepts_a_proxys_client_on_this_machine(stranger: Client, headers: dict[str, str]):
    assert {200} == statuses(stranger, Host="localhost", **headers)


def test_control_refuses_the_other_clients_of_a_trusted_proxy():
    with live_server(Settings(proxies=("127.0.0.1",))) as live, Client(base_url=live.url) as client:
        assert {403} == statuses(client, **{"X-Forwarded-For": "6.6.6.6"})
        assert {200} == statuses(client, **{"X-Forwarded-For": "127.0.0.1"})


def test_a_namespace_is_dropped_by_clients_on_this_machine_only(stranger: Client):
    dropped = [stranger.delete("/_ns/a", headers={"X-Forwarded-For": each}) for each in ("6.6.6.6", "127.0.0.1")]

    assert [403, 200] == [answer.status_code for answer in dropped]


def test_the_control_api_accepts_pages_of_its_own_origin(live: LiveServer, stranger: Client):
    assert {200} == statuses(stranger, Origin=live.url, **{"Sec-Fetch-Site": "same-origin"})


@pytest.mark.parametrize(
    "path",
    [
        *("/_emulator/clock", "/_emulator//clock/", "//_emulator/reset", "/_emulator/call", "/_emulator/faults"),
        *("/_emulator/journal", "/_emulator/seed", "/_ns/blue/v1/e/vote"),
    ],
)
def test_production_has_no_control_api(production: LiveServer, path: str):
    with Client(base_url=production.url) as client:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            answer = client.request(method, f"{production.url}{path}", content=b"{}")
            assert (404, "Not Found") == (answer.status_code, answer.json()["reason"])


def test_a_reset_resets_the_clock(live: LiveServer, stranger: Client):
    live.freeze()
    live.advance(3_600_000)

    live.reset()

    clock = stranger.get("/_emulator/clock").json()
    assert (0, False) == (clock["offset"], clock["frozen"])

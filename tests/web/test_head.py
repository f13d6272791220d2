"""HEAD is answered wherever GET is, and a 405 says which methods there are (ruling W9)."""

from __future__ import annotations

import http.client

import pytest

from emulator.core.settings import Settings
from emulator.feature_list import FEATURES
from support.service import Client, LiveServer, live_server

VOLATILE = {"date", "x-request-id", "transfer-encoding", "x-emulator-mark"}
READS = sorted(
    {each.path for feature in FEATURES for each in feature.endpoints if each.method == "GET" and "{" not in each.path}
)
ENDLESS = {"/_emulator/wait", "/_emulator/journal/stream"}
"""Their GET waits, or its body never ends."""
VARYING = {"/_emulator", "/_emulator/metrics", "/_emulator/clock"}
"""Their size varies, with the digits of counts, durations and times."""
OTHERS = [
    "/schema",
    "/schema/openapi.json",
    "/schema/viewer.js",
    "/_emulator/ui/polls",
    "/_emulator/ui/static/dashboard.css",
    "/_ns/other",
    "/_ns/other/_emulator/ready",
    "/_ns/other/v1/e/vote",
    "/v1/e/nothing",
    "/v1/e/codes/redeem",
    "//_emulator/ready",
    "/v1/e/vote?id=%",
]


def headers_of(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders() if name.lower() not in VOLATILE}


def test_head_has_the_status_and_headers_of_get_and_no_body(live: LiveServer, admin: Client):
    live.freeze()
    sent = {"Authorization": admin.headers["Authorization"]}
    connection = http.client.HTTPConnection(live.url.removeprefix("http://"), timeout=10)

    for path in (*(path for path in READS if path not in ENDLESS), *OTHERS):
        connection.request("GET", path, headers=sent)
        by_get = connection.getresponse()
        by_get.read()
        connection.request("HEAD", path, headers=sent)
        by_head = connection.getresponse()
        assert b"" == by_head.read()
        connection.request("GET", "/_emulator/live")  # a body would be read as this response
        assert b'{"status":"live"}' == connection.getresponse().read(), path

        expected, found = headers_of(by_get), headers_of(by_head)
        if path in VARYING:
            assert int(expected.pop("content-length")) // 2 <= int(found.pop("content-length"))
        assert (by_get.status, expected) == (by_head.status, found), path
    connection.close()


@pytest.mark.parametrize(
    "path", ["/_emulator/journal/stream", "/_emulator/ui/polls/events", "/v1/e/vote_logs", "/v1/e/accumulate"]
)
def test_head_of_a_stream_ends_at_once(live: LiveServer, admin: Client, stranger: Client, path: str):
    answer = stranger.head(path, headers={"Authorization": admin.headers["Authorization"]}, timeout=10)

    assert (200, b"") == (answer.status_code, answer.content)
    assert 0 == len(live.service.dispatcher.held)


def test_head_has_no_body_on_any_fast_way():
    with live_server(Settings(), hot=frozenset()) as live:
        responses = live.exchange(
            b"HEAD /v1/e/vote HTTP/1.1\r\nHost: x\r\n\r\n"
            b"HEAD /_emulator/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )

    assert 2 == responses.count(b"HTTP/1.1 ")
    assert responses.endswith(b"\r\n\r\n")
    assert b"{" not in responses


def test_a_refused_head_request_has_no_body(live: LiveServer):
    responses = live.exchange(b"HEAD /_emulator/live HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n")

    assert responses.startswith(b"HTTP/1.1 400 ")
    assert responses.endswith(b"\r\n\r\n")


def test_head_reads_metrics_and_readiness_in_production(production: LiveServer):
    stranger = Client(base_url=production.url, transport=production.connections)

    assert [200, 200] == [stranger.head(f"/_emulator/{path}").status_code for path in ("ready", "metrics")]
    assert 404 == stranger.head("/_emulator/clock").status_code


def test_a_405_lists_the_methods_of_the_path(stranger: Client):
    # A 405 lists the methods of the path
    for method, path, allowed in [
        ("PUT", "/v1/e/vote", {"DELETE", "GET", "HEAD", "OPTIONS", "POST"}),
        ("GET", "/v1/e/rank/x", set()),
        ("HEAD", "/_emulator/reset", {"POST"}),
        ("GET", "/_emulator/reset", {"POST"}),
        ("POST", "/_emulator/live", {"GET", "HEAD"}),
        ("OPTIONS", "/_emulator/live", {"GET", "HEAD"}),
        ("OPTIONS", "/", {"GET", "HEAD"}),
        ("OPTIONS", "/_emulator/nothing", set()),
        ("OPTIONS", "/nothing", set()),
        ("OPTIONS", "/_ns/unopened/_emulator/reset", {"POST"}),
        ("PUT", "/_emulator/ui/polls", {"GET", "HEAD", "POST"}),
        ("POST", "/schema/openapi.json", {"GET", "HEAD"}),
        ("OPTIONS", "/schema/docs", {"GET", "HEAD"}),
        ("POST", "/_emulator/sdk.js", {"GET", "HEAD", "OPTIONS"}),
        ("POST", "/_emulator/ui/overview", {"GET", "HEAD"}),
    ]:
        answer = stranger.request(method, path)

        listed = {each for each in answer.headers.get("allow", "").split(", ") if each}
        assert (405 if allowed else 404, allowed) == (answer.status_code, listed), path

    # A 405 of any method lists the methods
    for method in ["TRACE", "PURGE", "PROPFIND"]:
        for path in ["/v1/e/rank", "/_emulator/clock", "/_ns/other/v1/e/rank"]:
            answer = stranger.request(method, path)

            assert 405 == answer.status_code
            assert {"GET", "HEAD"} < set(answer.headers["allow"].split(", "))


@pytest.mark.parametrize(
    "effect", [{"effect": "truncate", "bytes": 1}, {"effect": "status", "status": 503}, {"effect": "delay", "delay": 1}]
)
def test_head_under_a_fault_has_the_head_of_get(live: LiveServer, stranger: Client, admin: Client, effect: dict):
    stranger.post("/_emulator/faults", json={"match": "GET /v1/e/channel_config", **effect}).raise_for_status()

    answer = admin.head("channel_config")

    assert effect.get("status", 200) == answer.status_code
    assert int(answer.headers["content-length"]) > 1
    assert b"" == answer.content

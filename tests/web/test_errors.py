"""Errors have one format everywhere, with the same error_of in `errors` and in `reason` and `info` (ruling W4)."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from support.service import Client, LiveServer, live_server

TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
    500: "Internal Service Error",
    503: "Service Unavailable",
}


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """Return the body of an error, after checking its format."""
    body = answer.json()
    assert "application/json" == answer.headers["content-type"]
    assert {"errors", "reason", "info"} == set(body)
    (entry,) = body["errors"]
    assert {"status": answer.status_code, "title": TITLES[answer.status_code], "detail": body["info"]} == entry
    assert body["reason"]
    assert body["info"]
    return dict(body)


def test_a_missing_credential_gets_401_with_the_expected_format(stranger: Client):
    error = error_of(stranger.get("/v1/e/vote"))

    assert "User was unauthorized to access this resource" == error["reason"]
    assert "missing Authorization header: '<client id> <JWT>' is expected" == error["info"]


def test_every_call_gets_503_without_internals_while_storage_is_down():
    with live_server() as live:
        admin = live.client("admin", user="1", channel="777")
        admin.get("vote").raise_for_status()
        live.run(close_engine(live))

        answers = [
            admin.get("vote"),
            admin.post("vote", json={"value": 1}),
            admin.get("all_state"),
            admin.patch("channel_state", json={}),
            admin.post("accumulate", json={}),
            admin.get("accumulate"),
            admin.get("vote_logs"),
            admin.get("rank"),
        ]

    assert {(503, "1")} == {(answer.status_code, answer.headers["retry-after"]) for answer in answers}
    assert {("Service Unavailable", "storage is unavailable; try again")} == {
        (error_of(each)["reason"], error_of(each)["info"]) for each in answers
    }


def test_the_service_is_live_but_not_ready_while_storage_is_down():
    with live_server() as live, Client(base_url=live.url) as client:
        live.run(close_engine(live))

        alive, ready = client.get("/_emulator/live"), client.get("/_emulator/ready")

    assert (200, 503) == (alive.status_code, ready.status_code)
    assert "1" == ready.headers["retry-after"]
    error_of(ready)


async def close_engine(live: LiveServer) -> None:
    """Close the engine under the service."""
    await live.service.engine.__aexit__(None, None, None)
    await asyncio.sleep(0)

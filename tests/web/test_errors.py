"""Without storage, calls get 503 and say nothing of the inside (ruling W4). `extcli conform` holds the format."""

from __future__ import annotations

import asyncio

from support.service import Client, LiveServer, live_server


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
        (each.json()["reason"], each.json()["info"]) for each in answers
    }


def test_the_service_is_live_but_not_ready_while_storage_is_down():
    with live_server() as live, Client(base_url=live.url) as client:
        live.run(close_engine(live))

        alive, ready = client.get("/_emulator/live"), client.get("/_emulator/ready")

    assert (200, 503) == (alive.status_code, ready.status_code)
    assert "1" == ready.headers["retry-after"]


async def close_engine(live: LiveServer) -> None:
    """Close the engine under the service."""
    await live.service.engine.__aexit__(None, None, None)
    await asyncio.sleep(0)

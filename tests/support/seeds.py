"""Applies seeds to a service."""

from __future__ import annotations

from typing import Any

from support.service import CHANNEL, CLIENT_ID, Client, LiveServer

PLACE = {"extcli": 1, "client_id": CLIENT_ID, "channel": CHANNEL}
CHRISTMAS = "2026-12-24T18:00:00Z"
CHRISTMAS_MS = 1_798_135_200_000


def apply(live: LiveServer, **parts: Any) -> dict[str, Any]:
    """Apply a seed and return the response."""
    with Client(base_url=live.url) as client:
        return dict(client.put("/_emulator/seed", json=PLACE | parts).raise_for_status().json())


def details(live: LiveServer, document: object) -> list[str]:
    """Apply a seed that must be refused with 400, and return the details of the errors."""
    with Client(base_url=live.url) as client:
        answer = client.put("/_emulator/seed", json=document)
    assert 400 == answer.status_code, answer.text
    return [error["detail"] for error in answer.json()["errors"]]

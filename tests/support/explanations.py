"""Reads explanations of refusals."""

from __future__ import annotations

from typing import Any

import httpx

from support.service import Client, LiveServer


def why(live: LiveServer, id: str) -> dict[str, Any]:
    """The explanation of a request."""
    with Client(base_url=live.url) as client:
        return dict(client.get("/_emulator/explain", params={"id": id}).raise_for_status().json()["explanation"])


def id_of(answer: httpx.Response) -> str:
    return answer.headers["x-request-id"]


def latest(live: LiveServer) -> dict[str, Any]:
    """The explanation of the latest refusal."""
    with Client(base_url=live.url) as client:
        return dict(client.get("/_emulator/explain").raise_for_status().json())

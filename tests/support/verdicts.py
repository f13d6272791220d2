"""Reads what the sandbox says about production."""

from __future__ import annotations

import httpx

from support.service import Client, LiveServer

VERDICT = "x-emulator-production"


def verdict(answer: httpx.Response) -> str:
    return answer.headers.get(VERDICT, "")


def vote(client: Client) -> str:
    """Vote, and return the verdict."""
    return verdict(client.post("vote?id=parity", json={"value": 1}).raise_for_status())


def rules(live: LiveServer, of: str = "namespace") -> dict[str, int]:
    """Return how often each verdict was given."""
    answer = httpx.get(f"{live.url}/_emulator/parity", params={"of": of}).raise_for_status().json()
    return {f"{each['verdict']} {each['rule']}": each["count"] for each in answer["rules"]}

"""Polls: casting, replacing, reading and clearing votes (Poll, Voting; rulings P1, P2, A3, A4, W8)."""

from __future__ import annotations

import httpx
import pytest

from support.service import Client


def cast(client: Client, value: object, where: str = "") -> dict:
    return client.post(f"vote{where}", json={"value": value}).raise_for_status().json()


def stats(client: Client, where: str = "") -> dict:
    return client.get(f"vote{where}").raise_for_status().json()["stats"]


def count(client: Client, where: str = "") -> int:
    return stats(client, where)["count"]


def reason(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


@pytest.mark.ruling("W8", "P6")
@pytest.mark.parametrize(
    "poll",
    ["a" * 65, "global-" + "a" * 58, "global-", "a.b", "a b", "a+b", "a%20b%26c", "%00", "a%00", "a%0A", "%0Aa",
     "caf%C3%A9", "%D9%A1", "%ff", "%ED%A0%80", "a/b", "..", "%2e%2e", "a'--", "*"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_invalid_poll_id_is_refused(broadcaster, method, poll):
    body = b'{"value":3}' if method == "POST" else b""

    answer = broadcaster.request(method, f"vote?id={poll}", content=body)

    assert (400, "Invalid poll id") == reason(answer)


@pytest.mark.ruling("A3")
def test_tokens_without_a_user_are_one_user_per_role(live):
    for role in ("viewer", "viewer", "admin", "backend", "backend"):
        poll = cast(live.client(role, channel="777"), 3)

    assert 3 == poll["stats"]["count"]

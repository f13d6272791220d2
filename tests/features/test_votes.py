"""Polls: casting, replacing, reading and clearing votes (Poll, Voting; rulings P1, P2, A3, A4, P6, W8)."""

from __future__ import annotations

import httpx
import pytest

from support.service import Client


def stats(client: Client, where: str = "") -> dict:
    return client.get(f"vote{where}").raise_for_status().json()["stats"]


def count(client: Client, where: str = "") -> int:
    return stats(client, where)["count"]


def reason(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


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


@pytest.mark.parametrize("poll", ["globalx", "global_x", "Global-x", "GLOBAL-x", "x-global-"])
def test_only_the_exact_prefix_makes_a_poll_global(viewer, poll):
    viewer().post(f"vote?id={poll}", json={"value": 3}).raise_for_status()

    assert 0 == count(viewer(channel="888"), f"?id={poll}")

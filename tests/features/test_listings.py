"""Polls, rankings and buffers are listed by channel: `polls`, `rankings` and `buffers`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.service import Client, LiveServer

LISTS = ("polls", "rankings", "buffers")


def add(client: Client, name: str, thing: str) -> None:
    """Vote in a poll, answer in a ranking or add to a buffer."""
    path, body = {"polls": ("vote", {"value": 1}), "rankings": ("rank", {"key": "a"}), "buffers": ("accumulate", 1)}[
        name
    ]
    client.post(path, params={"id": thing}, json=body).raise_for_status()


@pytest.fixture
def in_channel(live: LiveServer) -> Callable[[str], Client]:
    """A viewer of a channel."""
    return lambda channel: live.client("viewer", user="5551", channel=channel)


@pytest.mark.parametrize("name", LISTS)
def test_pages_follow_each_other(backend: Client, in_channel, name: str):
    expected = [(channel, thing) for channel in ("777", "888") for thing in ("a", "b", "c")]
    for channel, thing in reversed(expected):
        add(in_channel(channel), name, thing)

    pages, cursor = [], "0"
    while not pages or cursor != "0":
        answer = backend.get(name, params={"limit": 2, "cursor": cursor}).raise_for_status().json()
        pages.append([(each["channel_id"], each["id"]) for each in answer[name]])
        cursor = answer["next"]

    assert [expected[:2], expected[2:4], expected[4:]] == pages
    for query in ({"limit": "0"}, {"limit": "x"}, {"cursor": "x"}):
        refused = backend.get(name, params=query)
        assert (400, *query) == (refused.status_code, refused.json()["info"].partition(": ")[0])

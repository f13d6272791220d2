"""Accumulation buffers (Accumulation; rulings R2, R3, A4, W2)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator.core.callers import Role
from emulator.core.clock import DAY, HOUR
from emulator.core.settings import Limits, Settings
from emulator.features.accumulation import MAX_ENTRIES_PER_DAY
from support.people import Person
from support.service import CHANNEL, OTHER_ID, Client, LiveServer, live_server


def read(client: Client, where: str = "") -> dict:
    return client.get(f"accumulate{where}").raise_for_status().json()


# Entries of one user (ruling R2)


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveServer]:
    """A service that takes 4 entries a day of a viewer, and 6 of a broadcaster."""
    monkeypatch.setitem(MAX_ENTRIES_PER_DAY, Role.VIEWER, 4)
    monkeypatch.setitem(MAX_ENTRIES_PER_DAY, Role.BROADCASTER, 6)
    with live_server() as live:
        live.freeze()
        yield live


def added(client: Client, *buffers: str) -> list[int]:
    """Add an entry to each of these buffers, and return the statuses."""
    return [client.post("accumulate", params={"id": each}, json=1).status_code for each in buffers]


def test_one_viewer_adds_a_limited_number_of_entries_to_all_buffers(limited: LiveServer):
    def viewer(user: str, channel: str = CHANNEL, client_id: str = "my-extension") -> Client:
        return limited.client("viewer", user=user, channel=channel, client_id=client_id)

    assert [200] * 4 + [429] == added(viewer("1"), "a", "a", "b", "c", "a")
    assert [429] == added(viewer("1", "778"), "a")
    assert [200] == added(viewer("2"), "a")
    assert [200] == added(viewer("1", client_id=OTHER_ID), "a")
    assert [200] * 20 == added(limited.client("admin", channel=CHANNEL), *"a" * 20)
    assert [200] * 20 == added(limited.client("backend", channel=CHANNEL), *"a" * 20)
    limited.reset()
    assert [200] == added(viewer("1"), "a")


def test_a_refused_entry_says_when_to_retry(limited: LiveServer):
    client = limited.client("viewer", user="1", channel=CHANNEL)
    limited.set(limited.now() // DAY * DAY + DAY // 2)
    added(client, *"aaaa")

    refused = client.post("accumulate", json=1)

    assert (429, "accumulation.too_many_entries") == (refused.status_code, refused.headers["x-emulator-code"])
    assert "43200" == refused.headers["Retry-After"]


@pytest.mark.parametrize(("role", "most"), [("viewer", 4), ("broadcaster", 6)])
def test_at_most_two_days_of_entries_of_one_user_are_alive(limited: LiveServer, role: str, most: int):
    client, reader = (limited.client(each, user=CHANNEL, channel=CHANNEL) for each in (role, "admin"))
    limited.set(limited.now() // DAY * DAY + DAY // 2)
    alive = []
    for _ in range(60):
        added(client, *"aa")
        alive.append(len(read(reader, "?id=a")["data"]))
        limited.advance(HOUR)

    assert most < max(alive) <= 2 * most
    limited.advance(2 * DAY)
    assert [200] * most + [429] == added(client, *"a" * (most + 1))


def test_a_person_has_one_limit_of_entries_before_and_after_sharing(limited: LiveServer):
    person = Person(limited)

    assert [200, 200, 200, 200, 429] == [
        *added(person.anonymous, "a", "a"), *added(person.shared, "a"), *added(person.named, "a", "a"),
    ]  # fmt: skip


def test_invalid_entries_do_not_count(limited: LiveServer):
    client = limited.client("viewer", user="1", channel=CHANNEL)
    assert [400] * 5 == [client.post("accumulate", json="x" * 254).status_code for _ in range(5)]

    assert [200] * 4 + [429] == added(client, *"aaaaa")


def test_a_refused_entry_does_not_count(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(MAX_ENTRIES_PER_DAY, Role.VIEWER, 4)
    with live_server(Settings(limits=Limits(ids=4))) as live:  # one id for each viewer
        live.freeze()
        client = live.client("viewer", user="1", channel=CHANNEL)

        assert [200, 400, 400, 400, 400] == added(client, *"abcde")
        assert [200, 200, 200, 429] == added(client, *"aaaa")

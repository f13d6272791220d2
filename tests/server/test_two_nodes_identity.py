"""A person has one vote, whichever node their tokens reach (ruling A3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.config.settings import Settings
from engines.redis_server import RedisServer
from support.people import Person
from support.service import LiveServer, live_server

pytestmark = pytest.mark.slow


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[LiveServer, LiveServer]]:
    """Two nodes on the same data."""
    with RedisServer(tmp_path) as server:
        settings = Settings(data=server.url())
        with live_server(settings) as one, live_server(settings) as two:
            yield one, two


def test_a_person_known_to_another_node_keeps_the_one_vote(nodes: tuple[LiveServer, LiveServer]):
    one, two = nodes
    person = Person(one)
    named = person.on(two).named
    named.post("rank", json={"key": "blue"}).raise_for_status()  # node two has seen the shared id only
    person.vote(person.anonymous, 1)
    person.vote(person.shared, 2)

    there = person.vote(named, 3)

    assert (1, 3) == (there["count"], there["vote"])
    assert 1 == person.vote(person.shared, 4)["count"]


def test_a_new_opaque_id_counts_on_every_node_at_once(nodes: tuple[LiveServer, LiveServer]):
    one, two = nodes
    person = Person(one)
    for opaque_id in ("UFIRST", "USECOND"):
        person.client(user=person.shared_id, opaque=opaque_id).post("rank", json={"key": "blue"}).raise_for_status()

        assert opaque_id == person.on(two).named.get("user_info").json()["opaque_user_id"]

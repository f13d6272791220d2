"""Events that pages send with `pusher_broadcast` (rulings B1, B3, X8)."""

from __future__ import annotations

import json

import pytest

from support.broadcasts import (
    MESSAGE,
    PREFIX,
    assert_ok,
    error_of,
    events_of,
    subscribed_game,
)
from support.pusher_client import Broadcast, pusher_channel, subscribed_page
from support.service import CHANNEL, CLIENT_ID, real_seconds


@pytest.mark.parametrize("event", [f"{PREFIX}news", "sandbox:another-name:news", "ext:motd", "news", "production:x:y"])
def test_a_pages_event_keeps_its_name(admin, page, event):
    assert_ok(
        admin.post("pusher_broadcast", json={"event": event, "data": {}, "target": "broadcast", "user_id": CHANNEL})
    )

    assert [Broadcast(pusher_channel(), "broadcast", event, {}, True)] == page.broadcasts()


@pytest.mark.parametrize(
    ("event", "name"), [(f"{PREFIX}a:b", "a:b"), (f"{PREFIX}{'x' * 256}", "x" * 256), ("sandbox:other:news",) * 2]
)
def test_games_receive_a_pages_event_under_the_developers_name(admin, admin_game, event, name):
    assert_ok(admin.post("pusher_broadcast", json={"event": event, "data": 1}))

    assert [(name, 1, CHANNEL, "channel")] == events_of(admin_game)


@pytest.mark.parametrize("event", [PREFIX, f"{PREFIX}{'x' * 257}", f"{PREFIX}\n"])
def test_a_pages_event_needs_a_developers_name(admin, admin_game, page, event):
    assert (400, "Invalid event") == error_of(admin.post("pusher_broadcast", json={"event": event, "data": 1}))

    assert ([], []) == (page.broadcasts(), events_of(admin_game, 0))


def test_a_page_may_send_an_event_without_data(admin, admin_game, page):
    assert_ok(
        admin.post("pusher_broadcast", json={"event": f"{PREFIX}start", "target": "broadcast", "user_id": CHANNEL})
    )

    assert [("start", {}, CHANNEL, "channel")] == events_of(admin_game)
    frame = page.frame()
    assert {"event": f"{PREFIX}start"} == json.loads(json.loads(frame["data"])["message"])


def test_a_page_may_whisper(live, admin, page):
    with subscribed_game(live, "viewer", user="5551") as own:
        assert_ok(admin.post("pusher_broadcast", json={"event": f"{PREFIX}n", "data": 1, "target": "whisper-U5551"}))

        assert ["whisper"] == [each[3] for each in events_of(own)]
    assert ["whisper-5551", "whisper-U5551"] == sorted(each.target for each in page.broadcasts())


def test_in_sandbox_a_page_of_any_role_may_broadcast(live, page):
    for role in ("viewer", "no-such-role"):
        assert_ok(live.client(role, user=CHANNEL, channel=CHANNEL).post("pusher_broadcast", json=MESSAGE))

    assert 2 == len(page.broadcasts())


@pytest.mark.parametrize(
    ("role", "status"), [("viewer", 403), ("nobody", 403), ("broadcaster", 200), ("admin", 200), ("backend", 200)]
)
def test_in_production_a_page_needs_a_role_that_may_broadcast(production, role, status):
    client = production.client(role, user=CHANNEL, channel=CHANNEL, exp=real_seconds() + 600)

    with subscribed_page(production, auth=client.headers["Authorization"]) as page:
        assert status == client.post("pusher_broadcast", json=MESSAGE).status_code

        assert ["news"] * (status == 200) == [each.event for each in page.broadcasts()]


def test_in_production_the_name_of_an_event_starts_with_production(production):
    client = production.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=real_seconds() + 600)

    with subscribed_page(production, auth=client.headers["Authorization"]) as page:
        assert_ok(client.post("broadcast", json=MESSAGE))

        assert [f"production:{CLIENT_ID}:news"] == [each.event for each in page.broadcasts()]

"""Automatic events for pages after votes and writes to stores (ruling B5)."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from typing import Any

import pytest

from emulator.core.clock import SECOND
from emulator.core.extensions import Extension
from emulator.core.settings import Settings
from support.pusher_client import (
    Broadcast,
    PusherClient,
    decode_frame,
    parse_broadcast,
    pusher_channel,
    subscribed_page,
)
from support.service import (
    CHANNEL,
    CLIENT_ID,
    OTHER_ID,
    SECRET,
    Client,
    LiveServer,
    RunningService,
    live_server,
    real_seconds,
)

HERE, EVERYWHERE = pusher_channel(), pusher_channel("all")
PREFIX = f"sandbox:{CLIENT_ID}:"


@pytest.fixture
def page(live: LiveServer) -> Iterator[PusherClient]:
    """A page of channel 777. The clock is frozen, so that no update comes from passing time."""
    live.freeze()
    with subscribed_page(live) as page:
        yield page


@pytest.fixture
def broadcaster(live: LiveServer) -> Client:
    return live.client("broadcaster", user=CHANNEL, channel=CHANNEL)


def vote(live: RunningService, user: str, value: int, poll_id: str = "rps", channel: str | None = CHANNEL) -> None:
    client = live.client("viewer" if channel else "backend", user=user, channel=channel)
    client.post("vote", params={"id": poll_id}, json={"value": value}).raise_for_status()


def events(page: PusherClient) -> list[tuple[str, Any]]:
    """Return the developer's names and the data of all events since the last call, all sent to channel 777."""
    received = page.broadcasts()
    assert all((HERE, "broadcast") == (each.channel, each.target) for each in received)
    return [(each.event.removeprefix(PREFIX), each.data) for each in received]


def vote_event(page: PusherClient) -> Broadcast:
    """Wait for the next event; it is sent shortly after the vote's response."""
    return parse_broadcast(decode_frame(page.frame()))


def test_a_write_to_a_json_store_sends_its_id_and_value(page, broadcaster):
    broadcaster.post("json_store", params={"id": "motd"}, json={"text": "é"}).raise_for_status()
    broadcaster.post("json_store", params={"id": "motd"}, json={"text": "é"}).raise_for_status()

    assert [("json_store_update:motd", {"id": "motd", "value": {"text": "é"}})] * 2 == events(page)


@pytest.mark.parametrize("store", ["channel_state", "channel_config"])
def test_each_write_of_a_channel_store_sends_the_whole_store(page, broadcaster, store):
    broadcaster.post(store, json={"round": 1, "theme": "dark"}).raise_for_status()
    broadcaster.patch(store, json={"round": 2}).raise_for_status()
    broadcaster.patch(store, json=[{"op": "remove", "path": "/theme"}]).raise_for_status()

    assert [
        (f"{store}_update", {"round": 1, "theme": "dark"}),
        (f"{store}_update", {"round": 2, "theme": "dark"}),
        (f"{store}_update", {"round": 2}),
    ] == events(page)


def test_refused_writes_and_other_stores_send_nothing(page, broadcaster, live):
    assert 400 == broadcaster.post("channel_state", json=[]).status_code
    assert 400 == broadcaster.post("json_store", json=[]).status_code
    for store in ("viewer_state", "extension_viewer_state"):
        broadcaster.post(store, json={"a": 1}).raise_for_status()
    for store in ("extension_state", "extension_config", "extension_hidden_state"):
        live.client("backend", channel=CHANNEL).post(store, json={"a": 1}).raise_for_status()

    assert [] == events(page)


def test_a_vote_sends_the_statistics_of_the_poll(live, page):
    vote(live, "1", 2)

    event = vote_event(page)
    answer = live.client("viewer", user="1", channel=CHANNEL).get("vote", params={"id": "rps"}).json()
    assert (HERE, "broadcast", f"{PREFIX}vote_update:rps") == event[:3]
    assert {"id": "rps", "stats": answer["stats"]} == event.data


def test_votes_send_at_most_one_update_in_5_seconds_and_the_last_state(live, page):
    vote(live, "0", 1)
    first = vote_event(page).data["stats"]["count"]
    for user in range(1, 20):
        vote(live, str(user), 1)
    before = events(page)

    live.advance(5 * SECOND)  # sends what waits

    assert (1, [], 20) == (first, before, vote_event(page).data["stats"]["count"])
    assert [] == events(page)


def test_a_deleted_poll_sends_zeros(live, page, broadcaster):
    vote(live, "1", 1)
    vote_event(page)

    broadcaster.delete("vote", params={"id": "rps"}).raise_for_status()
    live.advance(5 * SECOND)

    assert 0 == vote_event(page).data["stats"]["count"]


def test_extension_wide_polls_and_stores_reach_the_pages_of_all_channels(live):
    backend = live.client("backend", user="9001")
    with subscribed_page(live, "888") as page:
        vote(live, "1", 3, "global-final")
        assert (EVERYWHERE, f"{PREFIX}vote_update:global-final") == vote_event(page)[::2][:2]

        backend.post("json_store", params={"id": "global_motd"}, json={"a": 1}).raise_for_status()
        assert [(EVERYWHERE, f"{PREFIX}json_store_update:global_motd")] == [each[::2][:2] for each in page.broadcasts()]


def test_pages_of_other_channels_and_extensions_receive_nothing(live, broadcaster):
    with subscribed_page(live, "888") as channel, subscribed_page(live, client_id=OTHER_ID) as extension:
        vote(live, "1", 1)
        vote(live, "1", 1, channel=None)  # belongs to no channel
        broadcaster.post("json_store", json={"a": 1}).raise_for_status()
        broadcaster.post("channel_state", json={"a": 1}).raise_for_status()
        live.advance(5 * SECOND)

        assert [] == channel.broadcasts()
        assert [f"sandbox:{OTHER_ID}:channel_state_update"] == [each.event for each in extension.broadcasts()]


def test_a_store_of_one_extension_reaches_only_its_own_pages():
    with (
        live_server(Settings(channel_stores_per_extension=True)) as live,
        subscribed_page(live) as page,
        subscribed_page(live, client_id=OTHER_ID) as other,
    ):
        broadcaster = live.client("broadcaster", user=CHANNEL, channel=CHANNEL)
        broadcaster.post("channel_state", json={"a": 1}).raise_for_status()

        assert ([("channel_state_update", {"a": 1})], []) == (events(page), other.broadcasts())


def test_only_pages_of_registered_extensions_receive_changes_of_a_shared_store():
    extensions = {each: Extension(each, (SECRET,)) for each in (CLIENT_ID, OTHER_ID)}
    with (
        live_server(Settings(extensions=extensions, registered_only=True)) as live,
        live.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=real_seconds() + 600) as broadcaster,
        subscribed_page(live, client_id=OTHER_ID) as page,
        subscribed_page(live, client_id="x") as unknown,
    ):
        broadcaster.post("channel_config", json={"a": 1}).raise_for_status()

        assert [f"sandbox:{OTHER_ID}:channel_config_update"] == [each.event for each in page.broadcasts()]
        assert [] == unknown.broadcasts()


@pytest.mark.parametrize(("size", "is_plain"), [(4_096, True), (4_097, False)])
def test_a_store_over_4096_bytes_is_compressed(page, broadcaster, size: int, is_plain: bool):
    state = {"text": "a" * (size - len('{"text":""}'))}
    broadcaster.post("channel_state", json=state).raise_for_status()

    (event,) = page.broadcasts()
    assert (state, is_plain) == (event.data, event.is_plain)


def test_a_store_too_large_for_a_broadcast_is_written_but_not_sent(page, broadcaster, caplog):
    state = {"text": "".join(random.Random(1).choices(string.ascii_letters, k=60_000))}
    for _ in range(2):
        broadcaster.post("channel_state", json=state).raise_for_status()

    assert state == broadcaster.get("channel_state").json()
    assert [] == events(page)
    (warning,) = [each.getMessage() for each in caplog.records if "pages" in each.getMessage()]
    assert f"pages of '{CLIENT_ID}' do not receive 'channel_state_update': data: 60011 bytes" in warning


def test_page_events_none_sends_only_broadcasts():
    with live_server(Settings(page_events=False)) as live, subscribed_page(live) as page:
        broadcaster = live.client("broadcaster", user=CHANNEL, channel=CHANNEL)
        vote(live, "1", 1)
        broadcaster.post("json_store", json={"a": 1}).raise_for_status()
        broadcaster.post("channel_state", json={"a": 1}).raise_for_status()
        live.advance(5 * SECOND)
        broadcaster.post("broadcast", json={"event": "news", "data": 1}).raise_for_status()

        assert [("news", 1)] == events(page)


def test_a_write_over_the_socket_sends_the_whole_store(page, game):
    game.data("set", "state", {"state_id": "channel", "state": {"round": 1}})
    game.data("patch", "config", {"config_id": "channel", "config": {"theme": "dark"}})

    assert [("channel_state_update", {"round": 1}), ("channel_config_update", {"theme": "dark"})] == events(page)

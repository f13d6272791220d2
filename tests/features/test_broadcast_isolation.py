"""Who receives an event: channels, extensions, namespaces and environments; and in which order (Events 2 to 5)."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from emulator.config.environment import PRODUCTION, SANDBOX
from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from support.broadcasts import (
    CALLS,
    MESSAGE,
    PREFIX,
    Audience,
    assert_ok,
    events_of,
    subscribed_game,
)
from support.process import server_process
from support.pusher_client import decode_frame, parse_broadcast, subscribed_page
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, SECRET, Client, RunningService, live_server, real_seconds

pytestmark = pytest.mark.slow


def test_an_extension_broadcast_reaches_every_channel_once(live, admin):
    with ExitStack() as stack:
        audiences = [Audience(stack, live, channel) for channel in (CHANNEL, "888", "all")]

        assert_ok(admin.post("extension_broadcast", json=MESSAGE))

        assert [["news"]] * 3 == [each.events() for each in audiences]


@pytest.mark.parametrize("call", [*CALLS, "pusher_broadcast"])
@pytest.mark.parametrize("other", [OTHER_ID, CLIENT_ID.upper(), f"{CLIENT_ID}2", f"{CLIENT_ID}.{CHANNEL}"])
def test_an_extension_receives_no_events_of_another(live, admin, call, other):
    with ExitStack() as stack:
        others = Audience(stack, live, client_id=other)

        for event in ("news", f"{PREFIX}news", f"sandbox:{other}:news"):
            assert_ok(admin.post(call, json={"event": event, "data": {}}))

        assert [] == others.events()


def test_a_late_subscriber_receives_no_earlier_events(live, admin):
    for call in [*CALLS, "pusher_broadcast"]:
        assert_ok(admin.post(call, json=MESSAGE))

    with ExitStack() as stack:
        assert [] == Audience(stack, live).events()


def test_a_namespace_receives_no_events_of_another(live, admin):
    blue = RunningService(f"{live.url}/_ns/blue")
    with ExitStack() as stack:
        stack.callback(Client().delete, blue.url)
        here, elsewhere = Audience(stack, live), Audience(stack, blue)

        assert_ok(admin.post("broadcast", json=MESSAGE | {"event": "here"}))
        assert_ok(
            blue.client("admin", channel=CHANNEL).post("extension_broadcast", json=MESSAGE | {"event": "elsewhere"})
        )

        assert (["here"], ["elsewhere"]) == (here.events(), elsewhere.events())


def test_sandbox_and_production_share_no_events_in_one_file(tmp_path: Path):
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
    exp = real_seconds() + 600
    with ExitStack() as stack:
        # Two of each, so that every event passes through the file, which orders them.
        receivers, senders = (
            {
                environment.name: stack.enter_context(
                    live_server(Settings(environment, f"sqlite:///{tmp_path}/data.db", extensions, has_peers=True))
                )
                for environment in (SANDBOX, PRODUCTION)
            }
            for _ in range(2)
        )
        auth = senders["production"].client("admin", channel=CHANNEL, exp=exp).headers["Authorization"]
        pages = {name: stack.enter_context(subscribed_page(live, auth=auth)) for name, live in receivers.items()}
        games = {
            name: stack.enter_context(subscribed_game(live, "viewer", exp=exp)) for name, live in receivers.items()
        }
        for name, live in senders.items():
            admin = live.client("admin", user="9001", channel=CHANNEL, exp=exp)
            for call in ("broadcast", "extension_broadcast"):
                assert_ok(admin.post(call, json={"event": "news", "data": name}))
            assert_ok(admin.post("pusher_broadcast", json={"event": f"sandbox:{CLIENT_ID}:x", "data": name}))
        for name, live in senders.items():
            end = {"event": "end", "data": name}
            assert_ok(live.client("admin", channel=CHANNEL, exp=exp).post("broadcast", json=end))

        received = {name: [game.update()["data"]["data"] for _ in range(4)] for name, game in games.items()}
        on_pages = {
            name: [parse_broadcast(decode_frame(page.frame())).data for _ in range(4)] for name, page in pages.items()
        }

        assert {"sandbox": ["sandbox"] * 4, "production": ["production"] * 4} == received == on_pages
        assert all(game.no_update() for game in games.values())
        assert [[], []] == [page.broadcasts() for page in pages.values()]


def test_pages_of_all_workers_receive_each_event_once(tmp_path: Path):
    with (
        server_process("--workers", "2", "--data", f"sqlite:///{tmp_path}/data.db") as served,
        ExitStack() as stack,
    ):
        pages = [stack.enter_context(subscribed_page(served)) for _ in range(12)]
        admin = served.client("admin", channel=CHANNEL)

        for number in range(20):
            assert_ok(admin.post("broadcast", json={"event": "hit", "data": number}))

        for page in pages:
            assert list(range(20)) == [parse_broadcast(decode_frame(page.frame())).data for _ in range(20)]
            assert [] == page.broadcasts()


@pytest.mark.parametrize("call", ["broadcast", "extension_broadcast", "whisper_self", "pusher_broadcast"])
def test_events_of_one_publisher_arrive_in_order(page, admin, admin_game, call):
    for number in range(100):
        assert_ok(admin.post(call, json={"event": f"{PREFIX}n" if call == "pusher_broadcast" else "n", "data": number}))

    received = [each.data for each in page.broadcasts() if each.target in ("broadcast", "whisper-U9001")]
    assert [list(range(100))] * 2 == [received, [each[1] for each in events_of(admin_game, 100)]]


def test_events_of_a_game_reach_pages_in_order(page, game):
    for number in range(100):
        game.send("broadcast", data={"topic": "n", "data": number})
    for _ in range(100):
        game.reply()

    assert list(range(100)) == [each.data for each in page.broadcasts()]

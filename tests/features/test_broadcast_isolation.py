"""Who receives an event: channels, extensions, namespaces and environments; and in which order (Events 2 to 5)."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from emulator.core.config.environment import PRODUCTION, SANDBOX
from emulator.core.config.extensions import Extension
from emulator.core.config.settings import Settings
from engines.redis_server import RedisServer
from support.broadcasts import (
    CALLS,
    MESSAGE,
    PREFIX,
    Audience,
    assert_ok,
    events_of,
    subscribed_game,
)
from support.pusher_client import decode_frame, parse_broadcast, subscribed_page
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, SECRET, Client, RunningService, live_server, real_seconds

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("call", [*CALLS, "pusher_broadcast"])
@pytest.mark.parametrize("other", [OTHER_ID, CLIENT_ID.upper(), f"{CLIENT_ID}2", f"{CLIENT_ID}.{CHANNEL}"])
def test_an_extension_receives_no_events_of_another(live, admin, call, other):
    with ExitStack() as stack:
        others = Audience(stack, live, client_id=other)

        for event in ("news", f"{PREFIX}news", f"sandbox:{other}:news"):
            assert_ok(admin.post(call, json={"event": event, "data": {}}))

        assert [] == others.events()


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


def test_sandbox_and_production_share_no_events_on_one_redis(tmp_path: Path):
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
    exp = real_seconds() + 600
    with ExitStack() as stack:
        # Two of each, so that every event passes through Redis, which orders them.
        data = stack.enter_context(RedisServer(tmp_path)).url()
        settings = [Settings(each, data, extensions) for each in (SANDBOX, PRODUCTION)]
        receivers, senders = ([stack.enter_context(live_server(each)) for each in settings] for _ in range(2))
        auth = senders[1].client("admin", channel=CHANNEL, exp=exp).headers["Authorization"]
        pages = [stack.enter_context(subscribed_page(live, auth=auth)) for live in receivers]
        games = [stack.enter_context(subscribed_game(live, "viewer", exp=exp)) for live in receivers]
        for number, live in enumerate(senders):
            admin = live.client("admin", user="9001", channel=CHANNEL, exp=exp)
            for call in ("broadcast", "extension_broadcast", "pusher_broadcast"):
                assert_ok(admin.post(call, json={"event": f"sandbox:{CLIENT_ID}:x", "data": number}))

        received = [[game.update()["data"]["data"] for _ in range(3)] for game in games]
        on_pages = [[parse_broadcast(decode_frame(page.frame())).data for _ in range(3)] for page in pages]

        assert [[0] * 3, [1] * 3] == received == on_pages
        assert all(game.no_update() for game in games)
        assert [[], []] == [page.broadcasts() for page in pages]


@pytest.mark.parametrize("call", ["broadcast", "extension_broadcast", "whisper_self", "pusher_broadcast"])
def test_events_of_one_publisher_arrive_in_order(page, admin, admin_game, call):
    for number in range(100):
        assert_ok(admin.post(call, json={"event": f"{PREFIX}n" if call == "pusher_broadcast" else "n", "data": number}))

    received = [each.data for each in page.broadcasts() if each.target in ("broadcast", "whisper-U9001")]
    assert [list(range(100))] * 2 == [received, [each[1] for each in events_of(admin_game, 100)]]

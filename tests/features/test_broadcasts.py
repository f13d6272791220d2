"""Broadcasts over REST: requests, targets, channels and roles (Broadcast; rulings B1, B3, B6, W6, X8).

`test_broadcast_sizes.py` covers the size of a message, `test_pusher.py` the Pusher protocol.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from emulator.core.environment import PRODUCTION, SANDBOX
from emulator.core.extensions import Extension
from emulator.core.settings import Settings
from engines.redis_server import RedisServer
from support.broadcasts import (
    CALLS,
    MESSAGE,
    PREFIX,
    REQUEST_FORMS,
    Audience,
    assert_ok,
    error_of,
    events_of,
    get_with_body,
    get_with_query,
    name_of,
    post,
    subscribed_game,
)
from support.pusher_client import Broadcast, decode_frame, parse_broadcast, pusher_channel, subscribed_page
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, SECRET, Client, RunningService, live_server, real_seconds


@pytest.mark.parametrize("send", REQUEST_FORMS, ids=name_of)
@pytest.mark.parametrize("call", CALLS)
def test_every_request_form_sends_an_event_and_returns_an_empty_object(admin, page, admin_game, call, send):
    assert_ok(send(admin, call, MESSAGE))

    whispered = call == "whisper_self"
    scope, channel_id = {"broadcast": ("channel", CHANNEL), "whisper_self": ("whisper", CHANNEL)}.get(
        call, ("extension", "")
    )
    assert [("news", MESSAGE["data"], channel_id, scope)] == events_of(admin_game)
    assert [
        Broadcast(pusher_channel(channel_id or "all"), target, f"{PREFIX}news", MESSAGE["data"], True)
        for target in (["whisper-U9001", "whisper-9001"] if whispered else ["broadcast"])
    ] == page.broadcasts()


@pytest.mark.parametrize("data", ["{", "NaN", '"\\ud800"', "[" * 2_000])
def test_malformed_json_in_the_query_is_refused(admin, data):
    assert (400, "Malformed data parameter") == error_of(admin.get("broadcast", params={"data": data}))


def test_a_body_takes_precedence_over_the_query(admin, admin_game):
    assert_ok(
        admin.request("GET", "broadcast", params={"event": "query", "data": "1"}, json={"event": "body", "data": 2})
    )

    assert [("body", 2)] == [each[:2] for each in events_of(admin_game)]


@pytest.mark.parametrize("data", [None, 0, False, "", [], {}, 1.5, "*", "é\U0001f600"])
def test_data_is_any_json_and_arrives_unchanged(admin, admin_game, page, data):
    assert_ok(admin.post("broadcast", json={"data": data}))

    assert [data] == [each[1] for each in events_of(admin_game)]
    assert [data] == [each.data for each in page.broadcasts()]


@pytest.mark.parametrize("target", ["", "whisper-", "Broadcast", "whisper-a\nb"])
@pytest.mark.parametrize("call", ["broadcast", "extension_broadcast", "pusher_broadcast"])
def test_an_unknown_target_is_refused(admin, page, call, target):
    assert (400, "Invalid target") == error_of(admin.post(call, json=MESSAGE | {"target": target}))

    assert [] == page.broadcasts()


@pytest.mark.parametrize("send", [get_with_body, get_with_query, post], ids=name_of)
@pytest.mark.parametrize("member", ["user_id", "channel_id"])
@pytest.mark.parametrize("channel", ["888", 888])
def test_admins_and_backends_may_name_the_channel_in_the_body(live, admin, backend, page, member, channel, send):
    with ExitStack() as stack:
        elsewhere = Audience(stack, live, "888")
        for client in (admin, backend):
            assert_ok(send(client, "broadcast", MESSAGE | {member: channel}))

        assert ["news", "news"] == elsewhere.events()
        assert [] == page.broadcasts()


@pytest.mark.parametrize("call", ["broadcast", "whisper_self", "pusher_broadcast"])
def test_an_extension_level_token_must_name_a_channel(backend, page, call):
    assert (400, "Invalid channel") == error_of(backend.post(call, json=MESSAGE))
    assert [] == page.broadcasts()

    assert_ok(backend.post(call, params={"channel_id": CHANNEL}, json=MESSAGE))
    assert {pusher_channel()} == {each.channel for each in page.broadcasts()}


def test_whispers_of_a_game_reach_pages_under_both_spellings(page, game):
    game.data("broadcast", data={"topic": "n", "data": 1, "ids": ["5551", "Axyz"]})

    assert {"whisper-5551", "whisper-U5551", "whisper-Axyz"} <= {each.target for each in page.broadcasts()}


# Events that pages send


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


# Who receives nothing, and in which order


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "other"),
    [
        *((call, OTHER_ID) for call in (*CALLS, "pusher_broadcast")),
        *(("broadcast", other) for other in (CLIENT_ID.upper(), f"{CLIENT_ID}2", f"{CLIENT_ID}.{CHANNEL}")),
    ],
)
def test_an_extension_receives_no_events_of_another(live, admin, call, other):
    with ExitStack() as stack:
        others = Audience(stack, live, client_id=other)

        for event in ("news", f"{PREFIX}news", f"sandbox:{other}:news"):
            assert_ok(admin.post(call, json={"event": event, "data": {}}))

        assert [] == others.events()


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("call", ["broadcast", "extension_broadcast", "whisper_self", "pusher_broadcast"])
def test_events_of_one_publisher_arrive_in_order(page, admin, admin_game, call):
    for number in range(100):
        assert_ok(admin.post(call, json={"event": f"{PREFIX}n" if call == "pusher_broadcast" else "n", "data": number}))

    received = [each.data for each in page.broadcasts() if each.target in ("broadcast", "whisper-U9001")]
    assert [list(range(100))] * 2 == [received, [each[1] for each in events_of(admin_game, 100)]]

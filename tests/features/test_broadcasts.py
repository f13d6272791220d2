"""Broadcasts over REST: requests, targets, channels and roles (Broadcast; rulings B1, B3, B6, W6, X8).

`test_broadcast_sizes.py` covers the size of a message, `test_pusher.py` the Pusher protocol.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest

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
from support.pusher_client import Broadcast, pusher_channel, subscribed_page
from support.service import CHANNEL


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


@pytest.mark.parametrize("spelling", ["5551", "U5551"])
@pytest.mark.parametrize("call", ["broadcast", "extension_broadcast"])
def test_a_whisper_reaches_only_its_user_under_both_spellings(live, admin, call, spelling):
    channel_id, name = (CHANNEL, CHANNEL) if call == "broadcast" else ("", "all")
    with (
        subscribed_game(live, "viewer", user="5551") as own,
        subscribed_game(live, "viewer", opaque="U5551") as unshared,
        subscribed_game(live, "viewer", user="5552") as others,
        subscribed_page(live) as page,
    ):
        assert_ok(admin.post(call, json=MESSAGE | {"target": f"whisper-{spelling}"}))

        assert [[("news", MESSAGE["data"], channel_id, "whisper")]] * 2 == [events_of(each) for each in (own, unshared)]
        assert [] == events_of(others, 0)
        targets = [each.target for each in page.broadcasts() if each.channel == pusher_channel(name)]
        assert ["whisper-5551", "whisper-U5551"] == sorted(targets)


@pytest.mark.parametrize(("claims", "target"), [({"user": "5551"}, "U5551"), ({"opaque": "Axyz"}, "Axyz")])
def test_whisper_self_reaches_only_the_callers_clients_in_the_channel(live, page, claims, target):
    with (
        subscribed_game(live, "viewer", **claims) as own,
        subscribed_game(live, "viewer", **claims, channel="888") as elsewhere,
        subscribed_game(live, "viewer", user="5552") as others,
    ):
        assert_ok(live.client("viewer", channel=CHANNEL, **claims).post("whisper_self", json=MESSAGE))

        assert [("news", MESSAGE["data"], CHANNEL, "whisper")] == events_of(own)
        assert [[], []] == [events_of(each, 0) for each in (elsewhere, others)]
        assert f"whisper-{target}" in [each.target for each in page.broadcasts()]


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


@pytest.mark.parametrize("send", [get_with_body, get_with_query, post], ids=name_of)
@pytest.mark.parametrize("member", ["user_id", "channel_id"])
@pytest.mark.parametrize("call", ["broadcast", "pusher_broadcast"])
def test_a_broadcaster_may_not_broadcast_to_another_channel(live, broadcaster, page, member, call, send):
    if call == "pusher_broadcast":
        send = post
    with ExitStack() as stack:
        elsewhere = Audience(stack, live, "888")

        assert (403, "role is not authorized") == error_of(send(broadcaster, call, MESSAGE | {member: "888"}))

        assert ([], []) == (elsewhere.events(), page.broadcasts())


@pytest.mark.parametrize("call", ["broadcast", "whisper_self", "pusher_broadcast"])
def test_an_extension_level_token_must_name_a_channel(backend, page, call):
    assert (400, "Invalid channel") == error_of(backend.post(call, json=MESSAGE))
    assert [] == page.broadcasts()

    assert_ok(backend.post(call, params={"channel_id": CHANNEL}, json=MESSAGE))
    assert {pusher_channel()} == {each.channel for each in page.broadcasts()}


def test_whispers_of_a_game_reach_pages_under_both_spellings(page, game):
    game.data("broadcast", data={"topic": "n", "data": 1, "ids": ["5551", "Axyz"]})

    assert {"whisper-5551", "whisper-U5551", "whisper-Axyz"} <= {each.target for each in page.broadcasts()}

"""Broadcasts over REST: who may send them, and who hears them as what (Broadcast; Events 2-5; rulings B1, B3, W6, X8).

How large they may be is in `test_broadcast_sizes.py`, the wire that pages speak in `test_pages.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from emulator.config.environment import PRODUCTION, SANDBOX
from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from support.process import server_process
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
from support.socket_client import SocketClient, linked_game

CALLS = ["broadcast", "extension_broadcast", "broadcast_extension", "whisper_self"]
FULL = f"sandbox:{CLIENT_ID}:"
"""What comes before the developer's name of an event."""
MESSAGE = {"event": "news", "data": {"é": [1, None, {"deep": True}]}}

Send = Callable[[Client, str, dict[str, Any]], httpx.Response]


def get_with_a_body(client: Client, call: str, body: dict[str, Any]) -> httpx.Response:
    return client.request("GET", call, json=body)


def get_with_a_query(client: Client, call: str, body: dict[str, Any]) -> httpx.Response:
    return client.get(call, params=body | ({"data": json.dumps(body["data"])} if "data" in body else {}))


def post(client: Client, call: str, body: dict[str, Any]) -> httpx.Response:
    return client.post(call, json=body)


def post_as_a_form(client: Client, call: str, body: dict[str, Any]) -> httpx.Response:
    form = {"Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"}
    return client.post(call, content=json.dumps(body), headers=form)


def post_encoded_twice(client: Client, call: str, body: dict[str, Any]) -> httpx.Response:
    return client.post(call, json=json.dumps(body))


def post_in_pieces(client: Client, call: str, body: dict[str, Any]) -> httpx.Response:
    return client.post(call, content=(bytes([each]) for each in json.dumps(body).encode()))


WAYS = [get_with_a_body, get_with_a_query, post, post_as_a_form, post_encoded_twice, post_in_pieces]


def of(way: Send) -> str:
    """Its name, for a test's."""
    return way.__name__


def done(answer: httpx.Response) -> None:
    """The call succeeded, which an empty object says."""
    assert (200, "application/json", {}) == (answer.status_code, answer.headers["content-type"], answer.json())


def refused(answer: httpx.Response) -> tuple[int, str]:
    """Status and reason of a call that failed."""
    assert answer.json()["info"]
    return answer.status_code, answer.json()["reason"]


def game_of(live: RunningService, role: str, client_id: str = CLIENT_ID, **claims: Any) -> SocketClient:
    """A game with the rights of a self-signed token, which follows all events."""
    client = live.client(role, client_id=client_id, **{"channel": CHANNEL} | claims)
    game = SocketClient(live, f"/0.2.0/{client_id}")
    game.data("authenticate", data={"client_id": client_id, "jwt": client.headers["Authorization"].split()[1]})
    game.data("subscribe", "*")
    return game


def told(game: SocketClient, number: int = 1) -> list[Any]:
    """Event, data, channel and scope of the next so many updates; and the proof that there are no more."""
    updates = [game.update() for _ in range(number)]
    assert game.no_update()
    assert [each["meta"]["target"] for each in updates] == [each["data"]["event"] for each in updates]
    return [tuple(each["data"][name] for name in ("event", "data", "channel_id", "scope")) for each in updates]


@pytest.fixture
def page(live: LiveServer) -> Iterator[PusherClient]:
    """A page of the extension in channel 777."""
    with subscribed_page(live) as page:
        yield page


@pytest.fixture
def admin_game(live: LiveServer) -> Iterator[SocketClient]:
    """A game with the rights and the name of the admin, that follows all events of channel 777."""
    with game_of(live, "admin", user="9001") as game:
        yield game


class Audience:
    """A page and a game, in some channel of some extension."""

    def __init__(
        self, stack: ExitStack, live: RunningService, channel: str = CHANNEL, client_id: str = CLIENT_ID
    ) -> None:
        self.page = stack.enter_context(subscribed_page(live, channel, client_id))
        self.game = stack.enter_context(game_of(live, "viewer", client_id, user="5551", channel=channel))

    def broadcasts(self) -> list[str]:
        """The developers' names of all that both have heard, which must be the same."""
        names = [each.event.rpartition(":")[2] for each in self.page.broadcasts()]
        assert names == [each[0] for each in told(self.game, len(names))]
        return names


# How a call is made


@pytest.mark.ruling("W6")
@pytest.mark.parametrize("way", WAYS, ids=of)
@pytest.mark.parametrize("call", CALLS)
def test_each_call_is_taken_in_every_way_and_answered_by_an_empty_object(admin, page, admin_game, call, way):
    done(way(admin, call, MESSAGE))

    whispered = call == "whisper_self"
    scope, place = {"broadcast": ("channel", CHANNEL), "whisper_self": ("whisper", CHANNEL)}.get(
        call, ("extension", "")
    )
    assert [("news", MESSAGE["data"], place, scope)] == told(admin_game)
    assert [
        Broadcast(pusher_channel(place or "all"), target, f"{FULL}news", MESSAGE["data"], True)
        for target in (["whisper-U9001", "whisper-9001"] if whispered else ["broadcast"])
    ] == page.broadcasts()


@pytest.mark.ruling("W6")
@pytest.mark.parametrize("way", WAYS, ids=of)
@pytest.mark.parametrize("call", CALLS)
def test_a_message_without_an_event_is_of_the_event_default(admin, admin_game, call, way):
    done(way(admin, call, {"data": 1}))

    assert ["default"] == [each[0] for each in told(admin_game)]


@pytest.mark.ruling("W6")
@pytest.mark.parametrize("way", WAYS, ids=of)
@pytest.mark.parametrize("call", CALLS)
def test_a_message_without_data_is_refused(admin, admin_game, page, call, way):
    assert (400, "Invalid body") == refused(way(admin, call, {"event": "news"}))

    assert ([], []) == (told(admin_game, 0), page.broadcasts())


@pytest.mark.ruling("W6")
def test_a_get_with_neither_body_nor_query_lacks_its_data(admin):
    assert [(400, "Invalid body")] * 4 == [refused(admin.get(call)) for call in CALLS]


@pytest.mark.ruling("W6")
@pytest.mark.parametrize("data", ["{", "{'a':1}", "NaN", "hello", '"\\ud800"', "[" * 2_000])
def test_data_of_a_query_that_is_no_json_is_refused(admin, data):
    assert (400, "Malformed data parameter") == refused(admin.get("broadcast", params={"data": data}))


@pytest.mark.ruling("W6")
def test_a_body_goes_before_the_query(admin, admin_game):
    done(admin.request("GET", "broadcast", params={"event": "query", "data": "1"}, json={"event": "body", "data": 2}))

    assert [("body", 2)] == [each[:2] for each in told(admin_game)]


@pytest.mark.parametrize("data", [None, 0, False, "", [], {}, "text", 1.5, {"a": {"b": [None]}}])
def test_data_is_any_json_and_comes_as_it_was_sent(admin, admin_game, page, data):
    done(admin.post("broadcast", json={"data": data}))

    assert [data] == [each[1] for each in told(admin_game)]
    assert [data] == [each.data for each in page.broadcasts()]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("[]", "Invalid body"),
        ("7", "Invalid body"),
        ('{"data":', "Malformed json body"),
        ('{"data":{},"event":7}', "Invalid body"),
        ('{"data":{},"event":null}', "Invalid body"),
        ('{"data":{},"target":["broadcast"]}', "Invalid body"),
        ('{"data":{},"user_id":[]}', "Invalid body"),
        ('{"data":{},"user_id":true}', "Invalid body"),
        ('{"data":NaN}', "Malformed json body"),
    ],
)
@pytest.mark.parametrize("call", ["broadcast", "extension_broadcast", "whisper_self", "pusher_broadcast"])
def test_a_body_that_does_not_fit_is_refused(admin, call, body, reason):
    assert (400, reason) == refused(admin.post(call, content=body))


@pytest.mark.parametrize("event", ["", "x" * 257, "new\nline", "\0", "\u2028"])
@pytest.mark.parametrize("call", [*CALLS, "pusher_broadcast"])
def test_an_event_has_a_name_of_1_to_256_printable_characters(admin, page, call, event):
    assert (400, "Invalid event") == refused(admin.post(call, json={"event": event, "data": {}}))

    assert [] == page.broadcasts()


@pytest.mark.parametrize("event", ["x" * 256, "é\U0001f600", "vote_update:round-7", "*", "a b/c.d", f"{FULL}news"])
def test_any_printable_name_is_an_event(admin, admin_game, page, event):
    done(admin.post("broadcast", json={"event": event, "data": {}}))

    assert [event] == [each[0] for each in told(admin_game)]
    assert [FULL + event] == [each.event for each in page.broadcasts()]


# Targets


@pytest.mark.ruling("B3")
@pytest.mark.parametrize("spelling", ["5551", "U5551"])
@pytest.mark.parametrize("call", ["broadcast", "extension_broadcast"])
def test_a_whisper_reaches_its_user_under_both_spellings_and_nobody_else(live, admin, call, spelling):
    place, name = (CHANNEL, CHANNEL) if call == "broadcast" else ("", "all")
    with (
        game_of(live, "viewer", user="5551") as theirs,
        game_of(live, "viewer", opaque="U5551") as unshared,
        game_of(live, "viewer", user="5552") as others,
        subscribed_page(live) as page,
    ):
        done(admin.post(call, json=MESSAGE | {"target": f"whisper-{spelling}"}))

        assert [[("news", MESSAGE["data"], place, "whisper")]] * 2 == [told(each) for each in (theirs, unshared)]
        assert [] == told(others, 0)
        targets = [each.target for each in page.broadcasts() if each.channel == pusher_channel(name)]
        assert ["whisper-5551", "whisper-U5551"] == sorted(targets)


@pytest.mark.ruling("B3")
@pytest.mark.parametrize(("claims", "target"), [({"user": "5551"}, "U5551"), ({"opaque": "Axyz"}, "Axyz")])
def test_whisper_self_reaches_the_callers_own_clients_in_the_channel_only(live, page, claims, target):
    with (
        game_of(live, "viewer", **claims) as own,
        game_of(live, "viewer", **claims, channel="888") as elsewhere,
        game_of(live, "viewer", user="5552") as others,
    ):
        done(live.client("viewer", channel=CHANNEL, **claims).post("whisper_self", json=MESSAGE))

        assert [("news", MESSAGE["data"], CHANNEL, "whisper")] == told(own)
        assert [[], []] == [told(each, 0) for each in (elsewhere, others)]
        assert f"whisper-{target}" in [each.target for each in page.broadcasts()]


@pytest.mark.parametrize(
    "target", ["", "whisper", "whisper-", "Broadcast", "global", "whisper-a\nb", "whisper-" + "x" * 257]
)
@pytest.mark.parametrize("call", ["broadcast", "extension_broadcast", "pusher_broadcast"])
def test_another_target_is_refused(admin, page, call, target):
    assert (400, "Invalid target") == refused(admin.post(call, json=MESSAGE | {"target": target}))

    assert [] == page.broadcasts()


def test_whisper_self_does_not_look_at_a_target(admin, page):
    done(admin.post("whisper_self", json=MESSAGE | {"target": "broadcast"}))

    assert {"whisper-9001", "whisper-U9001"} == {each.target for each in page.broadcasts()}


# Channels


@pytest.mark.ruling("B1")
@pytest.mark.parametrize("way", [get_with_a_body, get_with_a_query, post], ids=of)
@pytest.mark.parametrize("member", ["user_id", "channel_id"])
@pytest.mark.parametrize("channel", ["888", 888])
def test_admin_and_backend_name_the_channel_in_the_body(live, admin, backend, page, member, channel, way):
    with ExitStack() as stack:
        there = Audience(stack, live, "888")
        for client in (admin, backend):
            done(way(client, "broadcast", MESSAGE | {member: channel}))

        assert ["news", "news"] == there.broadcasts()
        assert [] == page.broadcasts()


@pytest.mark.ruling("B1")
def test_a_broadcaster_may_name_their_own_channel(broadcaster, page):
    for body in ({}, {"user_id": CHANNEL}, {"channel_id": int(CHANNEL)}):
        done(broadcaster.post("broadcast", json=MESSAGE | body))

    assert 3 == len(page.broadcasts())


@pytest.mark.ruling("B1")
@pytest.mark.parametrize("way", [get_with_a_body, get_with_a_query, post], ids=of)
@pytest.mark.parametrize("member", ["user_id", "channel_id"])
@pytest.mark.parametrize("call", ["broadcast", "pusher_broadcast"])
def test_a_broadcaster_may_not_broadcast_to_another_channel(live, broadcaster, page, member, call, way):
    if call == "pusher_broadcast":
        way = post
    with ExitStack() as stack:
        there = Audience(stack, live, "888")

        assert (403, "role is not authorized") == refused(way(broadcaster, call, MESSAGE | {member: "888"}))

        assert ([], []) == (there.broadcasts(), page.broadcasts())


@pytest.mark.ruling("B1")
@pytest.mark.parametrize("call", ["broadcast", "whisper_self", "pusher_broadcast"])
def test_an_extension_level_token_has_to_name_a_channel(backend, page, call):
    assert (400, "Invalid channel") == refused(backend.post(call, json=MESSAGE))

    assert [] == page.broadcasts()


@pytest.mark.ruling("B1")
@pytest.mark.parametrize("call", ["broadcast", "whisper_self", "pusher_broadcast"])
def test_an_extension_level_token_may_name_the_channel_in_the_query(backend, page, call):
    done(backend.post(call, params={"channel_id": CHANNEL}, json=MESSAGE))

    assert {pusher_channel()} == {each.channel for each in page.broadcasts()}


@pytest.mark.ruling("B1")
def test_an_extension_level_token_may_send_to_the_whole_extension(backend, page):
    done(backend.post("extension_broadcast", json=MESSAGE))

    assert [pusher_channel("all")] == [each.channel for each in page.broadcasts()]


@pytest.mark.ruling("B1")
@pytest.mark.parametrize("name", ["user_id", "channel_id"])
@pytest.mark.parametrize("channel", ["x" * 65, "7\n7"])
def test_a_channel_has_a_name_of_at_most_64_printable_characters(admin, name, channel):
    assert (400, "Invalid body") == refused(admin.post("broadcast", json=MESSAGE | {name: channel}))


def test_a_message_to_a_channel_is_heard_in_no_other(live, admin):
    with ExitStack() as stack:
        here, there = Audience(stack, live), Audience(stack, live, "888")

        done(admin.post("broadcast", json=MESSAGE))

        assert (["news"], []) == (here.broadcasts(), there.broadcasts())


def test_a_message_to_the_extension_is_heard_in_every_channel_once(live, admin):
    with ExitStack() as stack:
        audiences = [Audience(stack, live, channel) for channel in (CHANNEL, "888", "all")]

        done(admin.post("extension_broadcast", json=MESSAGE))

        assert [["news"]] * 3 == [each.broadcasts() for each in audiences]


# Who never hears whom


@pytest.mark.parametrize("call", [*CALLS, "pusher_broadcast"])
@pytest.mark.parametrize("other", [OTHER_ID, CLIENT_ID.upper(), f"{CLIENT_ID}2", f"{CLIENT_ID}.{CHANNEL}"])
def test_an_extension_never_hears_another(live, admin, call, other):
    with ExitStack() as stack:
        others = Audience(stack, live, client_id=other)

        for event in ("news", f"{FULL}news", f"sandbox:{other}:news"):
            done(admin.post(call, json={"event": event, "data": {}}))

        assert [] == others.broadcasts()


def test_nothing_is_kept_for_those_who_come_later(live, admin):
    for call in [*CALLS, "pusher_broadcast"]:
        done(admin.post(call, json=MESSAGE))

    with ExitStack() as stack:
        assert [] == Audience(stack, live).broadcasts()


def test_a_namespace_never_hears_another(live, admin):
    blue = RunningService(f"{live.url}/_ns/blue")
    with ExitStack() as stack:
        stack.callback(Client().delete, blue.url)
        here, there = Audience(stack, live), Audience(stack, blue)

        done(admin.post("broadcast", json=MESSAGE | {"event": "here"}))
        done(blue.client("admin", channel=CHANNEL).post("extension_broadcast", json=MESSAGE | {"event": "there"}))

        assert (["here"], ["there"]) == (here.broadcasts(), there.broadcasts())


def test_sandbox_and_production_never_hear_each_other_even_in_one_file(tmp_path: Path):
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
    exp = real_seconds() + 600
    with ExitStack() as stack:
        # Two of each, so that what one says has to pass through the file, where all of it is in one order.
        hearing, saying = (
            {
                environment.name: stack.enter_context(
                    live_server(Settings(environment, f"sqlite:///{tmp_path}/data.db", extensions, has_peers=True))
                )
                for environment in (SANDBOX, PRODUCTION)
            }
            for _ in range(2)
        )
        pages = {name: stack.enter_context(subscribed_page(live)) for name, live in hearing.items()}
        games = {name: stack.enter_context(game_of(live, "viewer", exp=exp)) for name, live in hearing.items()}
        for name, live in saying.items():
            admin = live.client("admin", user="9001", channel=CHANNEL, exp=exp)
            for call in ("broadcast", "extension_broadcast"):
                done(admin.post(call, json={"event": "news", "data": name}))
            done(admin.post("pusher_broadcast", json={"event": f"sandbox:{CLIENT_ID}:x", "data": name}))
        for name, live in saying.items():
            end = {"event": "end", "data": name}
            done(live.client("admin", channel=CHANNEL, exp=exp).post("broadcast", json=end))

        heard = {name: [game.update()["data"]["data"] for _ in range(4)] for name, game in games.items()}
        shown = {
            name: [parse_broadcast(decode_frame(page.frame())).data for _ in range(4)] for name, page in pages.items()
        }

        assert {"sandbox": ["sandbox"] * 4, "production": ["production"] * 4} == heard == shown
        assert all(game.no_update() for game in games.values())
        assert [[], []] == [page.broadcasts() for page in pages.values()]


def test_pages_of_all_workers_hear_each_message_once(tmp_path: Path):
    with (
        server_process("--workers", "2", "--data", f"sqlite:///{tmp_path}/data.db") as served,
        ExitStack() as stack,
    ):
        pages = [stack.enter_context(subscribed_page(served)) for _ in range(12)]
        admin = served.client("admin", channel=CHANNEL)

        for number in range(20):
            done(admin.post("broadcast", json={"event": "hit", "data": number}))

        for page in pages:
            assert list(range(20)) == [parse_broadcast(decode_frame(page.frame())).data for _ in range(20)]
            assert [] == page.broadcasts()


# Order


@pytest.mark.parametrize("call", ["broadcast", "extension_broadcast", "whisper_self", "pusher_broadcast"])
def test_messages_of_one_publisher_come_in_the_order_in_which_they_were_sent(page, admin, admin_game, call):
    for number in range(100):
        done(admin.post(call, json={"event": f"{FULL}n" if call == "pusher_broadcast" else "n", "data": number}))

    once = [each.data for each in page.broadcasts() if each.target in ("broadcast", "whisper-U9001")]
    assert [list(range(100))] * 2 == [once, [each[1] for each in told(admin_game, 100)]]


def test_messages_of_a_game_reach_pages_in_order(page, game):
    for number in range(100):
        game.send("broadcast", data={"topic": "n", "data": number})
    for _ in range(100):
        game.reply()

    assert list(range(100)) == [each.data for each in page.broadcasts()]


@pytest.mark.ruling("B3")
def test_whispers_of_a_game_reach_pages_under_both_spellings(page, game):
    game.data("broadcast", data={"topic": "n", "data": 1, "ids": ["5551", "Axyz"]})

    assert {"whisper-5551", "whisper-U5551", "whisper-Axyz"} <= {each.target for each in page.broadcasts()}


# What pages send


@pytest.mark.ruling("B1")
@pytest.mark.parametrize("event", [f"{FULL}news", "sandbox:another-name:news", "ext:motd", "news", "production:x:y"])
def test_a_pages_event_is_passed_on_with_its_name_as_it_stands(admin, page, event):
    done(admin.post("pusher_broadcast", json={"event": event, "data": {}, "target": "broadcast", "user_id": CHANNEL}))

    assert [Broadcast(pusher_channel(), "broadcast", event, {}, True)] == page.broadcasts()


@pytest.mark.ruling("X8")
@pytest.mark.parametrize(
    ("event", "name"), [(f"{FULL}a:b", "a:b"), (f"{FULL}{'x' * 256}", "x" * 256), ("sandbox:other:news",) * 2]
)
def test_games_hear_a_pages_event_under_the_developers_name(admin, admin_game, event, name):
    done(admin.post("pusher_broadcast", json={"event": event, "data": 1}))

    assert [(name, 1, CHANNEL, "channel")] == told(admin_game)


@pytest.mark.ruling("B1")
@pytest.mark.parametrize("event", [FULL, f"{FULL}{'x' * 257}", f"{FULL}\n"])
def test_a_pages_event_needs_a_developers_name(admin, admin_game, page, event):
    assert (400, "Invalid event") == refused(admin.post("pusher_broadcast", json={"event": event, "data": 1}))

    assert ([], []) == (page.broadcasts(), told(admin_game, 0))


@pytest.mark.ruling("B1")
def test_a_page_may_send_an_event_without_data(admin, admin_game, page):
    done(admin.post("pusher_broadcast", json={"event": f"{FULL}start", "target": "broadcast", "user_id": CHANNEL}))

    assert [("start", {}, CHANNEL, "channel")] == told(admin_game)
    frame = page.frame()
    assert {"event": f"{FULL}start"} == json.loads(json.loads(frame["data"])["message"])


@pytest.mark.ruling("B1", "B3")
def test_a_page_may_whisper(live, admin, page):
    with game_of(live, "viewer", user="5551") as theirs:
        done(admin.post("pusher_broadcast", json={"event": f"{FULL}n", "data": 1, "target": "whisper-U5551"}))

        assert ["whisper"] == [each[3] for each in told(theirs)]
    assert ["whisper-5551", "whisper-U5551"] == sorted(each.target for each in page.broadcasts())


@pytest.mark.ruling("B1")
def test_in_sandbox_the_page_of_any_role_may_send(live, page):
    for role in ("viewer", "broadcaster", "admin", "backend", "no-such-role"):
        done(live.client(role, user=CHANNEL, channel=CHANNEL).post("pusher_broadcast", json=MESSAGE))

    assert 5 == len(page.broadcasts())


@pytest.mark.ruling("B1")
def test_a_viewer_may_not_send_to_another_channel(viewer, page):
    assert (403, "role is not authorized") == refused(
        viewer().post("pusher_broadcast", json=MESSAGE | {"user_id": "8"})
    )


@pytest.mark.ruling("B1")
@pytest.mark.parametrize(
    ("role", "status"), [("viewer", 403), ("nobody", 403), ("broadcaster", 200), ("admin", 200), ("backend", 200)]
)
def test_in_production_only_those_who_may_broadcast_may_send_as_a_page(production, role, status):
    client = production.client(role, user=CHANNEL, channel=CHANNEL, exp=real_seconds() + 600)

    with subscribed_page(production) as page:
        assert status == client.post("pusher_broadcast", json=MESSAGE).status_code

        assert ["news"] * (status == 200) == [each.event for each in page.broadcasts()]


@pytest.mark.ruling("B1")
def test_pages_of_production_know_its_events_by_its_name(production):
    client = production.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=real_seconds() + 600)

    with subscribed_page(production) as page:
        done(client.post("broadcast", json=MESSAGE))

        assert [f"production:{CLIENT_ID}:news"] == [each.event for each in page.broadcasts()]


# Roles


@pytest.mark.ruling("B1")
@pytest.mark.parametrize("way", [get_with_a_body, get_with_a_query, post], ids=of)
@pytest.mark.parametrize(
    ("call", "roles"),
    [
        ("broadcast", {"broadcaster", "admin", "backend"}),
        ("extension_broadcast", {"admin", "backend"}),
        ("broadcast_extension", {"admin", "backend"}),
        ("whisper_self", {"viewer", "broadcaster", "admin", "backend"}),
    ],
)
def test_nobody_hears_what_a_role_may_not_send(live, page, call, roles, way):
    for role in ("viewer", "broadcaster", "admin", "backend"):
        answer = way(live.client(role, user=CHANNEL, channel=CHANNEL), call, MESSAGE)

        assert (200 if role in roles else 403) == answer.status_code
        assert bool(page.broadcasts()) == (role in roles)


def test_a_stranger_sends_nothing(stranger, page):
    for call in [*CALLS, "pusher_broadcast"]:
        assert 401 == stranger.post(f"/v1/e/{call}", json=MESSAGE).status_code

    assert [] == page.broadcasts()


@pytest.mark.ruling("X8")
def test_a_linked_game_hears_what_its_broadcaster_sends(live, broadcaster):
    with linked_game(live) as game:
        game.data("subscribe", "news")

        done(broadcaster.post("broadcast", json=MESSAGE))
        done(broadcaster.post("whisper_self", json=MESSAGE))

        assert ["channel", "whisper"] == [each[3] for each in told(game, 2)]

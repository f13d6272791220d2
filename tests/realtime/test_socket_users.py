"""Whispers on a connection that authenticates again: they follow the user (rulings A3, B3, X4, X8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from emulator.core.settings import Limits, Settings
from support.authentication import authenticate, authenticated_game
from support.service import CHANNEL, CLIENT_ID, LiveServer, live_server
from support.socket_client import SocketClient, request_pin

A, B = {"user": "11"}, {"user": "22"}


def token(live: LiveServer, role: str = "viewer", **claims: Any) -> str:
    """Return the token of a user of channel 777."""
    client = live.client(role, **{"channel": CHANNEL} | claims)
    return str(client.headers["Authorization"].split()[1])


def become(live: LiveServer, game: SocketClient, **claims: Any) -> None:
    """Authenticate a connection again, by a token with these claims."""
    authenticate(game, jwt=token(live, **claims))


def whisper(live: LiveServer, *users: str, everywhere: bool = False) -> None:
    """Whisper to each user, with their id as the data."""
    admin = live.client("admin", user="9001", channel=CHANNEL)
    for user in users:
        body = {"target": f"whisper-{user}", "event": "news", "user_id": CHANNEL, "data": {"to": user}}
        admin.post("extension_broadcast" if everywhere else "broadcast", json=body).raise_for_status()


def heard(game: SocketClient) -> list[str]:
    """Return the users in the whispers that have arrived."""
    game.no_update()
    updates = [game.update()["data"]["data"]["to"] for _ in range(len(game._updates))]
    return [str(each) for each in updates]


@pytest.fixture
def first(live: LiveServer) -> Iterator[SocketClient]:
    """A connection of user 11."""
    with authenticated_game(live, "viewer", **A) as game:
        yield game


@pytest.mark.parametrize(
    ("target", "data", "everywhere"),
    [("news", None, False), ("*", None, True), ("broadcast", {"topic_id": "news"}, False)],
)
@pytest.mark.parametrize("other", [B, {"opaque": "Uother"}, {"opaque": "Axyz"}, {**B, "opaque": "Uother"}], ids=str)
def test_another_user_hears_their_own_whispers_only(live, first, target, data, everywhere, other):
    first.data("subscribe", target, data)
    become(live, first, **other)
    own = other.get("user") or other["opaque"]

    whisper(live, "11", own, "U11", everywhere=everywhere)

    assert [own] == heard(first)


def test_unsubscribing_after_a_change_of_user_ends_all_whispers(live, first):
    first.data("subscribe", "news")
    first.data("subscribe", "weather")
    become(live, first, **B)

    first.data("unsubscribe", "news")
    whisper(live, "11", "22")

    assert [] == heard(first)
    (session,) = live.service.gateway.admission.peers
    assert {"weather"} == {topic.name for topic in session.topics}
    assert {"", "22", "U22"} == {topic.user for topic in session.topics}


def test_what_all_users_of_a_role_may_follow_is_kept(live, first, broadcaster):
    first.data("subscribe", "state", {"topic_id": "channel"})
    first.data("subscribe", "news")
    become(live, first, **B)

    broadcaster.post("channel_state", json={"a": 1}).raise_for_status()
    broadcaster.post("broadcast", json={"target": "broadcast", "event": "news", "user_id": CHANNEL, "data": {}})

    assert ["channel", "news"] == [first.update()["meta"]["target"] for _ in range(2)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"opaque": "Uabc"}, {"user": "11", "opaque": "Uabc"}),
        ({"user": "11", "opaque": "Uabc"}, {"opaque": "Uabc"}),
        ({"user": "11"}, {"user": "11", "opaque": "Uabc"}),
        ({"user": "11", "opaque": "U11"}, {"opaque": "U11"}),
    ],
    ids=["shares", "shares no more", "opaque id added", "the id itself"],
)
def test_a_user_who_shares_their_id_hears_whispers_before_and_after(live, before, after):
    with authenticated_game(live, "viewer", **before) as game:
        game.data("subscribe", "news")
        become(live, game, **after)
        to = next(iter(after.values()))

        whisper(live, to)

        assert [to] == heard(game)


def test_the_same_user_again_keeps_all_subscriptions(live, game):
    game.data("subscribe", "news")
    (session,) = live.service.gateway.admission.peers
    before = session.topics

    pair = authenticate(game, pin=request_pin(live))
    authenticate(game, refresh=pair["refresh"])
    authenticate(game, jwt=pair["jwt"])

    assert before == session.topics
    whisper(live, CHANNEL)
    assert [CHANNEL] == heard(game)


def test_more_ids_than_the_subscriptions_allow_refuse_the_login_and_change_nothing():
    with (
        live_server(Settings(limits=Limits(topics=8))) as live,
        authenticated_game(live, "viewer", opaque="Uabc") as game,
    ):
        game.data("subscribe", "news")
        game.data("subscribe", "weather")

        sharing = token(live, user="11", opaque="Uabc")
        error = game.error("authenticate", data={"client_id": CLIENT_ID, "jwt": sharing})
        whisper(live, "Uabc")

        assert (400, "the connection would have 16 subscriptions; the limit is 8") == (error["status"], error["detail"])
        assert ["Uabc"] == heard(game)

"""Broadcasts to games and pages: requests, targets, roles and sizes, and who may receive them."""

from __future__ import annotations

import json
import random
import string
from typing import Any

from extcli.conform.calls import Caller, Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, expect_members, expect_status, reads, writes
from extcli.conform.sockets import GameSocket


def game_with_all_events(at: Deployment, role: str = "viewer", **identity: Any) -> GameSocket:
    """Return a game that receives all events."""
    game = at.game(role, **identity)
    game.data("subscribe", "*")
    return game


def receives(game: GameSocket, *events: dict[str, Any]) -> None:
    """Raise `Differs` unless the game's next events have these members, and there are no more events."""
    for members, update in zip(events, game.next_updates(len(events)), strict=True):
        expect_members(members, update["data"], "of a broadcast")


def send_broadcast(caller: Caller, data: Any = 1, *, status: int = 200, **members: Any) -> Reply:
    """Broadcast, by default the event `news`, and return the response."""
    return caller.post("broadcast", {"event": "news", "data": data, **members}, status=status)


@writes("spec: Broadcast")
def broadcast(at: Deployment) -> None:
    """A broadcast returns {}, and reaches the subscribers of its event in its channel only."""
    game, elsewhere = game_with_all_events(at), game_with_all_events(at, channel=at.fresh("channel"))
    content = {"event": "news", "data": {"é": [1, None]}}
    at.admin.get("broadcast", {**content, "target": "broadcast"}).returns({})
    receives(game, content)
    receives(elsewhere)


@writes("W6")
def forms_of_a_broadcast(at: Deployment) -> None:
    """A broadcast may be a GET with a body, a GET with a query, or a POST."""
    game, message = game_with_all_events(at), {"event": "news", "target": "broadcast", "data": {"a": 1}}
    at.admin.get("broadcast", message)
    at.admin.get("broadcast", **{**message, "data": json.dumps(message["data"])})
    at.admin.post("broadcast", message)
    receives(game, *[{"data": {"a": 1}}] * 3)


@writes("W6")
def missing_members(at: Deployment) -> None:
    """A missing `event` is `default`; missing `data` is refused with 400."""
    game, event = game_with_all_events(at), {"event": "news"}
    for path in ("broadcast", "whisper_self"):
        at.admin.post(path, event, status=400)
        at.admin.get(path, event, status=400)
        at.admin.get(path, **event, status=400)
    at.admin.post("broadcast", {"data": 1})
    at.admin.get("broadcast", {"data": 1})
    at.admin.get("broadcast", data="1")
    receives(game, *[{"event": "default"}] * 3)


@writes("spec: Authentication")
def broadcast_by_role(at: Deployment) -> None:
    """A viewer may not broadcast, and a broadcaster not to all channels: 403."""
    send_broadcast(at.viewer, {}, status=403)
    for caller in (at.viewer, at.broadcaster):
        caller.post("extension_broadcast", {"event": "news", "data": {}}, status=403)


@writes("spec: Broadcast", "extension")
def broadcast_to_all(at: Deployment) -> None:
    """An extension-wide broadcast reaches every channel."""
    event = at.fresh("event")
    games = [game_with_all_events(at), game_with_all_events(at, channel=at.fresh("channel"))]
    for path in ("extension_broadcast", "broadcast_extension"):
        at.backend.get(path, {"event": event, "target": "broadcast", "data": 1})
    for game in games:
        receives(game, {"event": event}, {"event": event})


@writes("B1")
def broadcast_to_another_channel(at: Deployment) -> None:
    """A broadcast to a channel other than the caller's gets 403."""
    send_broadcast(at.broadcaster, {}, user_id=at.fresh("channel"), status=403)


@writes("spec: Broadcast")
def whisper(at: Deployment) -> None:
    """A whisper reaches only its viewer, and `whisper_self` only the caller."""
    target, other = game_with_all_events(at), game_with_all_events(at, user=at.fresh("user"))
    send_broadcast(at.admin, target=f"whisper-{at.user}")
    at.viewer.get("whisper_self", {"event": "news", "data": 2})
    receives(target, {"data": 1}, {"data": 2})
    receives(other)


@writes("B3")
def spellings_of_a_whisper(at: Deployment) -> None:
    """A whisper to `123` reaches `U123`, and the reverse, once."""
    game = game_with_all_events(at)
    for user in (at.user, f"U{at.user}"):
        send_broadcast(at.admin, user, target=f"whisper-{user}")
    receives(game, {"data": at.user}, {"data": f"U{at.user}"})


@writes("B2")
def size_of_a_message(at: Deployment) -> None:
    """4,096 bytes that do not compress are sent; 4,097 are refused with 400."""
    game = game_with_all_events(at)
    # Random letters do not compress. JSON adds two quotes.
    text = "".join(random.Random(7).choices(string.ascii_letters + string.digits + "+/", k=4_094))
    send_broadcast(at.admin, text)
    send_broadcast(at.admin, f"{text}x", status=400)
    receives(game, {"data": text})


@writes("spec: Events")
def compressible_message(at: Deployment) -> None:
    """A message that compresses to less than 4 KiB arrives as it was."""
    game, data = game_with_all_events(at), {"text": "abc" * 2_000}
    send_broadcast(at.admin, data)
    receives(game, {"data": data})


@writes("X8")
def event_names(at: Deployment) -> None:
    """An event name has 1 to 256 printable characters; others are refused with 400."""
    for name, status in (
        ("x" * 256, 200),
        ("a b/é", 200),
        ("", 400),
        ("x" * 257, 400),
        ("new\nline", 400),
    ):
        send_broadcast(at.admin, event=name, status=status)


# Over the socket


@writes("X8")
def event(at: Deployment) -> None:
    """A game receives its channel's events under their names, and no earlier ones."""
    game, viewer = at.game(), at.game("viewer")
    game.data("broadcast", data={"topic": "early", "data": 0})
    for name in ("early", "news"):
        viewer.data("subscribe", name)
    expect("the reply to broadcast", {"ok": True}, game.data("broadcast", data={"topic": "news", "data": {"a": 1}}))
    (found,) = viewer.next_updates(1)
    expect("the target", "news", found["meta"].get("target"))
    expected = {"event": "news", "data": {"a": 1}, "channel_id": at.channel, "scope": "channel"}
    expect("the data", expected, found.get("data"))


@writes("X8")
def all_events(at: Deployment) -> None:
    """A subscriber of `*` receives every event once."""
    game = at.game()
    for name in ("*", "a"):
        game.data("subscribe", name)
    for name in ("a", "b"):
        game.data("broadcast", data={"topic": name, "data": 1})
    receives(game, {"event": "a"}, {"event": "b"})


@writes("X8")
def event_of_a_viewer(at: Deployment) -> None:
    """A viewer may not broadcast over the socket: 403."""
    at.game("viewer").refuses(403, "broadcast", data={"topic": "news", "data": 1})


# Pages


@reads("B7", "production")
def credential_of_a_page(at: Deployment) -> None:
    """Production lets a page receive only the channel of its token and the channel of the whole extension."""
    page, own = at.page(), at.viewer.authorization or ""
    for name, channel, authorization, status in (
        ("no credential", at.channel, "", 401),
        ("no token", at.channel, at.client_id, 401),
        ("a malformed token", at.channel, f"{at.client_id} a.b.c", 401),
        ("no credential, for all channels", "all", "", 401),
        ("a token of another channel", at.fresh("channel"), own, 403),
        ("a token of the channel", at.channel, own, 200),
        ("a token, for all channels", "all", own, 200),
    ):
        expect_status(f"the status with {name}", status, page.subscribe(channel, authorization))


@writes("B7")
def whispers_to_a_page(at: Deployment) -> None:
    """A page with a token receives only the whispers to its user."""
    target, other = at.page(), at.page()
    for page, caller in ((target, at.viewer), (other, at.stranger())):
        expect_status("the status of a subscription", 200, page.subscribe(at.channel, caller.authorization or ""))
    for audience, data in ((f"whisper-{at.user}", "to one"), ("broadcast", "to all")):
        send_broadcast(at.admin, data, target=audience)
    expect("what another user receives", ["to all"], other.events_so_far())
    # A whisper may arrive once for each spelling of the user (ruling B3).
    expect("what the user receives", ["to one", "to all"], list(dict.fromkeys(target.events_so_far())))

"""Broadcasts to games and pages: requests, targets, roles and sizes, and who may receive them."""

from __future__ import annotations

import json
import random
import string
from typing import Any

from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, rule, shown
from extcli.conform.sockets import Socket

LARGEST = 4_096
"""Bytes of a message that does not compress."""


def audience(at: Deployment, role: str = "viewer", **identity: Any) -> Socket:
    """Return a game that receives all events."""
    game = at.game(role, **identity)
    game.data("subscribe", "*")
    return game


def heard(game: Socket, number: int) -> list[Any]:
    """Return the data of the next events, after checking that there are no more."""
    found = [game.update("an event")["data"] for _ in range(number)]
    more = game.updates()
    expect("the number of events", number, number + len(more))
    return found


def incompressible(size: int) -> str:
    """Return text that compresses to no less than six bits per character."""
    return "".join(random.Random(7).choices(string.ascii_letters + string.digits + "+/", k=size))


@rule("spec: Broadcast", "viewer", "admin", writes=True)
def broadcast(at: Deployment) -> None:
    """A broadcast returns {}, and reaches the subscribers of its event."""
    game = audience(at)
    reply = at.admin.get("broadcast", {"event": "news", "target": "broadcast", "data": {"é": [1, None]}})
    expect("status and body", (200, {}), (reply.status, reply.json))
    (message,) = heard(game, 1)
    expect("event and data", ("news", {"é": [1, None]}), (message.get("event"), message.get("data")))


@rule("W6", "viewer", "admin", writes=True)
def forms_of_a_broadcast(at: Deployment) -> None:
    """A broadcast may be a GET with a body, a GET with a query, or a POST."""
    game, message = audience(at), {"event": "news", "target": "broadcast", "data": {"a": 1}}
    at.admin.get("broadcast", message).check()
    at.admin.get("broadcast", **{**message, "data": json.dumps(message["data"])}).check()
    at.admin.post("broadcast", message).check()
    expect("the data of three events", [{"a": 1}] * 3, [each.get("data") for each in heard(game, 3)])


@rule("W6", "viewer", "admin", writes=True)
def missing_members(at: Deployment) -> None:
    """A missing `event` is `default`; missing `data` is refused with 400."""
    game = audience(at)
    for path in ("broadcast", "whisper_self"):
        for reply in (
            at.admin.post(path, {"event": "news"}),
            at.admin.get(path, {"event": "news"}),
            at.admin.get(path, event="news"),
        ):
            expect(f"the status of {reply.request} without data", 400, reply.status)
    at.admin.post("broadcast", {"data": 1}).check()
    at.admin.get("broadcast", {"data": 1}).check()
    at.admin.get("broadcast", data="1").check()
    expect("the events", ["default"] * 3, [each.get("event") for each in heard(game, 3)])


@rule("spec: Authentication", "viewer", writes=True)
def broadcast_by_a_viewer(at: Deployment) -> None:
    """A viewer may not broadcast: 403."""
    expect("the status", 403, at.viewer.post("broadcast", {"event": "news", "data": {}}).status)


@rule("spec: Authentication", "viewer", "broadcaster", writes=True)
def broadcast_to_all_by_role(at: Deployment) -> None:
    """Only admins and backends broadcast to all channels."""
    for caller in (at.viewer, at.broadcaster):
        reply = caller.post("extension_broadcast", {"event": "news", "data": {}})
        expect(f"the status for a {caller.role}", 403, reply.status)


@rule("spec: Broadcast", "viewer", "backend", extension=True)
def broadcast_to_all(at: Deployment) -> None:
    """An extension-wide broadcast reaches every channel."""
    event = at.fresh("event")
    games = [audience(at), audience(at, channel=at.fresh("channel"))]
    for path in ("extension_broadcast", "broadcast_extension"):
        at.backend.get(path, {"event": event, "target": "broadcast", "data": 1}).check()
    for game in games:
        expect("the events in a channel", [event, event], [each.get("event") for each in heard(game, 2)])


@rule("spec: Broadcast", "viewer", "admin", writes=True)
def broadcast_in_one_channel(at: Deployment) -> None:
    """A broadcast stays in its channel."""
    here, elsewhere = audience(at), audience(at, channel=at.fresh("channel"))
    at.admin.post("broadcast", {"event": "news", "data": 1}).check()
    expect("events in the channel and elsewhere", [1, 0], [len(heard(here, 1)), len(heard(elsewhere, 0))])


@rule("B1", "broadcaster", writes=True)
def broadcast_to_another_channel(at: Deployment) -> None:
    """A broadcast to a channel other than the caller's gets 403."""
    body = {"event": "news", "data": {}, "user_id": at.fresh("channel")}
    expect("the status", 403, at.broadcaster.post("broadcast", body).status)


@rule("spec: Broadcast", "viewer", "admin", writes=True)
def whisper(at: Deployment) -> None:
    """A whisper reaches one viewer."""
    target, other = audience(at), audience(at, user=at.fresh("user"))
    at.admin.post("broadcast", {"event": "news", "target": f"whisper-{at.user}", "data": 1}).check()
    expect("events of the viewer and of another", [1, 0], [len(heard(target, 1)), len(heard(other, 0))])


@rule("B3", "viewer", "admin", writes=True)
def spellings_of_a_whisper(at: Deployment) -> None:
    """A whisper to `123` reaches `U123`, and the reverse, once."""
    game = audience(at)
    for user in (at.user, f"U{at.user}"):
        at.admin.post("broadcast", {"event": "news", "target": f"whisper-{user}", "data": user}).check()
    expect("the data of two whispers", [at.user, f"U{at.user}"], [each.get("data") for each in heard(game, 2)])


@rule("spec: Broadcast", "viewer", writes=True)
def whisper_to_oneself(at: Deployment) -> None:
    """`whisper_self` reaches the clients of the caller only."""
    own, other = audience(at), audience(at, user=at.fresh("user"))
    at.viewer.get("whisper_self", {"event": "news", "data": 1}).check()
    expect("events of the caller and of another", [1, 0], [len(heard(own, 1)), len(heard(other, 0))])


@rule("B2", "viewer", "admin", writes=True)
def size_of_a_message(at: Deployment) -> None:
    """4,096 bytes that do not compress are sent; 4,097 are refused with 400."""
    game = audience(at)
    for size, status in ((LARGEST, 200), (LARGEST + 1, 400)):
        reply = at.admin.post("broadcast", {"event": "news", "data": incompressible(size - 2)})
        expect(f"the status of {size} bytes", status, reply.status)
    expect("the length of the data", [LARGEST - 2], [len(each.get("data")) for each in heard(game, 1)])


@rule("spec: Events", "viewer", "admin", writes=True)
def compressible_message(at: Deployment) -> None:
    """A message that compresses to less than 4 KiB arrives as it was."""
    game, data = audience(at), {"text": "abc" * 2_000}
    at.admin.post("broadcast", {"event": "news", "data": data}).check()
    expect("the data", [data], [each.get("data") for each in heard(game, 1)])


@rule("X8", "admin", writes=True)
def event_names(at: Deployment) -> None:
    """An event name has 1 to 256 printable characters; others are refused with 400."""
    for name, status in (("x" * 256, 200), ("a b/é", 200), ("", 400), ("x" * 257, 400), ("new\nline", 400)):
        reply = at.admin.post("broadcast", {"event": name, "data": 1})
        expect(f"the status of the event {shown(name[:20])} of {len(name)} characters", status, reply.status)


# Over the socket


@rule("X8", "broadcaster", "viewer", writes=True)
def event(at: Deployment) -> None:
    """A game receives its channel's events under their names, and no earlier ones."""
    game, viewer = at.game(), at.game("viewer")
    game.data("broadcast", data={"topic": "early", "data": 0})
    for name in ("early", "news"):
        viewer.data("subscribe", name)
    expect("the reply to broadcast", {"ok": True}, game.data("broadcast", data={"topic": "news", "data": {"a": 1}}))
    found = viewer.update("the event")
    expect("the target", "news", found["meta"].get("target"))
    expected = {"event": "news", "data": {"a": 1}, "channel_id": at.channel, "scope": "channel"}
    expect("the data", expected, found.get("data"))
    expect("more updates", [], viewer.updates())


@rule("X8", "broadcaster", writes=True)
def all_events(at: Deployment) -> None:
    """A subscriber of `*` receives every event once."""
    game = at.game()
    for name in ("*", "a"):
        game.data("subscribe", name)
    for name in ("a", "b"):
        game.data("broadcast", data={"topic": name, "data": 1})
    expect("the events", ["a", "b"], [game.update("an event")["data"].get("event") for _ in range(2)])
    expect("more updates", [], game.updates())


@rule("X8", "viewer", writes=True)
def event_of_a_viewer(at: Deployment) -> None:
    """A viewer may not broadcast over the socket: 403."""
    error = at.game("viewer").error("broadcast", data={"topic": "news", "data": 1})
    expect("the status", 403, error.get("status"))


# Pages


@rule("B7", "viewer", mode="production")
def credential_of_a_page(at: Deployment) -> None:
    """Production lets a page receive only the channel of its token and the channel of the whole extension."""
    page, own = at.page(), at.viewer.authorization or ""
    for name, channel, authorization, status in (
        ("no credential", at.channel, "", 401),
        ("no token", at.channel, at.client_id, 401),
        ("a malformed token", at.channel, f"{at.client_id} a.b.c", 401),
        ("no credential for all channels", "all", "", 401),
        ("a token of another channel", at.fresh("channel"), own, 403),
        ("a token of the channel", at.channel, own, 200),
        ("a token, for all channels", "all", own, 200),
    ):
        expect(f"the status with {name}", status, page.subscribe(channel, authorization))


@rule("B7", "viewer", "admin", writes=True)
def whispers_to_a_page(at: Deployment) -> None:
    """A page with a token receives only the whispers to its user."""
    target, other = at.page(), at.page()
    for page, caller in ((target, at.viewer), (other, at.caller("viewer", at.fresh("user")))):
        expect("the status of a subscription", 200, page.subscribe(at.channel, caller.authorization or ""))
    for audience, data in ((f"whisper-{at.user}", "to one"), ("broadcast", "to all")):
        at.admin.post("broadcast", {"event": "news", "target": audience, "data": data}).check()
    expect("what another user receives", ["to all"], other.heard())
    # A whisper may arrive once for each spelling of the user (ruling B3).
    expect("what the user receives", ["to one", "to all"], list(dict.fromkeys(target.heard())))

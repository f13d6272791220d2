"""What games do over the socket: authenticate, state, config, polls and their updates."""

from __future__ import annotations

from typing import Any

from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, expect_members, reads, shown, writes
from extcli.conform.rules.pins import WRONG, bound_pin
from extcli.conform.rules.votes import has_votes
from extcli.conform.sockets import GameSocket

CHANNEL = {"state_id": "channel"}
OPTIONS = ["Blue", "Red", "Orange"]
BAD_REQUEST = {"status": 400, "title": "Bad Request"}


def read_state(game: GameSocket) -> Any:
    return game.data("get", "state", CHANNEL)["state"]


def set_state(game: GameSocket, document: Any) -> None:
    game.data("set", "state", {**CHANNEL, "state": document})


def follow_state(game: GameSocket) -> None:
    game.data("subscribe", "state", {"topic_id": "channel"})


def create_poll(game: GameSocket, at: Deployment, **members: Any) -> dict[str, str]:
    """Create a poll with these members, and return its id as the data of a request."""
    poll = {"poll_id": at.fresh("poll")}
    game.data("create", "poll", {**poll, "prompt": "Which?", "options": OPTIONS, **members})
    return poll


# X4


@reads("X4")
def token_of_another_role(at: Deployment) -> None:
    """A token of a role other than broadcaster gets its rights, and no refresh token."""
    for role in ("viewer", "admin", "backend"):
        game, token = at.socket(), at.token(role)
        found = game.authenticate(jwt=token)
        expect_members({"refresh": None, "twitch_id": at.channel}, found, f"for a {role}")
        expect("whether `jwt` is the token that was sent", True, found["jwt"] == token)
        read_state(game)


@reads("X4", "anonymous")
def refused_token(at: Deployment) -> None:
    """A refused `jwt` gets 401."""
    game = at.socket()
    for token in ("", "x", "a.b.c"):
        expect_members({"status": 401}, game.refuses_credential(jwt=token), f"of {shown(token)}")


@writes("spec: Errors", "anonymous")
def wrong_pin(at: Deployment) -> None:
    """A wrong PIN gets 400 Bad Request, and gives no rights."""
    game = at.socket()
    expect_members(BAD_REQUEST, game.refuses_credential(pin=WRONG))
    game.refuses(401, "get", "state", CHANNEL, case="of a read afterwards")


@reads("spec: Errors", "anonymous")
def wrong_refresh_token(at: Deployment) -> None:
    """A refresh token that cannot be verified gets 400 Bad Request."""
    game = at.socket()
    for token in ("", "x", "a.b.c"):
        expect_members(BAD_REQUEST, game.refuses_credential(refresh=token), f"of {shown(token)}")


@reads("spec: Authentication")
def failed_later_attempt(at: Deployment) -> None:
    """A failed `authenticate` leaves the rights of the connection unchanged."""
    game = at.game("viewer")
    game.refuses_credential(jwt="x")
    read_state(game)


@writes("X4")
def switched_channel(at: Deployment) -> None:
    """Authenticating for another channel ends the subscriptions."""
    game = at.game("viewer")
    follow_state(game)
    game.authenticate(jwt=at.token("viewer", channel=at.fresh("channel")))
    at.broadcaster.post("channel_state", {"a": 1})
    game.next_updates(0)


@writes("X4")
def rights_after_a_revocation(at: Deployment) -> None:
    """An open connection keeps its rights after a revocation."""
    game = at.linked_game(pin=bound_pin(at))
    at.broadcaster.delete("pin")
    set_state(game, {"a": 1})
    expect("the state", {"a": 1}, read_state(game))


# X5: state and config


@writes("X5")
def shared_stores(at: Deployment) -> None:
    """The socket and REST share the state and the config of the channel."""
    game = at.game()
    for kind, id in (("state", CHANNEL), ("config", {})):
        game.data("set", kind, {**id, kind: {"a": 1}})
        at.broadcaster.get(f"channel_{kind}").returns({"a": 1}, f"the {kind} over REST")
        at.broadcaster.post(f"channel_{kind}", {"b": 2})
        expect(f"the {kind} over the socket", {"b": 2}, game.data("get", kind, {f"{kind}_id": "channel"})[kind])
    game.data("patch", "state", {**CHANNEL, "state": [{"op": "add", "path": "/c", "value": 3}]})
    at.broadcaster.get("channel_state").returns({"b": 2, "c": 3}, "the patched state")


@writes("X5")
def update_of_the_state(at: Deployment) -> None:
    """A write sends each subscriber, also the writer, one update with the request id 65535; subscribing sends none."""
    game, viewer = at.game(), at.game("viewer")
    set_state(game, {"early": 1})
    for each in (game, viewer, viewer):
        follow_state(each)
    set_state(game, {"a": 1})
    at.broadcaster.post("channel_state", {"b": 2})
    at.broadcaster.patch("channel_state", {"c": 3})
    expected = [{"topic_id": "channel", "state": each} for each in ({"a": 1}, {"b": 2}, {"b": 2, "c": 3})]
    for name, each in (("the writer", game), ("a viewer", viewer)):
        found = each.next_updates(3)
        expect_members({"action": "update", "request_id": 65_535, "target": "channel"}, found[0]["meta"])
        expect(f"the updates of {name}", expected, [update.get("data") for update in found])


@writes("X5")
def updates_in_one_channel(at: Deployment) -> None:
    """Updates stay in their channel."""
    elsewhere = at.game("viewer", channel=at.fresh("channel"))
    follow_state(elsewhere)
    set_state(at.game(), {"a": 1})
    elsewhere.next_updates(0)
    expect("the state of another channel", {}, read_state(elsewhere))


@writes("X5")
def update_of_a_refused_write(at: Deployment) -> None:
    """A refused write causes no update."""
    game = at.game("viewer")
    follow_state(game)
    game.refuses(403, "set", "state", {**CHANNEL, "state": {"a": 1}}, case="for a viewer")
    game.next_updates(0)


@writes("X5")
def unsubscribed(at: Deployment) -> None:
    """After `unsubscribe` there are no more updates; without a subscription it is not an error."""
    game = at.game()
    for target in ("state", "config", "poll"):
        game.data("unsubscribe", target, {"topic_id": "channel", "config_id": "channel"})
    for target, data in (("state", {"topic_id": "channel"}), ("state", CHANNEL), ("channel", None)):
        game.data("subscribe", target, data)
        set_state(game, {"target": target})
        (found,) = game.next_updates(1)
        expect(f"the state of the update after subscribe {target}", {"target": target}, found["data"].get("state"))
        game.data("unsubscribe", target, data)
        set_state(game, {})
        game.next_updates(0)


# X5, X6: polls


@writes("X5")
def shared_poll(at: Deployment) -> None:
    """A poll that a game creates can be read and voted in over REST."""
    game = at.game()
    poll = create_poll(game, at)
    id = poll["poll_id"]
    at.viewer.get("vote_config", id=id).has(prompt="Which?", options=OPTIONS)
    at.viewer.post("vote", {"value": 2}, id=id)
    expect_members({"results": [0, 0, 1], "count": 1}, game.data("get", "poll", poll))
    game.data("delete", "poll", poll)
    at.viewer.get("vote_config", id=id, status=404)
    has_votes(at.viewer.get("vote", id=id), 0)


@writes("X5")
def absent_poll(at: Deployment) -> None:
    """An absent poll gets 404, and deleting it is not an error."""
    game, poll = at.game(), at.fresh("poll")
    for action in ("get", "reconfigure"):
        game.refuses(404, action, "poll", {"poll_id": poll, "config": {"disabled": True}})
    expect("the reply to delete poll", {"ok": True}, game.data("delete", "poll", {"poll_id": poll}))


@writes("P4")
def options_of_another_type(at: Deployment) -> None:
    """`reconfigure` with options that are not a list of strings gets 400, and keeps the options of the poll."""
    game = at.game()
    poll = create_poll(game, at)
    others: tuple[Any, ...] = (None, False, 0, "", {}, [1])
    for options in others:
        config = {"options": options}
        game.refuses(400, "reconfigure", "poll", {**poll, "config": config}, case=f"of {shown(config)}")
    expect("the options", OPTIONS, game.data("get", "poll", poll)["poll"]["options"])


@writes("X5")
def update_of_a_poll(at: Deployment) -> None:
    """A vote sends the subscribers of its poll what `get poll` returns; the last update has the final count."""
    game = at.game()
    poll = create_poll(game, at)
    id = poll["poll_id"]
    game.data("subscribe", "poll", {"topic_id": id})
    at.viewer.post("vote", {"value": 2}, id=id)
    found = game.update("an update of the poll")
    expect("the target", "poll", found["meta"]["target"])
    expect("the data", game.data("get", "poll", poll), found.get("data"))
    for _ in range(5):
        at.stranger().post("vote", {"value": 1}, id=id)
    counts = []
    while 6 not in counts:
        # Not with `update`, which records each: their number depends on the pace of the service.
        counts.append(game.message("an update with 6 votes")["data"]["count"])
    expect("the vote counts in successive updates", sorted(set(counts)), counts)


@writes("X5")
def polls_of_a_viewer(at: Deployment) -> None:
    """A viewer reads polls over the socket, and may not create or delete them: 403."""
    game, poll = at.game("viewer"), at.fresh("poll")
    game.data("subscribe", "poll", {"topic_id": poll})
    for action in ("create", "delete"):
        game.refuses(403, action, "poll", {"poll_id": poll, "prompt": "?"})


@writes("X6")
def entry_of_a_poll(at: Deployment) -> None:
    """A poll that a game creates is in the channel's state until it is deleted."""
    game = at.game()
    for way in ("socket", "REST"):
        poll = create_poll(game, at, user_data={"x": 1})
        entry = {"prompt": "Which?", "options": OPTIONS, "user_data": {"x": 1}}
        expect("the state", {poll["poll_id"]: entry}, read_state(game))
        if way == "socket":
            game.data("delete", "poll", poll)
        else:
            at.broadcaster.delete("vote", id=poll["poll_id"])
        expect(f"the state after a deletion over {way}", {}, read_state(game))


# X7


@writes("X7")
def update_of_a_link(at: Deployment) -> None:
    """Games of a channel get an update when another game is linked, and when links are revoked."""
    game = at.linked_game(pin=bound_pin(at))
    game.data("subscribe", "authentication")
    at.linked_game(pin=bound_pin(at))
    at.broadcaster.delete("pin")
    for event in ("authenticated", "revoked"):
        found = game.update(f"an update with the event {event}")["data"]
        expect("the data", {"topic_id": "authentication", "event": event, "twitch_id": at.channel}, found)

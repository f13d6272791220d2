"""What games do over the socket: authenticate, state, config, polls and their updates."""

from __future__ import annotations

from typing import Any

from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, rule, shown
from extcli.conform.rules.links import link
from extcli.conform.rules.pins import bound_pin
from extcli.conform.sockets import Socket

CHANNEL = {"state_id": "channel"}
OPTIONS = ["Blue", "Red", "Orange"]


def state(game: Socket) -> Any:
    return game.data("get", "state", CHANNEL).get("state")


def set_state(game: Socket, document: Any) -> None:
    game.data("set", "state", {**CHANNEL, "state": document})


def follow(game: Socket) -> None:
    game.data("subscribe", "state", {"topic_id": "channel"})


def states(game: Socket, number: int) -> list[Any]:
    """Return the states in the next updates, after checking that there are no more."""
    found = [game.update("an update of the state")["data"].get("state") for _ in range(number)]
    expect("the number of updates", number, number + len(game.updates()))
    return found


def create(game: Socket, poll: str, **members: Any) -> None:
    game.data("create", "poll", {"poll_id": poll, "prompt": "Which?", "options": OPTIONS, **members})


# X4


@rule("X4", "viewer", "admin", "backend")
def token_of_another_role(at: Deployment) -> None:
    """A token of a role other than broadcaster gets its rights, and no refresh token."""
    for role in ("viewer", "admin", "backend"):
        game, token = at.socket(), at.token(role)
        found = game.data("authenticate", data={"client_id": at.client_id, "jwt": token})
        expect(f"jwt, refresh and twitch_id for a {role}", (True, None, at.channel), _pair_of_tokens(found, token))
        state(game)


def _pair_of_tokens(found: dict[str, Any], token: str) -> tuple[bool, Any, Any]:
    return found.get("jwt") == token, found.get("refresh"), found.get("twitch_id")


@rule("X4")
def refused_token(at: Deployment) -> None:
    """A refused `jwt` gets 401."""
    game = at.socket()
    for token in ("", "x", "a.b.c"):
        error = game.error("authenticate", data={"client_id": at.client_id, "jwt": token})
        expect(f"the status of {shown(token)}", 401, error.get("status"))


@rule("spec: Errors", writes=True)
def wrong_pin(at: Deployment) -> None:
    """A wrong PIN gets 400 Bad Request, and gives no rights."""
    game = at.socket()
    error = game.error("authenticate", data={"client_id": at.client_id, "pin": "ZZZZZZ"})
    expect("status and title", (400, "Bad Request"), (error.get("status"), error.get("title")))
    expect("the status of a read afterwards", 401, game.error("get", "state", CHANNEL).get("status"))


@rule("spec: Errors")
def wrong_refresh_token(at: Deployment) -> None:
    """A refresh token that cannot be verified gets 400 Bad Request."""
    game = at.socket()
    for token in ("", "x", "a.b.c"):
        error = game.error("authenticate", data={"client_id": at.client_id, "refresh": token})
        expect(f"status and title of {shown(token)}", (400, "Bad Request"), (error.get("status"), error.get("title")))


@rule("spec: Authentication", "viewer")
def failed_later_attempt(at: Deployment) -> None:
    """A failed attempt leaves the rights of the connection unchanged."""
    game = at.game("viewer")
    game.error("authenticate", data={"client_id": at.client_id, "jwt": "x"})
    state(game)


@rule("X4", "broadcaster", "viewer", writes=True)
def switched_channel(at: Deployment) -> None:
    """Authenticating for another channel ends the subscriptions."""
    game = at.game("viewer")
    follow(game)
    elsewhere = at.token("viewer", channel=at.fresh("channel"))
    game.data("authenticate", data={"client_id": at.client_id, "jwt": elsewhere})
    at.broadcaster.post("channel_state", {"a": 1}).check()
    expect("the updates", [], states(game, 0))


@rule("X4", "broadcaster", writes=True)
def rights_after_a_revocation(at: Deployment) -> None:
    """An open connection keeps its rights after a revocation."""
    game = link(at, pin=bound_pin(at))
    at.broadcaster.delete("pin").check()
    set_state(game, {"a": 1})
    expect("the state", {"a": 1}, state(game))


# X5: state and config


@rule("X5", "broadcaster", writes=True)
def shared_state(at: Deployment) -> None:
    """The socket and REST share the channel's state."""
    game = at.game()
    set_state(game, {"a": 1})
    expect("the state over REST", {"a": 1}, at.broadcaster.get("channel_state").data)
    at.broadcaster.post("channel_state", {"b": 2}).check()
    expect("the state over the socket", {"b": 2}, state(game))
    game.data("patch", "state", {**CHANNEL, "state": [{"op": "add", "path": "/c", "value": 3}]})
    expect("the patched state", {"b": 2, "c": 3}, at.broadcaster.get("channel_state").data)


@rule("X5", "broadcaster", writes=True)
def shared_config(at: Deployment) -> None:
    """The socket and REST share the channel's config."""
    game = at.game()
    game.data("set", "config", {"config": {"a": 1}})
    expect("the config over REST", {"a": 1}, at.broadcaster.get("channel_config").data)
    at.broadcaster.post("channel_config", {"b": 2}).check()
    found = game.data("get", "config", {"config_id": "channel"})
    expect("the config over the socket", {"b": 2}, found.get("config"))


@rule("X5", "broadcaster", "viewer", writes=True)
def update_of_the_state(at: Deployment) -> None:
    """Every write notifies every subscriber once, the writer included; a subscription causes none."""
    game, viewer = at.game(), at.game("viewer")
    set_state(game, {"early": 1})
    for each in (game, viewer, viewer):
        follow(each)
    set_state(game, {"a": 1})
    at.broadcaster.post("channel_state", {"b": 2}).check()
    at.broadcaster.patch("channel_state", {"c": 3}).check()
    expected = [{"a": 1}, {"b": 2}, {"b": 2, "c": 3}]
    expect("the updates of the writer", expected, states(game, 3))
    expect("the updates of a viewer", expected, states(viewer, 3))


@rule("X5", "broadcaster", writes=True)
def form_of_an_update(at: Deployment) -> None:
    """An update is a message with the action `update`, the request id 65535 and its store."""
    game = at.game()
    follow(game)
    set_state(game, {"a": 1})
    found = game.update("an update of the state")
    seen = [found["meta"].get(name) for name in ("action", "request_id", "target")]
    expect("action, request_id and target", ["update", 65_535, "channel"], seen)
    expect("data", {"topic_id": "channel", "state": {"a": 1}}, found.get("data"))


@rule("X5", "broadcaster", "viewer", writes=True)
def updates_in_one_channel(at: Deployment) -> None:
    """Updates stay in their channel."""
    elsewhere = at.game("viewer", channel=at.fresh("channel"))
    follow(elsewhere)
    set_state(at.game(), {"a": 1})
    expect("the updates in another channel", [], states(elsewhere, 0))
    expect("the state of another channel", {}, state(elsewhere))


@rule("X5", "broadcaster", "viewer", writes=True)
def update_of_a_refused_write(at: Deployment) -> None:
    """A refused write causes no update."""
    game = at.game("viewer")
    follow(game)
    error = game.error("set", "state", {**CHANNEL, "state": {"a": 1}})
    expect("the status for a viewer", 403, error.get("status"))
    expect("the updates", [], states(game, 0))


@rule("X5", "broadcaster", writes=True)
def unsubscribed(at: Deployment) -> None:
    """After `unsubscribe` there are no more updates; without a subscription it is not an error."""
    game = at.game()
    for target in ("state", "config", "poll"):
        game.data("unsubscribe", target, {"topic_id": "channel", "config_id": "channel"})
    for target, data in (("state", {"topic_id": "channel"}), ("state", CHANNEL), ("channel", None)):
        game.data("subscribe", target, data)
        set_state(game, {"target": target})
        expect(f"the updates after subscribe {target}", [{"target": target}], states(game, 1))
        game.data("unsubscribe", target, data)
        set_state(game, {})
        expect(f"the updates after unsubscribe {target}", [], states(game, 0))


# X5, X6: polls


@rule("X5", "broadcaster", "viewer", writes=True)
def shared_poll(at: Deployment) -> None:
    """A poll that a game creates is the poll of REST."""
    game, poll = at.game(), at.fresh("poll")
    create(game, poll)
    found = at.viewer.get("vote_config", id=poll).data
    expect("prompt and options", ("Which?", OPTIONS), (found.get("prompt"), found.get("options")))
    at.viewer.post("vote", {"value": 2}, id=poll).check()
    seen = game.data("get", "poll", {"poll_id": poll})
    expect("results and count", ([0, 0, 1], 1), (seen.get("results"), seen.get("count")))
    game.data("delete", "poll", {"poll_id": poll})
    expect("the status of vote_config afterwards", 404, at.viewer.get("vote_config", id=poll).status)
    expect("the votes afterwards", 0, at.viewer.get("vote", id=poll).data["stats"]["count"])


@rule("X5", "broadcaster", writes=True)
def absent_poll(at: Deployment) -> None:
    """An absent poll gets 404, and deleting it is not an error."""
    game, poll = at.game(), at.fresh("poll")
    for action in ("get", "reconfigure"):
        error = game.error(action, "poll", {"poll_id": poll, "config": {"disabled": True}})
        expect(f"the status of {action} poll", 404, error.get("status"))
    expect("the reply to delete poll", {"ok": True}, game.data("delete", "poll", {"poll_id": poll}))


@rule("P4", "broadcaster", writes=True)
def options_of_another_type(at: Deployment) -> None:
    """`reconfigure` with options that are not a list of texts gets 400, and keeps the options of the poll."""
    game, poll = at.game(), at.fresh("poll")
    create(game, poll)
    others: tuple[Any, ...] = (None, False, 0, "", {}, [1])
    for options in others:
        error = game.error("reconfigure", "poll", {"poll_id": poll, "config": {"options": options}})
        expect(f"the status of options {shown(options)}", 400, error.get("status"))
    found = game.data("get", "poll", {"poll_id": poll}).get("poll") or {}
    expect("the options", OPTIONS, found.get("options"))


@rule("X5", "broadcaster", "viewer", writes=True)
def update_of_a_poll(at: Deployment) -> None:
    """A vote sends the subscribers of its poll what `get poll` returns."""
    game, poll = at.game(), at.fresh("poll")
    create(game, poll)
    game.data("subscribe", "poll", {"topic_id": poll})
    at.viewer.post("vote", {"value": 2}, id=poll).check()
    found = game.update("an update of the poll")
    expect("the target", "poll", found["meta"].get("target"))
    expect("the data", game.data("get", "poll", {"poll_id": poll}), found.get("data"))


@rule("X5", "broadcaster", "viewer", writes=True)
def final_update_of_a_poll(at: Deployment) -> None:
    """The last update of a poll has the final count."""
    game, poll = at.game(), at.fresh("poll")
    create(game, poll)
    game.data("subscribe", "poll", {"topic_id": poll})
    for _ in range(5):
        at.caller("viewer", at.fresh("user")).post("vote", {"value": 1}, id=poll).check()
    counts = []
    while 5 not in counts:
        counts.append(game.update("an update with 5 votes", is_noted=False)["data"].get("count"))
    expect("the counts in their order", sorted(set(counts)), counts)


@rule("X5", "viewer", writes=True)
def polls_of_a_viewer(at: Deployment) -> None:
    """A viewer reads polls over the socket, and may not create or delete them: 403."""
    game, poll = at.game("viewer"), at.fresh("poll")
    game.data("subscribe", "poll", {"topic_id": poll})
    for action in ("create", "delete"):
        error = game.error(action, "poll", {"poll_id": poll, "prompt": "?"})
        expect(f"the status of {action}", 403, error.get("status"))


@rule("X6", "broadcaster", writes=True)
def entry_of_a_poll(at: Deployment) -> None:
    """A poll that a game creates is in the channel's state until it is deleted."""
    game = at.game()
    for way in ("socket", "REST"):
        poll = at.fresh("poll")
        create(game, poll, user_data={"x": 1})
        entry = {"prompt": "Which?", "options": OPTIONS, "user_data": {"x": 1}}
        expect("the state", {poll: entry}, state(game))
        if way == "socket":
            game.data("delete", "poll", {"poll_id": poll})
        else:
            at.broadcaster.delete("vote", id=poll).check()
        expect(f"the state after a deletion over {way}", {}, state(game))


# X7


@rule("X7", "broadcaster", writes=True)
def update_of_a_link(at: Deployment) -> None:
    """Games of a channel learn when another is linked, and when links are revoked."""
    game = link(at, pin=bound_pin(at))
    game.data("subscribe", "authentication")
    link(at, pin=bound_pin(at))
    at.broadcaster.delete("pin").check()
    for event in ("authenticated", "revoked"):
        found = game.update(f"an update with the event {event}").get("data")
        expect("the data", {"topic_id": "authentication", "event": event, "twitch_id": at.channel}, found)

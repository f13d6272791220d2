"""The socket itself: paths, replies, malformed requests and closed connections."""

from __future__ import annotations

from typing import Any

from extcli.api.websocket import ID_WITHOUT_REQUEST, request
from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, expect_members, expect_status, expect_string, expect_that, reads, shown, writes
from extcli.conform.sockets import GameSocket

KIB = 1024
STATE = {"state_id": "channel"}


def refuses_frame(game: GameSocket, text: str) -> None:
    """Raise `Differs` unless the error about this frame has the status 400."""
    game.client.send(text)
    expect_status(f"the status of {text[:100]}", 400, game.reply().get("errors", [{}])[0].get("status"))


# X1


@reads("X1")
def paths(at: Deployment) -> None:
    """The socket is at every path of published clients; `authenticate` can take its client id from the path."""
    for path in ("/ws", "", f"/0.2.0/{at.client_id}", f"/0.2.0/gateway-unity/1.0.3/{at.client_id}"):
        at.socket(path).authenticate(jwt=at.token("viewer"))
    at.socket(f"/0.2.0/{at.client_id}").data("authenticate", data={"jwt": at.token("viewer")})
    at.socket("/ws").refuses(400, "authenticate", data={"jwt": at.token("viewer")})


@reads("X1", "anonymous")
def paths_of_the_api(at: Deployment) -> None:
    """A handshake at a path of the API gets 404."""
    for path in ("/v1/e/vote", "//v1/e/vote"):
        expect_status(f"the status of a handshake at {path}", 404, at.handshake(path))


# X2


@reads("spec: Endpoints")
def reply(at: Deployment) -> None:
    """A reply has `meta` with request id, action, target and timestamp, and `data`."""
    found = at.game("viewer").request("get", "state", STATE)
    expect("the members", {"meta", "data"}, set(found))
    expect("the members of meta", {"request_id", "action", "target", "timestamp"}, set(found["meta"]))
    expect_members({"action": "get", "target": "state"}, found["meta"])
    stamp = found["meta"]["timestamp"]
    expect_that("timestamp", type(stamp) is int and stamp > 10**12, "Unix ms", stamp)


@reads("spec: Errors")
def error(at: Deployment) -> None:
    """An error has `meta` and `errors` with status, title and detail."""
    found = at.game("viewer").request("get", "state", {"state_id": "nothing"})
    expect("the members", {"meta", "errors"}, set(found))
    first = found["errors"][0]
    expect_members({"status": 400, "title": "Bad Request"}, first)
    expect_string("detail", first["detail"])


@reads("X2")
def number_of_an_error(at: Deployment) -> None:
    """An error also has its status as `number`."""
    expect("number", 400, at.game("viewer").error("get", "state", {"state_id": "nothing"})["number"])


@reads("X2")
def order_of_replies(at: Deployment) -> None:
    """Fifty requests sent at once are answered in their order."""
    game = at.game("viewer")
    sent = [game.send("get" if number % 2 else "subscribe", "state", STATE) for number in range(50)]
    expect("the request ids", sent, [game.reply()["meta"].get("request_id") for _ in sent])


@reads("X2")
def request_id_of_a_reply(at: Deployment) -> None:
    """A numeric request id is echoed, also 1.5; another request id gets 400, in a reply with the id 65535."""
    game = at.game("viewer")
    for number in (0, 65_536, -1, 1.5, 2**53):
        game.client.send(request("get", "state", STATE, number))
        found = game.reply()
        expect("the request id", number, found["meta"].get("request_id"))
        expect(f"success for {number}", True, "data" in found)
    wrong: list[Any] = ["1", None, [], True]
    for number in wrong:
        game.client.send(request("get", "state", STATE, number))
        found = game.reply()
        seen = found["meta"].get("request_id"), found.get("errors", [{}])[0].get("status")
        expect(f"request id and status of the reply to request id {shown(number)}", (ID_WITHOUT_REQUEST, 400), seen)


@writes("X2")
def reply_before_update(at: Deployment) -> None:
    """The reply comes before the updates that its request causes."""
    game = at.game()
    game.data("subscribe", "state", {"topic_id": "channel"})
    game.send("set", "state", {**STATE, "state": {"a": 1}})
    expect("the next two messages", ["set", "update"], [game.message()["meta"].get("action") for _ in range(2)])


# X3


@reads("X3", "anonymous")
def unauthenticated(at: Deployment) -> None:
    """Before authentication every request but `authenticate` gets 401."""
    game = at.socket()
    for action, target in (
        ("get", "state"),
        ("get", "config"),
        ("get", "poll"),
        ("subscribe", "state"),
        ("get", "match"),
    ):
        game.refuses(401, action, target, {**STATE, "topic_id": "x"})


@reads("spec: Events", "anonymous")
def topic_authentication(at: Deployment) -> None:
    """The topic `authentication` can be followed before authentication."""
    game = at.socket()
    expect("the reply to subscribe", {"ok": True}, game.data("subscribe", "authentication"))
    expect("the reply to unsubscribe", {"ok": True}, game.data("unsubscribe", "authentication"))


@reads("X3")
def missing_target(at: Deployment) -> None:
    """A subscription without a target gets 400, also before authentication."""
    for game in (at.socket(), at.game("viewer")):
        for action in ("subscribe", "unsubscribe"):
            game.refuses(400, action, data={})


@writes("X3")
def unknown_action(at: Deployment) -> None:
    """An unknown action or target gets 404."""
    game = at.game("viewer")
    for action, target in (
        ("frobnicate", "state"),
        ("get", "no-such-target"),
        ("vote", "poll"),
        ("GET", "state"),
        ("set", "matchmaking"),
        ("create", "match_poll"),
        ("validate", "drops"),
        ("broadcast", "gatewayActionState"),
    ):
        game.refuses(404, action, target, {})


@reads("X3")
def malformed_request(at: Deployment) -> None:
    """A malformed request gets 400, one with 80 KiB of data 413, and the connection stays open."""
    game = at.game("viewer")
    for text in ("{", "[]", "NaN", '{"action":""}', request("get", "state", 1, 9)):
        refuses_frame(game, text)
    game.refuses(413, "get", "state", {**STATE, "x": "x" * 80 * KIB})
    game.data("get", "state", STATE)


@reads("X3")
def binary_message(at: Deployment) -> None:
    """A binary message closes the connection with 1003."""
    game = at.game("viewer")
    game.client.send(b"{}")
    expect("the close code", 1003, game.close_code())


@reads("X3", "anonymous")
def long_message(at: Deployment) -> None:
    """Before authentication a message over 4 KiB closes the connection with 1009."""
    game = at.socket()
    refuses_frame(game, "{}".ljust(4 * KIB))
    game.client.send("{}".ljust(4 * KIB + 1))
    expect("the close code", 1009, game.close_code())


# X9


@reads("X9")
def unsupported_targets(at: Deployment) -> None:
    """A target that the service does not support gets 404, with a text that names it."""
    game = at.game("viewer")
    for target in ("drops", "matchmaking", "match", "match_poll", "gameMetadata", "gatewayActions"):
        for action in ("get", "subscribe", "unsubscribe"):
            detail = str(game.refuses(404, action, target, {"topic_id": "x"})["detail"])
            expect_that(f"detail of {action} {target}", target in detail, f"a text that names {target}", detail)

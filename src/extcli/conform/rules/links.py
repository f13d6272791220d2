"""What PINs lead to: tokens, linked games, and their revocation."""

from __future__ import annotations

import re

from extcli.api import tokens
from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, expect_that, rule
from extcli.conform.rules.pins import WRONG, bound_pin, issue_pin, other_owner, validate
from extcli.conform.sockets import Socket

DAY = 86_400


def link(at: Deployment, **credential: str) -> Socket:
    """Return a game socket after a successful `authenticate`."""
    game = at.socket()
    game.data("authenticate", data={"client_id": at.client_id, **credential})
    return game


# Tokens of `POST pin`


@rule("spec: Endpoints", "broadcaster", writes=True)
def token_of_a_pin(at: Deployment) -> None:
    """The token of `POST pin` is valid once its PIN was validated."""
    token, pin = issue_pin(at)
    caller = at.bearer(token)
    expect("the status before validation", 401, caller.get("user_info").status)
    validate(at.broadcaster, pin).check()
    found = caller.get("user_info").data
    seen = [found.get(name) for name in ("role", "channel_id", "user_id")]
    expect("role, channel and user afterwards", ["broadcaster", at.channel, at.channel], seen)


@rule("T2", "broadcaster", writes=True)
def token_of_another_pin(at: Deployment) -> None:
    """A PIN validates only its own token."""
    (first, pin), (second, _) = issue_pin(at), issue_pin(at)
    validate(at.broadcaster, pin).check()
    found = [at.bearer(token).get("user_info").status for token in (first, second)]
    expect("the statuses of its token and of another", [200, 401], found)


@rule("A5", "broadcaster", writes=True)
def payload_of_a_token(at: Deployment) -> None:
    """The payload of an issued token has no `-` and no `_`, and lasts 7 days."""
    pair = at.socket().data("authenticate", data={"client_id": at.client_id, "pin": bound_pin(at)})
    for name, token, days in (
        ("POST pin", issue_pin(at)[0], 7),
        ("jwt", pair["jwt"], 7),
        ("refresh", pair["refresh"], 365),
    ):
        payload = token.split(".")[1]
        expect(f"- and _ in the payload of {name}", "", re.sub("[^-_]", "", payload))
        claims = tokens.claims_in(token)
        expect(f"the lifetime of {name} in days", days, (claims.get("exp", 0) - claims.get("iat", 0)) / DAY)


@rule("T5", "broadcaster", writes=True)
def check_of_a_token(at: Deployment) -> None:
    """`unauthed/validate_pin` is 200 from the validation until the revocation, otherwise 401."""
    (token, pin), (other, _) = issue_pin(at), issue_pin(at)

    def status(jwt: str = token) -> int:
        return at.anonymous.post("unauthed/validate_pin", {"identifier": at.client_id, "jwt": jwt}).status

    expect("the status before validation", 401, status())
    validate(at.broadcaster, pin).check()
    expect("the statuses after validation, of its token and of another", [200, 401], [status(), status(other)])
    at.broadcaster.delete("pin").check()
    expect("the status after revocation", 401, status())


@rule("T5", "broadcaster", writes=True)
def check_of_a_pin(at: Deployment) -> None:
    """`unauthed/validate_pin` takes no PIN: a valid and a wrong PIN get the same response, 400."""
    right, wrong = (
        at.anonymous.post("unauthed/validate_pin", {"identifier": at.client_id, "pin": pin})
        for pin in (bound_pin(at), WRONG)
    )
    expect("the status with a right PIN", 400, right.status)
    expect("the response with a wrong PIN", (400, right.json), (wrong.status, wrong.json))


# Links


@rule("spec: Authentication", "broadcaster", writes=True)
def pair_of_tokens(at: Deployment) -> None:
    """A game's PIN leads to an access token and a refresh token."""
    pair = at.socket().data("authenticate", data={"client_id": at.client_id, "pin": bound_pin(at)})
    for name in ("jwt", "refresh"):
        expect_that(name, isinstance(pair.get(name), str), "a text", pair.get(name))
    found = at.bearer(pair["jwt"]).get("user_info").data
    expect("the role of the access token", "broadcaster", found.get("role"))
    expect("the channel of the access token", at.channel, found.get("channel_id"))


@rule("spec: Authentication", "broadcaster", writes=True)
def refreshed_pair(at: Deployment) -> None:
    """A refresh token leads to a new pair of tokens."""
    game = at.socket()
    first = game.data("authenticate", data={"client_id": at.client_id, "pin": bound_pin(at)})
    second = game.data("authenticate", data={"client_id": at.client_id, "refresh": first["refresh"]})
    expect(
        "the number of different tokens",
        4,
        len({*map(first.get, ("jwt", "refresh")), second["jwt"], second["refresh"]}),
    )
    expect("the status with the new access token", 200, at.bearer(second["jwt"]).get("user_info").status)


@rule("T3", "broadcaster", writes=True)
def repeated_use(at: Deployment) -> None:
    """PINs and refresh tokens can be used more than once."""
    pin = bound_pin(at)
    pair = at.socket().data("authenticate", data={"client_id": at.client_id, "pin": pin})
    for credential in ({"pin": pin}, {"refresh": pair["refresh"]}, {"refresh": pair["refresh"]}):
        link(at, **credential)


@rule("spec: Authentication", "broadcaster", writes=True)
def refresh_token_over_rest(at: Deployment) -> None:
    """A refresh token is not an access token: REST refuses it with 401."""
    pair = at.socket().data("authenticate", data={"client_id": at.client_id, "pin": bound_pin(at)})
    expect("the status", 401, at.bearer(pair["refresh"]).get("user_info").status)


@rule("T2", "broadcaster", writes=True)
def revocation(at: Deployment) -> None:
    """`DELETE pin` ends PINs, their tokens and refresh tokens of the channel permanently."""
    (token, pin), bound = issue_pin(at), bound_pin(at)
    validate(at.broadcaster, pin).check()
    game = at.socket()
    refresh = game.data("authenticate", data={"client_id": at.client_id, "pin": bound})["refresh"]
    reply = at.broadcaster.delete("pin")
    expect("status and body of DELETE pin", (200, {}), (reply.status, reply.json))
    expect("the status with the token of the PIN", 401, at.bearer(token).get("user_info").status)
    for name, credential in (("refresh token", {"refresh": refresh}), ("PIN", {"pin": bound})):
        error = game.error("authenticate", data={"client_id": at.client_id, **credential})
        expect(f"the status with the {name}", 400, error.get("status"))


@rule("T2", "broadcaster", writes=True)
def revocation_of_another_channel(at: Deployment) -> None:
    """`DELETE pin` leaves the links of other channels alone."""
    token, pin = issue_pin(at)
    validate(at.broadcaster, pin).check()
    other_owner(at).delete("pin").check()
    expect("the status with the token of the PIN", 200, at.bearer(token).get("user_info").status)


@rule("T2", "broadcaster", writes=True)
def existence_of_a_link(at: Deployment) -> None:
    """`pin_token_exists` tells whether the channel is linked."""
    _, pin = issue_pin(at)
    found = [at.broadcaster.get("pin_token_exists").data.get("exists")]
    validate(at.broadcaster, pin).check()
    found.append(at.broadcaster.get("pin_token_exists").data.get("exists"))
    expect("`exists` before and after the validation", [False, True], found)
    expect("`exists` in another channel", False, other_owner(at).get("pin_token_exists").data.get("exists"))

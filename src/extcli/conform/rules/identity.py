"""Tokens: which are accepted, and which caller each names."""

from __future__ import annotations

import base64
import json
from ipaddress import ip_address, ip_network
from typing import Any

from extcli.api import tokens
from extcli.conform.calls import Caller, Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import ROLES, expect, rule, shown
from extcli.conform.target import OMIT

LATER = 600
"""Seconds from now for an `exp`."""


def segment(value: object) -> str:
    """Return a segment of a token."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def with_header(at: Deployment, **members: Any) -> Caller:
    """Return a caller whose token has these members in its header. The signature fits the claims, not the header."""
    claims, signature = at.token("viewer").split(".")[1:]
    return at.bearer(f"{segment({'alg': 'HS256', **members})}.{claims}.{signature}")


def status(caller: Caller) -> int:
    return caller.get("user_info").status


def seconds(at: Deployment, offset: int) -> int:
    """Return the service's time in seconds, moved by `offset`."""
    return at.now() // 1000 + offset


@rule("spec: Authentication", "viewer")
def malformed_header(at: Deployment) -> None:
    """A header that is not `<client id> <token>` is refused with 401."""
    token = at.token("viewer")
    for name, text in {
        "a client id alone": at.client_id,
        "a token alone": token,
        "Bearer": f"Bearer {token}",
        "a third word": f"{at.client_id} {token} more",
    }.items():
        reply = at.anonymous.call("GET", "user_info", headers={"authorization": text})
        expect(f"the status with {name}", 401, reply.status)


@rule("spec: Authentication")
def malformed_token(at: Deployment) -> None:
    """A token that is not a JWT is refused with 401."""
    for text in ("abc", "a.b", "a.b.c", "a.b.c.d", "...", f"{segment({'alg': 'HS256'})}.{segment([])}.x"):
        expect(f"the status with {text}", 401, status(at.bearer(text)))


@rule("spec: Authentication", *ROLES)
def four_roles(at: Deployment) -> None:
    """The roles of tokens are viewer, broadcaster, admin and backend."""
    for role in ROLES:
        expect(f"the role of a {role}", role, at.caller(role).get("user_info").data.get("role"))


@rule("A1", "viewer", secret=True, specified=True)
def expired_token(at: Deployment) -> None:
    """A token is refused with 401 from its `exp` on."""
    expect("the status before exp", 200, status(at.caller("viewer", exp=seconds(at, LATER))))
    expect("the status after exp", 401, status(at.caller("viewer", exp=seconds(at, -LATER))))


@rule("A1", "viewer", secret=True)
def early_token(at: Deployment) -> None:
    """A token is refused with 401 before its `nbf`."""
    expect("the status before nbf", 401, status(at.caller("viewer", nbf=seconds(at, LATER))))
    expect("the status after nbf", 200, status(at.caller("viewer", nbf=seconds(at, -LATER))))


@rule("A1", "viewer", secret=True)
def malformed_exp(at: Deployment) -> None:
    """An `exp` that is not a number is refused with 401."""
    wrong: list[Any] = [True, "soon", []]
    for exp in wrong:
        expect(f"the status with exp {shown(exp)}", 401, status(at.caller("viewer", exp=exp)))


@rule("A1", secret=True, mode="production")
def exp_in_milliseconds(at: Deployment) -> None:
    """An `exp` that is null, or in milliseconds, is refused with 401."""
    for exp in (None, at.now() + LATER * 1000, 10**11):
        expect(f"the status with exp {shown(exp)}", 401, status(at.caller("viewer", exp=exp)))
    expect("the status with exp 10**11 - 1", 200, status(at.caller("viewer", exp=10**11 - 1)))


@rule("A1", "viewer", secret=True, mode="production")
def malformed_stage(at: Deployment) -> None:
    """An `allowed_stage` that is not a text is refused with 401."""
    stages: list[Any] = [["sandbox"], {}, 1, True]
    for stage in stages:
        expect(f"the status with {shown(stage)}", 401, status(at.caller("viewer", allowed_stage=stage)))


@rule("A1", "viewer", secret=True, mode="production")
def sandbox_token_in_production(at: Deployment) -> None:
    """Production refuses a token of the sandbox with 403."""
    expect("the status", 403, status(at.caller("viewer", allowed_stage="sandbox")))


@rule("A1", "viewer", mode="production", specified=True)
def wrong_signature(at: Deployment) -> None:
    """Production refuses a token with another signature."""
    head, claims, signature = at.token("viewer").split(".")
    other = tokens.sign({"role": "viewer"}, b"another secret of 32 bytes or more").rpartition(".")[2]
    expect("the status with the signature of another key", 401, status(at.bearer(f"{head}.{claims}.{other}")))
    admin = segment({"role": "admin", "exp": seconds(at, LATER)})
    expect("the status with other claims", 401, status(at.bearer(f"{head}.{admin}.{signature}")))
    unsigned = segment({"alg": "none", "typ": "JWT"})
    expect("the status with alg none", 401, status(at.bearer(f"{unsigned}.{claims}.")))


@rule("A1", "viewer", mode="sandbox", specified=True)
def ignored_signature(at: Deployment) -> None:
    """The sandbox does not check signatures."""
    head, claims, _ = at.token("viewer").split(".")
    for signature in ("any", ""):
        reply = at.bearer(f"{head}.{claims}.{signature}").get("user_info")
        expect(
            f"status and role with the signature {shown(signature)}",
            (200, "viewer"),
            (reply.status, reply.json.get("role")),
        )


@rule("A1", secret=True, mode="production")
def missing_exp(at: Deployment) -> None:
    """Production refuses tokens without `exp` of viewers and broadcasters with 401."""
    for role, expected in (("viewer", 401), ("broadcaster", 401), ("admin", 200), ("backend", 200)):
        expect(f"the status for a {role}", expected, status(at.caller(role, exp=OMIT)))


@rule("A1", "viewer", secret=True, mode="production")
def unregistered_extension(at: Deployment) -> None:
    """Production serves registered extensions only: others get 401."""
    expect("the status", 401, status(at.caller("viewer", client_id=at.fresh("client"))))


@rule("A1", secret=True, mode="production")
def token_of_another_extension(at: Deployment) -> None:
    """Production refuses a token that names another extension."""
    for claim in ("extension_id", "app_id"):
        expect(f"the status with {claim} of another", 401, status(at.caller("viewer", **{claim: at.fresh("client")})))
        expect(f"the status with {claim} of this one", 200, status(at.caller("viewer", **{claim: at.client_id})))


@rule("A1", "viewer", mode="production")
def key_in_the_header(at: Deployment) -> None:
    """A token whose header holds a key, or `crit`, is refused with 401."""
    for name, value in {"jku": "https://x.example/", "jwk": {}, "x5u": "https://x.example/", "crit": ["b64"]}.items():
        expect(f"the status with {name}", 401, status(with_header(at, **{name: value})))


@rule("spec: Authentication", writes=True, mode="sandbox")
def authtoken(at: Deployment) -> None:
    """The sandbox issues tokens."""
    token = str(request_token(at).data.get("token"))
    expect("the role of the token", "viewer", at.bearer(token).get("user_info").data.get("role"))


@rule("spec: Authentication", writes=True, mode="production")
def no_authtoken(at: Deployment) -> None:
    """Production issues no tokens: `authtoken` gets 404."""
    expect("the status", 404, request_token(at).status)


def request_token(at: Deployment) -> Reply:
    """Return the response to a request for a token of a viewer."""
    return at.anonymous.post("authtoken", {"app_id": at.client_id, "role": "viewer", "channel_id": at.channel})


@rule("A2", "viewer", secret=True)
def numeric_ids(at: Deployment) -> None:
    """Numbers in the ids of a token count as text."""
    found = at.caller("viewer", 5551, channel=777, opaque=12).get("user_info").data  # type: ignore[arg-type]
    seen = [found.get(name) for name in ("user_id", "channel_id", "opaque_user_id")]
    expect("user_id, channel_id and opaque_user_id", ["5551", "777", "12"], seen)


@rule("A2", "viewer", secret=True)
def unknown_role(at: Deployment) -> None:
    """An unknown role counts as viewer."""
    for role in ("moderator", "Admin", ""):
        expect(f"the role for {shown(role)}", "viewer", at.caller(role).get("user_info").data.get("role"))
        refused = at.caller(role).get("vote_logs", id=at.fresh("poll")).status
        expect(f"the status of vote_logs for {shown(role)}", 403, refused)


@rule("A2", secret=True, writes=True)
def broadcaster_without_a_channel(at: Deployment) -> None:
    """A broadcaster without `channel_id` acts for the channel of their `user_id`."""
    at.caller("broadcaster", at.channel, channel=None).post("channel_state", {"round": 4}).check()
    expect("the state of the channel", {"round": 4}, at.viewer.get("channel_state").data)


@rule("A2", "viewer", secret=True)
def malformed_ids(at: Deployment) -> None:
    """An id in a token that is neither text nor an integer is refused with 401."""
    values: list[Any] = [True, 1.5, [1], {}, "7\0"]
    for claim in ("user_id", "channel_id", "opaque_user_id"):
        for value in values:
            token = at.target.token_of({"role": "viewer", claim: value}, at.client_id)
            expect(f"the status with {claim} {shown(value)}", 401, status(at.bearer(token)))


@rule("A3", "viewer", secret=True, writes=True)
def one_person(at: Deployment) -> None:
    """A user who shares their id stays the same voter."""
    poll, opaque = at.fresh("poll"), at.fresh("opaque", prefix="U")
    at.caller("viewer", None, opaque=opaque).post("vote", {"value": 1}, id=poll).check()
    for caller in (at.caller("viewer", at.user, opaque=opaque), at.caller("viewer", at.user, opaque=None)):
        reply = caller.post("vote", {"value": 2}, id=poll).data
        expect("count and sum of the votes", (1, 2), (reply["stats"]["count"], reply["stats"]["sum"]))


@rule("A6", "viewer")
def hidden_address(at: Deployment) -> None:
    """`user_info` hides the last part of the caller's address."""
    found = at.viewer.get("user_info").data.get("ip_address")
    address = ip_address(found) if found else None  # a service behind a Unix socket knows none
    if address is not None:
        bits = 24 if address.version == 4 else 48
        hidden = ip_network(f"{address}/{bits}", strict=False).network_address
        expect(f"the address, without all but {bits} bits", str(hidden), found)


@rule("gaps: Clock and directory", "viewer")
def user_info(at: Deployment) -> None:
    """`user_info` has the caller's role, channel, ids and client id."""
    found = at.viewer.get("user_info").data
    names = ("role", "channel_id", "user_id", "opaque_user_id", "extension_id")
    expected = ["viewer", at.channel, at.user, f"U{at.user}", at.client_id]
    expect(", ".join(names), expected, [found.get(name) for name in names])

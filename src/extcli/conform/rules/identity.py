"""Tokens: which are accepted, which caller each names, and what each role may read."""

from __future__ import annotations

import base64
import json
from ipaddress import ip_address, ip_network
from typing import Any

from extcli.api import tokens
from extcli.conform.calls import OMIT, Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import ROLES, expect, expect_members, reads, shown, writes
from extcli.conform.rules.votes import Poll

LATER = 600
"""Seconds from now for an `exp`."""


def token_segment(value: object) -> str:
    """Return a segment of a token."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def refuses_claim(at: Deployment, name: str, *values: Any) -> None:
    """Raise `Differs` unless a viewer's token with each of these values in a claim is refused with 401."""
    for value in values:
        at.caller("viewer", **{name: value}).user_info(401, f"with {name} {shown(value)}")


def seconds_from_now(at: Deployment, offset: int) -> int:
    """Return the service's time in seconds, moved by `offset`."""
    return at.target.now() // 1000 + offset


@reads("spec: Authentication")
def malformed_header(at: Deployment) -> None:
    """A header that is not `<client id> <token>` is refused with 401."""
    token = at.token("viewer")
    for name, text in {
        "a client id alone": at.client_id,
        "a token alone": token,
        "Bearer": f"Bearer {token}",
        "a third word": f"{at.client_id} {token} more",
    }.items():
        at.anonymous.get("user_info", headers={"authorization": text}, status=401, case=f"with {name}")


@reads("spec: Authentication", "anonymous")
def malformed_token(at: Deployment) -> None:
    """A token that is not a JWT is refused with 401."""
    for text in ("abc", "a.b", "a.b.c", "a.b.c.d", "...", f"{token_segment({'alg': 'HS256'})}.{token_segment([])}.x"):
        at.bearer(text).user_info(401, f"with {text}")


@reads("spec: Authentication")
def four_roles(at: Deployment) -> None:
    """The roles of tokens are viewer, broadcaster, admin and backend."""
    for role in ROLES:
        expect(f"the role of a {role}", role, at.caller(role).user_info()["role"])


@reads("spec: Authentication")
def readers_of_results(at: Deployment) -> None:
    """Admins and backends read vote logs; they and broadcasters read rankings and buffers; others get 403."""
    at.check_readers(("admin", "backend"), "vote_logs", id=at.fresh("poll"))
    for path in ("rank", "accumulate"):
        at.check_readers(("broadcaster", "admin", "backend"), path, id=at.fresh())


@reads("A1", "secret", "specified")
def expired_token(at: Deployment) -> None:
    """A token is refused with 401 from its `exp` on."""
    at.caller("viewer", exp=seconds_from_now(at, LATER)).user_info(case="before exp")
    at.caller("viewer", exp=seconds_from_now(at, -LATER)).user_info(401, "after exp")


@reads("A1", "secret")
def early_token(at: Deployment) -> None:
    """A token is refused with 401 before its `nbf`, and if its `exp` is not a number."""
    at.caller("viewer", nbf=seconds_from_now(at, LATER)).user_info(401, "before nbf")
    at.caller("viewer", nbf=seconds_from_now(at, -LATER)).user_info(case="after nbf")
    refuses_claim(at, "exp", True, "soon", [])


@reads("A1", "secret", "production")
def sandbox_token_in_production(at: Deployment) -> None:
    """Production refuses a token of the sandbox with 403, and an `allowed_stage` that is not a string with 401."""
    at.caller("viewer", allowed_stage="sandbox").user_info(403)
    refuses_claim(at, "allowed_stage", ["sandbox"], {}, 1, True)


@reads("A1", "production", "specified")
def wrong_signature(at: Deployment) -> None:
    """Production refuses a token with another signature."""
    head, claims, signature = at.token("viewer").split(".")
    other = tokens.sign({"role": "viewer"}, b"another secret of 32 bytes or more").rpartition(".")[2]
    at.bearer(f"{head}.{claims}.{other}").user_info(401, "with the signature of another key")
    admin = token_segment({"role": "admin", "exp": seconds_from_now(at, LATER)})
    at.bearer(f"{head}.{admin}.{signature}").user_info(401, "with other claims")
    unsigned = token_segment({"alg": "none", "typ": "JWT"})
    at.bearer(f"{unsigned}.{claims}.").user_info(401, "with alg none")


@reads("A1", "sandbox", "specified")
def ignored_signature(at: Deployment) -> None:
    """The sandbox does not check signatures."""
    head, claims, _ = at.token("viewer").split(".")
    for signature in ("any", ""):
        found = at.bearer(f"{head}.{claims}.{signature}").user_info(case=f"with the signature {shown(signature)}")
        expect("the role", "viewer", found["role"])


@reads("A1", "secret", "production")
def exp_in_production(at: Deployment) -> None:
    """Production refuses tokens of viewers and broadcasters with 401 unless they have an `exp` in seconds."""
    refuses_claim(at, "exp", None, at.target.now() + LATER * 1000, 10**11)
    at.caller("viewer", exp=10**11 - 1).user_info(case="with exp 10**11 - 1")
    for role, status in (("viewer", 401), ("broadcaster", 401), ("admin", 200), ("backend", 200)):
        at.caller(role, exp=OMIT).user_info(status)


@reads("A1", "secret", "production")
def extension_of_a_token(at: Deployment) -> None:
    """Production refuses an unregistered extension, and a token that names another extension, with 401."""
    at.caller("viewer", client_id=at.fresh("client")).user_info(401)
    for claim in ("extension_id", "app_id"):
        refuses_claim(at, claim, at.fresh("client"))
        at.caller("viewer", **{claim: at.client_id}).user_info(case=f"with {claim} of this extension")


@reads("A1", "production")
def key_in_the_header(at: Deployment) -> None:
    """A token whose header holds a key, or `crit`, is refused with 401."""
    claims, signature = at.token("viewer").split(".")[1:]
    for name, value in {"jku": "https://x.example/", "jwk": {}, "x5u": "https://x.example/", "crit": ["b64"]}.items():
        header = token_segment({"alg": "HS256", name: value})
        at.bearer(f"{header}.{claims}.{signature}").user_info(401, f"with {name}")


@writes("spec: Authentication", "sandbox", "anonymous")
def authtoken(at: Deployment) -> None:
    """The sandbox issues tokens."""
    token = str(request_token(at).json["token"])
    expect("the role of the token", "viewer", at.bearer(token).user_info()["role"])


@writes("spec: Authentication", "production", "anonymous")
def no_authtoken(at: Deployment) -> None:
    """Production issues no tokens: `authtoken` gets 404."""
    request_token(at, 404)


def request_token(at: Deployment, status: int = 200) -> Reply:
    """Return the response to a request for a token of a viewer."""
    body = {"app_id": at.client_id, "role": "viewer", "channel_id": at.channel}
    return at.anonymous.post("authtoken", body, status=status)


@reads("A2", "secret")
def unknown_role(at: Deployment) -> None:
    """An unknown role counts as viewer."""
    for role in ("moderator", "Admin", ""):
        expect(f"the role for {shown(role)}", "viewer", at.caller(role).user_info()["role"])
        at.caller(role).get("vote_logs", id=at.fresh("poll"), status=403)


@writes("A2", "secret")
def broadcaster_without_a_channel(at: Deployment) -> None:
    """A broadcaster without `channel_id` acts for the channel of their `user_id`."""
    at.caller("broadcaster", at.channel, channel=None).post("channel_state", {"round": 4})
    at.viewer.get("channel_state").returns({"round": 4})


@reads("A2", "secret")
def types_of_ids(at: Deployment) -> None:
    """An id in a token is a string or an integer; one of another type, or with NUL, is refused with 401."""
    found = at.caller("viewer", 5551, channel=777, opaque=12).user_info()  # type: ignore[arg-type]
    expect_members({"user_id": "5551", "channel_id": "777", "opaque_user_id": "12"}, found)
    values: list[Any] = [True, 1.5, [1], {}, "7\0"]
    for claim in ("user_id", "channel_id", "opaque_user_id"):
        for value in values:
            token = at.target.token_of({"role": "viewer", claim: value}, at.client_id)
            at.bearer(token).user_info(401, f"with {claim} {shown(value)}")


@writes("A3", "secret")
def one_person(at: Deployment) -> None:
    """A user who shares their id stays the same voter."""
    poll, opaque = Poll(at), at.fresh("opaque", prefix="U")
    poll.cast(1, at.caller("viewer", None, opaque=opaque))
    for known in (opaque, None):
        reply = poll.cast(2, at.caller("viewer", at.user, opaque=known))
        expect_members({"count": 1, "sum": 2}, reply.json["stats"])


@reads("A6")
def hidden_address(at: Deployment) -> None:
    """`user_info` hides the last part of the caller's address."""
    if found := at.viewer.user_info().get("ip_address"):  # a service behind a Unix socket knows none
        address = ip_address(found)
        bits = 24 if address.version == 4 else 48
        hidden = ip_network(f"{address}/{bits}", strict=False).network_address
        expect(f"the address, with all but the first {bits} bits set to 0", str(hidden), found)


@reads("gaps: Clock and directory")
def user_info(at: Deployment) -> None:
    """`user_info` has the caller's role, channel, ids and client id."""
    ids = {"channel_id": at.channel, "user_id": at.user, "opaque_user_id": f"U{at.user}"}
    expect_members({"role": "viewer", **ids, "extension_id": at.client_id}, at.viewer.user_info())

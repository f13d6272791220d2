"""PINs: their form, who issues and validates them, wrong ones, and what they lead to: tokens and linked games."""

from __future__ import annotations

import re

from extcli.api import tokens
from extcli.conform.calls import ANY, Caller, Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import expect, expect_members, expect_string, expect_that, reads, writes

WRONG = "ZZZZZZ"
"""A PIN that is never issued: it would be one in 700 million."""


def bound_pin(at: Deployment, by: Caller | None = None) -> str:
    """Return a new PIN of the probe's channel, requested by its broadcaster or another caller."""
    return str((by or at.broadcaster).post("link/pin").json["pin"])


def validate_pin(caller: Caller, pin: str, status: int = 200, case: str = "") -> Reply:
    return caller.post("validate_pin", {"pin": pin}, status=status, case=case)


def check_credential(at: Deployment, status: int, **credential: str) -> Reply:
    """Let the service check a token or a PIN, and return the response, which must have this status."""
    body = {"identifier": at.client_id, **credential}
    return at.anonymous.post("unauthed/validate_pin", body, status=status)


def issue_pin(at: Deployment) -> tuple[str, str]:
    """Return the token and the PIN of `POST pin`."""
    found = at.anonymous.post("pin", {"identifier": at.client_id}).json
    return str(found["token"]), str(found["pin"])


# Tokens of `POST pin`


@writes("spec: Endpoints")
def token_of_a_pin(at: Deployment) -> None:
    """The token of `POST pin` is valid once its PIN was validated, and no other PIN makes it valid."""
    (token, pin), (other, _) = issue_pin(at), issue_pin(at)
    caller = at.bearer(token)
    caller.user_info(401, "before validation")
    validate_pin(at.broadcaster, pin)
    wanted = {"role": "broadcaster", "channel_id": at.channel, "user_id": at.channel}
    expect_members(wanted, caller.user_info(), "afterwards")
    at.bearer(other).user_info(401, "with the token of another PIN")


@writes("A5")
def payload_of_a_token(at: Deployment) -> None:
    """An issued token lasts 7 days, a refresh token 365; its payload has no `-` and no `_`."""
    pair = at.socket().authenticate(pin=bound_pin(at))
    for name, token, days in (
        ("POST pin", issue_pin(at)[0], 7),
        ("jwt", pair["jwt"], 7),
        ("refresh", pair["refresh"], 365),
    ):
        payload = token.split(".")[1]
        expect(f"the characters - and _ in the payload of {name}", "", re.sub("[^-_]", "", payload))
        claims = tokens.claims_in(token)
        expect(f"the lifetime of {name} in days", days, (claims.get("exp", 0) - claims.get("iat", 0)) / 86_400)


@writes("T5")
def check_of_a_token(at: Deployment) -> None:
    """`unauthed/validate_pin` returns 200 for a token from its validation to its revocation, otherwise 401.

    For a PIN, right or wrong, it always returns the same 400.
    """
    (token, pin), (other, _) = issue_pin(at), issue_pin(at)
    check_credential(at, 401, jwt=token)
    validate_pin(at.broadcaster, pin)
    check_credential(at, 200, jwt=token)
    check_credential(at, 401, jwt=other)
    at.broadcaster.delete("pin")
    check_credential(at, 401, jwt=token)
    right, wrong = (check_credential(at, 400, pin=pin) for pin in (bound_pin(at), WRONG))
    expect("the response to a wrong PIN, which must equal that to a right PIN", right.json, wrong.json)


# Links


@writes("spec: Authentication")
def pair_of_tokens(at: Deployment) -> None:
    """With a PIN, a game gets an access token, and a refresh token, which REST refuses with 401."""
    pair = at.socket().authenticate(pin=bound_pin(at))
    for name in ("jwt", "refresh"):
        expect_string(name, pair.get(name))
    wanted = {"role": "broadcaster", "channel_id": at.channel}
    expect_members(wanted, at.bearer(pair["jwt"]).user_info(), "of the access token")
    at.bearer(pair["refresh"]).user_info(401, "with the refresh token")


@writes("spec: Authentication")
def refreshed_pair(at: Deployment) -> None:
    """With a refresh token, a game gets a new pair of tokens."""
    game = at.socket()
    first = game.authenticate(pin=bound_pin(at))
    second = game.authenticate(refresh=first["refresh"])
    different = {pair[name] for pair in (first, second) for name in ("jwt", "refresh")}
    expect("the number of different tokens in both pairs", 4, len(different))
    at.bearer(second["jwt"]).user_info(case="with the new access token")


@writes("T3")
def repeated_use(at: Deployment) -> None:
    """PINs and refresh tokens can be used more than once."""
    pin = bound_pin(at)
    pair = at.socket().authenticate(pin=pin)
    for credential in ({"pin": pin}, {"refresh": pair["refresh"]}, {"refresh": pair["refresh"]}):
        at.linked_game(**credential)


@writes("T2")
def revocation(at: Deployment) -> None:
    """`DELETE pin` ends the PINs, their tokens and the refresh tokens of its channel only, permanently."""
    (token, pin), bound = issue_pin(at), bound_pin(at)
    validate_pin(at.broadcaster, pin)
    game = at.socket()
    refresh = game.authenticate(pin=bound)["refresh"]
    at.elsewhere("broadcaster").delete("pin")
    at.bearer(token).user_info(case="after a revocation in another channel")
    at.broadcaster.delete("pin").returns({})
    at.bearer(token).user_info(401, "with the token of the PIN")
    expect_members({"status": 400}, game.refuses_credential(refresh=refresh), "with the refresh token")
    expect_members({"status": 400}, game.refuses_credential(pin=bound), "with the PIN")


@writes("T2")
def existence_of_a_link(at: Deployment) -> None:
    """`pin_token_exists` tells whether the channel is linked."""
    _, pin = issue_pin(at)
    at.broadcaster.get("pin_token_exists").has(exists=False)
    validate_pin(at.broadcaster, pin)
    at.broadcaster.get("pin_token_exists").has(exists=True)
    at.elsewhere("broadcaster").get("pin_token_exists").has(exists=False)


# PINs


@writes("spec: Resources")
def form_of_a_pin(at: Deployment) -> None:
    """A PIN has 6 letters and digits, and is case-sensitive."""
    pin = bound_pin(at)
    expect_that("the PIN", bool(re.fullmatch("[A-Za-z0-9]{6}", pin)), "6 letters and digits", f"{len(pin)} characters")
    if (other := pin.swapcase()) != pin:
        validate_pin(at.broadcaster, other, 400, "with upper and lower case swapped")
    validate_pin(at.broadcaster, pin)


@writes("T1")
def alphabet_of_pins(at: Deployment) -> None:
    """A PIN uses only 30 letters and digits, which do not look alike."""
    for _ in range(5):
        others = re.sub("[A-HJ-KMNP-Z2-46-9]", "", bound_pin(at))
        expect("the characters of a PIN that are not in the alphabet", "", others)


@writes("T2", "anonymous")
def pin_for_a_client_id(at: Deployment) -> None:
    """`link/pin` needs only a client id, and has the PIN as `pin` and as `token`."""
    header = at.anonymous.post("link/pin", headers={"authorization": at.client_id})
    for reply in (header, at.anonymous.post("link/pin", {"identifier": at.client_id})):
        found = reply.json
        expect_string("the PIN", found.get("pin"))
        expect_that("pin and token", found["pin"] == found.get("token"), "the same text", "different texts")


@writes("T2", "anonymous")
def pin_without_a_client_id(at: Deployment) -> None:
    """No PIN is issued without a client id (400), or with an invalid token (401), though no token is needed."""
    for path in ("link/pin", "pin"):
        at.anonymous.refuses(path, {}, {"identifier": ""}, {"identifier": 1}, [])
    at.bearer("no.such.token").post("link/pin", status=401)


@writes("spec: Authentication")
def validation_by_role(at: Deployment) -> None:
    """`validate_pin` accepts a valid PIN, and refuses a wrong one with 400; roles other than broadcaster get 403."""
    pin = bound_pin(at)
    for caller in (at.viewer, at.admin, at.backend):
        validate_pin(caller, pin, 403)
    validate_pin(at.broadcaster, pin).returns({})
    validate_pin(at.broadcaster, WRONG, 400)


@writes("T2")
def channel_of_a_pin(at: Deployment) -> None:
    """A PIN is valid only in the channel of the token that requested it, or of the first broadcaster to validate it."""
    _, unbound = issue_pin(at)
    validate_pin(at.broadcaster, unbound)
    for pin in (unbound, *(bound_pin(at, caller) for caller in (at.broadcaster, at.admin, at.backend))):
        validate_pin(at.elsewhere("broadcaster"), pin, 400, "of another channel")
        validate_pin(at.broadcaster, pin)


# Guesses


@reads("T4", "anonymous")
def tenth_failure(at: Deployment) -> None:
    """The tenth failed attempt on a connection is answered, and closes it with 1008."""
    game = at.socket()
    for number in range(1, 11):
        expect_members({"status": 401}, game.refuses_credential(jwt="x"), f"of failure {number}")
    expect("the close code", 1008, game.close_code())


@reads("T4")
def nine_failures(at: Deployment) -> None:
    """After nine failed attempts a connection can still authenticate."""
    game = at.socket()
    for _ in range(9):
        game.refuses_credential(jwt="x")
    game.authenticate(jwt=at.token("viewer"))


@writes("T4", "production")
def wrong_pins_of_a_channel(at: Deployment) -> None:
    """Production allows a channel 10 wrong PINs a minute, then gives 429 and, in `Retry-After`, the seconds to wait."""
    replies = [at.broadcaster.post("validate_pin", {"pin": WRONG}, status=ANY, repeat=False) for _ in range(11)]
    expect("the statuses", [*[400] * 10, 429], [reply.status for reply in replies])
    after = replies[-1].headers.get("retry-after")
    expect_that("retry-after", bool(re.fullmatch("[1-9][0-9]*", after or "")), "seconds above zero", after)

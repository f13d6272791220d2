"""PINs: their form, who issues and validates them, wrong ones, and what they lead to: tokens and linked games."""

from __future__ import annotations

import re

from extcli.api import tokens
from extcli.conform.calls import ANY, Caller, Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import Skipped, expect, expect_members, expect_that, reads, writes
from extcli.conform.sockets import Socket

DAY = 86_400
WRONG = "ZZZZZZ"
"""A PIN that is never issued: it would be one in 700 million."""


def bound_pin(at: Deployment) -> str:
    """Return a new PIN of the probe's channel."""
    return str(at.broadcaster.post("link/pin").json["pin"])


def validate(caller: Caller, pin: str, status: int = 200, case: str = "") -> Reply:
    return caller.post("validate_pin", {"pin": pin}, status=status, case=case)


def check(at: Deployment, status: int, **credential: str) -> Reply:
    """Let the service check a token or a PIN, and return the response, which must have this status."""
    body = {"identifier": at.client_id, **credential}
    return at.anonymous.post("unauthed/validate_pin", body, status=status)


def issue_pin(at: Deployment) -> tuple[str, str]:
    """Return the token and the PIN of `POST pin`."""
    found = at.anonymous.post("pin", {"identifier": at.client_id}).json
    return str(found["token"]), str(found["pin"])


def with_letters(at: Deployment) -> str:
    """Return a PIN with a letter, so that its case matters."""
    for _ in range(5):
        if (pin := bound_pin(at)).lower() != pin:
            return pin
    raise Skipped("five PINs had no letters")


def link(at: Deployment, **credential: str) -> Socket:
    """Return a game socket after a successful `authenticate`."""
    game = at.socket()
    game.authenticate(**credential)
    return game


# Tokens of `POST pin`


@writes("spec: Endpoints")
def token_of_a_pin(at: Deployment) -> None:
    """The token of `POST pin` is valid once its PIN was validated."""
    token, pin = issue_pin(at)
    caller = at.bearer(token)
    caller.user_info(401, "before validation")
    validate(at.broadcaster, pin)
    wanted = {"role": "broadcaster", "channel_id": at.channel, "user_id": at.channel}
    expect_members(wanted, caller.user_info(), "afterwards")


@writes("T2")
def token_of_another_pin(at: Deployment) -> None:
    """A PIN validates only its own token."""
    (first, pin), (second, _) = issue_pin(at), issue_pin(at)
    validate(at.broadcaster, pin)
    at.bearer(first).user_info(case="with the token of the PIN")
    at.bearer(second).user_info(401, "with the token of another PIN")


@writes("A5")
def payload_of_a_token(at: Deployment) -> None:
    """The payload of an issued token has no `-` and no `_`, and lasts 7 days."""
    pair = at.socket().authenticate(pin=bound_pin(at))
    for name, token, days in (
        ("POST pin", issue_pin(at)[0], 7),
        ("jwt", pair["jwt"], 7),
        ("refresh", pair["refresh"], 365),
    ):
        payload = token.split(".")[1]
        expect(f"- and _ in the payload of {name}", "", re.sub("[^-_]", "", payload))
        claims = tokens.claims_in(token)
        expect(f"the lifetime of {name} in days", days, (claims.get("exp", 0) - claims.get("iat", 0)) / DAY)


@writes("T5")
def check_of_a_token(at: Deployment) -> None:
    """`unauthed/validate_pin` is 200 from the validation until the revocation, otherwise 401."""
    (token, pin), (other, _) = issue_pin(at), issue_pin(at)
    check(at, 401, jwt=token)
    validate(at.broadcaster, pin)
    check(at, 200, jwt=token)
    check(at, 401, jwt=other)
    at.broadcaster.delete("pin")
    check(at, 401, jwt=token)


@writes("T5")
def check_of_a_pin(at: Deployment) -> None:
    """`unauthed/validate_pin` takes no PIN: a valid and a wrong PIN get the same response, 400."""
    right, wrong = (check(at, 400, pin=pin) for pin in (bound_pin(at), WRONG))
    expect("the response with a wrong PIN", right.json, wrong.json)


# Links


@writes("spec: Authentication")
def pair_of_tokens(at: Deployment) -> None:
    """A game's PIN leads to an access token and a refresh token."""
    pair = at.socket().authenticate(pin=bound_pin(at))
    for name in ("jwt", "refresh"):
        expect_that(name, isinstance(pair.get(name), str), "a string", pair.get(name))
    caller = at.bearer(pair["jwt"]).user_info()
    expect_members({"role": "broadcaster", "channel_id": at.channel}, caller, "of the access token")


@writes("spec: Authentication")
def refreshed_pair(at: Deployment) -> None:
    """A refresh token leads to a new pair of tokens."""
    game = at.socket()
    first = game.authenticate(pin=bound_pin(at))
    second = game.authenticate(refresh=first["refresh"])
    different = {pair[name] for pair in (first, second) for name in ("jwt", "refresh")}
    expect("the number of different tokens", 4, len(different))
    at.bearer(second["jwt"]).user_info(case="with the new access token")


@writes("T3")
def repeated_use(at: Deployment) -> None:
    """PINs and refresh tokens can be used more than once."""
    pin = bound_pin(at)
    pair = at.socket().authenticate(pin=pin)
    for credential in ({"pin": pin}, {"refresh": pair["refresh"]}, {"refresh": pair["refresh"]}):
        link(at, **credential)


@writes("spec: Authentication")
def refresh_token_over_rest(at: Deployment) -> None:
    """A refresh token is not an access token: REST refuses it with 401."""
    pair = at.socket().authenticate(pin=bound_pin(at))
    at.bearer(pair["refresh"]).user_info(401)


@writes("T2")
def revocation(at: Deployment) -> None:
    """`DELETE pin` ends PINs, their tokens and refresh tokens of the channel permanently."""
    (token, pin), bound = issue_pin(at), bound_pin(at)
    validate(at.broadcaster, pin)
    game = at.socket()
    refresh = game.authenticate(pin=bound)["refresh"]
    at.broadcaster.delete("pin").returns({})
    at.bearer(token).user_info(401, "with the token of the PIN")
    game.refuses_credential(400, "with the refresh token", refresh=refresh)
    game.refuses_credential(400, "with the PIN", pin=bound)


@writes("T2")
def revocation_of_another_channel(at: Deployment) -> None:
    """`DELETE pin` leaves the links of other channels alone."""
    token, pin = issue_pin(at)
    validate(at.broadcaster, pin)
    at.elsewhere("broadcaster").delete("pin")
    at.bearer(token).user_info(case="with the token of the PIN")


@writes("T2")
def existence_of_a_link(at: Deployment) -> None:
    """`pin_token_exists` tells whether the channel is linked."""
    _, pin = issue_pin(at)
    at.broadcaster.get("pin_token_exists").has(exists=False)
    validate(at.broadcaster, pin)
    at.broadcaster.get("pin_token_exists").has(exists=True)
    at.elsewhere("broadcaster").get("pin_token_exists").has(exists=False)


# PINs


@writes("spec: Resources")
def form_of_a_pin(at: Deployment) -> None:
    """A PIN has 6 letters and digits."""
    pin = bound_pin(at)
    expect_that("the PIN", bool(re.fullmatch("[A-Za-z0-9]{6}", pin)), "6 letters and digits", f"{len(pin)} characters")


@writes("T1")
def alphabet_of_pins(at: Deployment) -> None:
    """A PIN uses 30 letters and digits that are not mistaken for each other."""
    for _ in range(5):
        others = re.sub("[A-HJ-KMNP-Z2-46-9]", "", bound_pin(at))
        expect("other characters in a PIN", "", others)


@writes("spec: Resources")
def case_of_a_pin(at: Deployment) -> None:
    """A PIN is case-sensitive."""
    pin = with_letters(at)
    validate(at.broadcaster, pin.lower(), 400, "in lower case")
    validate(at.broadcaster, pin)


@writes("T2", "anonymous")
def pin_for_a_client_id(at: Deployment) -> None:
    """`link/pin` needs only a client id, and has the PIN as `pin` and as `token`."""
    header = at.anonymous.post("link/pin", headers={"authorization": at.client_id})
    for reply in (header, at.anonymous.post("link/pin", {"identifier": at.client_id})):
        found = reply.json
        expect_that("the PIN", isinstance(found.get("pin"), str), "a string", found.get("pin"))
        expect_that("pin and token", found["pin"] == found.get("token"), "the same text", "different texts")


@writes("T2", "anonymous")
def pin_without_a_client_id(at: Deployment) -> None:
    """Without a client id no PIN is issued: 400."""
    for path in ("link/pin", "pin"):
        at.anonymous.refuses(path, {}, {"identifier": ""}, {"identifier": 1}, [])


@writes("T2", "anonymous")
def pin_with_a_bad_token(at: Deployment) -> None:
    """`link/pin` with a bad token gets 401, although it needs none."""
    at.bearer("no.such.token").post("link/pin", status=401)


@writes("spec: Endpoints")
def validation(at: Deployment) -> None:
    """`validate_pin` succeeds for a valid PIN, and fails for another."""
    validate(at.broadcaster, bound_pin(at)).returns({})
    validate(at.broadcaster, WRONG, 400)


@writes("spec: Authentication")
def validation_by_role(at: Deployment) -> None:
    """Only a broadcaster validates a PIN; other roles are refused with 403."""
    pin = bound_pin(at)
    for caller in (at.viewer, at.admin, at.backend):
        validate(caller, pin, 403)


@writes("T2")
def pin_of_another_channel(at: Deployment) -> None:
    """A PIN of one channel is invalid for the broadcaster of another."""
    pin = bound_pin(at)
    validate(at.elsewhere("broadcaster"), pin, 400, "of another channel")
    validate(at.broadcaster, pin)


@writes("T2")
def first_validation(at: Deployment) -> None:
    """The first broadcaster to validate an unbound PIN binds it."""
    _, pin = issue_pin(at)
    validate(at.broadcaster, pin)
    validate(at.elsewhere("broadcaster"), pin, 400, "of another channel")
    validate(at.broadcaster, pin)


@writes("T2")
def pin_of_an_admin(at: Deployment) -> None:
    """An admin or backend binds a PIN to the channel of its token."""
    for caller in (at.admin, at.backend):
        pin = str(caller.post("link/pin").json["pin"])
        validate(at.elsewhere("broadcaster"), pin, 400, "of another channel")
        validate(at.broadcaster, pin)


# Guesses


@reads("T4", "anonymous")
def tenth_failure(at: Deployment) -> None:
    """The tenth failed attempt on a connection is answered, and closes it with 1008."""
    game = at.socket()
    for number in range(1, 11):
        game.refuses_credential(401, f"of failure {number}", jwt="x")
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
    """In production a channel has 10 wrong PINs a minute; then 429."""
    owner = at.broadcaster
    statuses = [owner.post("validate_pin", {"pin": WRONG}, status=ANY, repeat=False).status for _ in range(11)]
    expect("the statuses", [*[400] * 10, 429], statuses)


@writes("W4", "production")
def retry_after(at: Deployment) -> None:
    """429 says in `Retry-After` when to try again, in seconds."""
    owner = at.broadcaster
    for _ in range(20):
        reply = owner.post("validate_pin", {"pin": WRONG}, status=ANY, repeat=False)
        if reply.status == 429:
            after = reply.headers.get("retry-after")
            expect_that("retry-after", bool(after and after.isdecimal() and int(after)), "seconds above zero", after)
            return
    raise Skipped("20 wrong PINs in a row were not limited")

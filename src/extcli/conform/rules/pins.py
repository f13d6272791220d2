"""PINs: their form, who issues and validates them, and wrong ones."""

from __future__ import annotations

import re
from typing import Any

from extcli.conform.calls import Caller, Reply
from extcli.conform.deployment import Deployment
from extcli.conform.rule import ROLES, Skipped, expect, expect_that, rule, shown

WRONG = "ZZZZZZ"
"""A PIN that is never issued: it would be one in 700 million."""


def bound_pin(at: Deployment) -> str:
    """Return a new PIN of the probe's channel."""
    return str(at.broadcaster.post("link/pin").data["pin"])


def validate(caller: Caller, pin: str) -> Reply:
    return caller.post("validate_pin", {"pin": pin})


def issue_pin(at: Deployment) -> tuple[str, str]:
    """Return the token and the PIN of `POST pin`."""
    found = at.anonymous.post("pin", {"identifier": at.client_id}).data
    return str(found["token"]), str(found["pin"])


def with_letters(at: Deployment) -> str:
    """Return a PIN with a letter, so that its case matters."""
    for _ in range(5):
        if (pin := bound_pin(at)).lower() != pin:
            return pin
    raise Skipped("five PINs had no letters")


def other_owner(at: Deployment) -> Caller:
    """Return the broadcaster of another channel."""
    return at.caller("broadcaster", channel=at.fresh("channel"))


# PINs


@rule("spec: Resources", "broadcaster", writes=True)
def form_of_a_pin(at: Deployment) -> None:
    """A PIN has 6 letters and digits."""
    pin = bound_pin(at)
    expect_that("the PIN", bool(re.fullmatch("[A-Za-z0-9]{6}", pin)), "6 letters and digits", f"{len(pin)} characters")


@rule("T1", "broadcaster", writes=True)
def alphabet_of_pins(at: Deployment) -> None:
    """A PIN uses 30 letters and digits that are not mistaken for each other."""
    for _ in range(5):
        others = re.sub("[A-HJ-KMNP-Z2-46-9]", "", bound_pin(at))
        expect("other characters in a PIN", "", others)


@rule("spec: Resources", "broadcaster", writes=True)
def case_of_a_pin(at: Deployment) -> None:
    """A PIN is case-sensitive."""
    pin = with_letters(at)
    expect("the status in lower case", 400, validate(at.broadcaster, pin.lower()).status)
    expect("the status as issued", 200, validate(at.broadcaster, pin).status)


@rule("T2", writes=True)
def pin_for_a_client_id(at: Deployment) -> None:
    """`link/pin` needs only a client id, and has the PIN as `pin` and as `token`."""
    replies = [
        at.anonymous.call("POST", "link/pin", headers={"authorization": at.client_id}),
        at.anonymous.post("link/pin", {"identifier": at.client_id}),
    ]
    for reply in replies:
        found = reply.data
        expect_that("the PIN", isinstance(found.get("pin"), str), "a text", found.get("pin"))
        expect_that("pin and token", found["pin"] == found.get("token"), "the same text", "different texts")


@rule("T2", writes=True)
def pin_without_a_client_id(at: Deployment) -> None:
    """Without a client id no PIN is issued: 400."""
    bodies: list[Any] = [{}, {"identifier": ""}, {"identifier": 1}, []]
    for path in ("link/pin", "pin"):
        for body in bodies:
            expect(f"the status of POST {path} with {shown(body)}", 400, at.anonymous.post(path, body).status)


@rule("T2", writes=True)
def pin_with_a_bad_token(at: Deployment) -> None:
    """`link/pin` with a bad token gets 401, although it needs none."""
    expect("the status", 401, at.bearer("no.such.token").post("link/pin").status)


@rule("spec: Endpoints", "broadcaster", writes=True)
def validation(at: Deployment) -> None:
    """`validate_pin` succeeds for a valid PIN, and fails for another."""
    reply = validate(at.broadcaster, bound_pin(at))
    expect("status and body for a valid PIN", (200, {}), (reply.status, reply.json))
    expect("the status for a wrong PIN", 400, validate(at.broadcaster, WRONG).status)


@rule("spec: Authentication", *ROLES, writes=True)
def validation_by_role(at: Deployment) -> None:
    """Only a broadcaster validates a PIN; other roles are refused with 403."""
    pin = bound_pin(at)
    for caller in (at.viewer, at.admin, at.backend):
        expect(f"the status for a {caller.role}", 403, validate(caller, pin).status)


@rule("T2", "broadcaster", writes=True)
def pin_of_another_channel(at: Deployment) -> None:
    """A PIN of one channel is invalid for the broadcaster of another."""
    pin = bound_pin(at)
    expect("the status for another broadcaster", 400, validate(other_owner(at), pin).status)
    expect("the status for the owner afterwards", 200, validate(at.broadcaster, pin).status)


@rule("T2", "broadcaster", writes=True)
def first_validation(at: Deployment) -> None:
    """The first broadcaster to validate an unbound PIN binds it."""
    _, pin = issue_pin(at)
    callers = (at.broadcaster, other_owner(at), at.broadcaster)
    expect("the statuses of owner, another, owner", [200, 400, 200], [validate(each, pin).status for each in callers])


@rule("T2", "broadcaster", "admin", "backend", writes=True)
def pin_of_an_admin(at: Deployment) -> None:
    """An admin or backend binds a PIN to the channel of its token."""
    for caller in (at.admin, at.backend):
        pin = str(caller.post("link/pin").data["pin"])
        expect(
            f"the status for another broadcaster, PIN of a {caller.role}", 400, validate(other_owner(at), pin).status
        )
        expect(f"the status for the owner, PIN of a {caller.role}", 200, validate(at.broadcaster, pin).status)


# Guesses


@rule("T4")
def tenth_failure(at: Deployment) -> None:
    """The tenth failed attempt on a connection is answered, and closes it with 1008."""
    game = at.socket()
    for number in range(1, 11):
        error = game.error("authenticate", data={"client_id": at.client_id, "jwt": "x"})
        expect(f"the status of failure {number}", 401, error.get("status"))
    expect("the close code", 1008, game.close_code())


@rule("T4", "viewer")
def nine_failures(at: Deployment) -> None:
    """After nine failed attempts a connection can still authenticate."""
    game = at.socket()
    for _ in range(9):
        game.error("authenticate", data={"client_id": at.client_id, "jwt": "x"})
    game.data("authenticate", data={"client_id": at.client_id, "jwt": at.token("viewer")})


@rule("T4", "broadcaster", writes=True, mode="production")
def wrong_pins_of_a_channel(at: Deployment) -> None:
    """In production a channel has 10 wrong PINs a minute; then 429."""
    owner = at.broadcaster
    statuses = [owner.call("POST", "validate_pin", {"pin": WRONG}, repeat=False).status for _ in range(11)]
    expect("the statuses", [*[400] * 10, 429], statuses)


@rule("W4", "broadcaster", writes=True, mode="production")
def retry_after(at: Deployment) -> None:
    """429 says in `Retry-After` when to try again, in seconds."""
    owner = at.broadcaster
    for _ in range(20):
        reply = owner.call("POST", "validate_pin", {"pin": WRONG}, repeat=False)
        if reply.status == 429:
            after = reply.headers.get("retry-after")
            expect_that("retry-after", bool(after and after.isdecimal() and int(after)), "seconds above zero", after)
            return
    raise Skipped("20 wrong PINs in a row were not limited")

"""Refusals of PINs and links."""

from __future__ import annotations

from emulator.errors import UNAUTHORIZED, BadRequest, Facts, NotFound, TooManyRequests, Unauthorized, refusal

_REQUEST_ONE = "Send the `token` of the response to POST pin: `extcli pin request --game` prints it."
_TOO_MANY = (TooManyRequests, "Too many requests", "T4")


@refusal(Unauthorized, UNAUTHORIZED, "T2", "The PIN of the token is not validated yet",
         "Let the broadcaster type the PIN into your extension, or into `extcli pin validate`.")  # fmt: skip
def not_validated() -> Facts:
    held, needed = "a token of POST pin whose PIN is not validated", "a token whose PIN a broadcaster has validated"
    return Facts("token not valid yet: a broadcaster must validate its PIN first", held, needed)


@refusal(BadRequest, "Invalid body", "T5", "The token of POST pin is missing", _REQUEST_ONE)
def no_pin_token() -> Facts:
    needed = "the token of POST pin; a pin is not accepted in its place"
    return Facts(f"jwt: is missing: {needed}", "no jwt", needed)


@refusal(Unauthorized, UNAUTHORIZED, "T5", "The token does not come from POST pin", _REQUEST_ONE)
def not_a_pin_token() -> Facts:
    return Facts("jwt: not a token of POST pin", "another token", "the token of POST pin")


@refusal(BadRequest, "Invalid PIN", "T3", "The PIN is wrong or has expired",
         "Request a new PIN, `extcli pin request`, and type it within five minutes.")  # fmt: skip
def wrong_pin() -> Facts:
    """Refuse a PIN that is wrong, expired, revoked or another client id's. The text does not reveal which."""
    held = "a PIN that is not valid for this client id and channel"
    return Facts("the PIN is wrong or has expired", held, "a PIN of the last five minutes, not revoked")


@refusal(NotFound, "Not Found", "T3", "There is no live PIN with this digest",
         "Request a new PIN: `extcli pin request`.")  # fmt: skip
def no_live_pin(*, digest: str) -> Facts:
    held, needed = f"digest {digest[:64]}", "the digest of a PIN of the last five minutes"
    return Facts("digest: there is no live PIN with this digest", held, needed)


@refusal(BadRequest, "Invalid refresh token", "T3", "The refresh token is not valid",
         "Link the game again: `extcli pin request -o plain | extcli pin login`.")  # fmt: skip
def wrong_refresh_token() -> Facts:
    """Refuse a refresh token that is expired, revoked, unverifiable or issued for another client id."""
    held = "a refresh token that is malformed, over a year old, or revoked"
    return Facts("the refresh token is invalid, has expired or was revoked", held, "a valid one of this client id")


@refusal(*_TOO_MANY, "Too many PINs were requested", "Wait {seconds} s, then request the PIN again.")
def too_many_pins(*, seconds: int) -> Facts:
    what = "PINs requested from this address"
    detail, needed = f"too many {what}; retry in {seconds} s", f"the next one in {seconds} s"
    return Facts(detail, f"{what} above the limit", needed, (), seconds)


@refusal(*_TOO_MANY, "Too many wrong PINs", "Wait {seconds} s, then type the PIN that the extension shows.")
def too_many_wrong_pins(*, what: str, seconds: int) -> Facts:
    detail = f"too many {what}; retry in {seconds} s"
    return Facts(detail, f"{what} above the limit", f"the next attempt in {seconds} s", (), seconds)


@refusal(BadRequest, "Invalid body", "X4", "authenticate needs one credential", "Send one of pin, refresh and jwt.")
def not_one_credential() -> Facts:
    detail = "data: must be an object with exactly one of pin, refresh and jwt"
    return Facts(detail, "none or several of them", "exactly one of pin, refresh and jwt")

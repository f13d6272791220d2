"""Refusals of token verification (rulings A1, A2, A5)."""

from __future__ import annotations

from datetime import UTC, datetime

from emulator.contract.names import CLIENT_ID_RULE
from emulator.core.clock import duration_text
from emulator.core.errors import UNAUTHORIZED, BadRequest, Facts, Forbidden, Unauthorized, refusal

_BAD_HEADER = (Unauthorized, UNAUTHORIZED, "spec: Authentication")
_BAD_TOKEN = (Unauthorized, UNAUTHORIZED, "A1")
_BAD_RECEIPT = (BadRequest, "Invalid receipt", "gaps: Purchases")
_BAD_CLAIM = (Unauthorized, UNAUTHORIZED, "A2")
_HEADER_FORM = "Authorization: <client id> <JWT>"
_NEW_TOKEN = "`extcli token sandbox` gets one, `extcli token mint` signs one with your secret"
_BY_THIS_CLOCK = (
    "Set the token's times by this service's clock, as `extcli token mint` does; `extcli clock now` prints the time. "
    "Or set the clock to the system's time: `extcli clock set system`."
)
_SIGN = "Sign the token with a secret of this extension: set EXTCLI_SECRET, then `extcli token mint`."
_REGISTER = (
    "The client id is not registered",
    "Register the extension with `extcli extension init`, and start the service with --extensions FILE.",
)
_MALFORMED_TOKEN = "malformed token: "


@refusal(*_BAD_HEADER, "The request has no token", f"Send the header `{_HEADER_FORM}` with a token: {_NEW_TOKEN}.")
def no_header() -> Facts:
    detail = "missing Authorization header: '<client id> <JWT>' is expected"
    return Facts(detail, "no Authorization header", _HEADER_FORM)


@refusal(*_BAD_HEADER, "The Authorization header has the wrong form",
         f"Send two words, the client id and a token: {_NEW_TOKEN}.")  # fmt: skip
def malformed_header(*, words: int) -> Facts:
    detail = "malformed Authorization header: '<client id> <JWT>' is expected"
    return Facts(detail, "one word" if words == 1 else f"{words} words", _HEADER_FORM)


@refusal(*_BAD_HEADER, "The header begins with Bearer", "Put the client id in place of the word Bearer.")
def bearer() -> Facts:
    detail = "malformed Authorization header: put the client id before the token, not Bearer"
    return Facts(detail, "Authorization: Bearer <JWT>", _HEADER_FORM)


@refusal(*_BAD_HEADER, "The client id in the Authorization header has the wrong form",
         "Put the client id of your extension before the token.")  # fmt: skip
def malformed_client_id() -> Facts:
    detail = f"malformed Authorization header: a client id must be {CLIENT_ID_RULE}"
    return Facts(detail, "a first word that is not a client id", CLIENT_ID_RULE)


@refusal(*_BAD_HEADER, "The Authorization header is too long", "Sign a token with fewer claims.")
def long_header(*, limit: int) -> Facts:
    detail = f"the Authorization header is over {limit} characters"
    return Facts(detail, f"over {limit} characters", f"at most {limit} characters")


@refusal(*_BAD_TOKEN, "The token has expired",
         f"Send a new token: {_NEW_TOKEN}; `extcli token inspect` shows a token's times.")  # fmt: skip
def expired(*, exp: int, now: int) -> Facts:
    ago = duration_text(now - exp)
    detail = f"token expired: exp is {exp}, and the service's time is {now}"
    return Facts(detail, f"exp {_utc_text(exp)}, {ago} ago", "exp in the future")


@refusal(*_BAD_TOKEN, "The token has expired by this service's clock, which was moved", _BY_THIS_CLOCK)
def expired_by_moved_clock(*, exp: int, now: int, lead: str) -> Facts:
    detail = f"token expired: exp is {exp}, and the service's time is {now}; the service's clock is {lead}"
    held = f"exp {_utc_text(exp)}; the service's clock is {lead}"
    return Facts(detail, held, "exp after the time of this service's clock")


@refusal(*_BAD_TOKEN, "The token is not valid yet",
         "Sign the token with an earlier nbf, or wait; `extcli token inspect` shows a token's times.")  # fmt: skip
def not_valid_yet(*, nbf: int) -> Facts:
    return Facts(f"token not valid yet: nbf is {nbf}", f"nbf {_utc_text(nbf)}, in the future", "nbf in the past")


@refusal(*_BAD_TOKEN, "The token is not valid yet by this service's clock, which was moved", _BY_THIS_CLOCK)
def not_valid_yet_by_moved_clock(*, nbf: int, lead: str) -> Facts:
    detail = f"token not valid yet: nbf is {nbf}, and the service's clock is {lead}"
    held = f"nbf {_utc_text(nbf)}; the service's clock is {lead}"
    return Facts(detail, held, "nbf before the time of this service's clock")


_NO_EXP = ("The token has no exp", "Sign the token with exp in Unix seconds; `extcli token mint` adds it.")


@refusal(*_BAD_TOKEN, *_NO_EXP)
def no_exp() -> Facts:
    detail = f"{_MALFORMED_TOKEN}the claim exp must be a number of seconds, but is missing or null"
    return Facts(detail, "no exp", "exp in Unix seconds")


@refusal(*_BAD_TOKEN, *_NO_EXP)
def no_exp_of_role(*, role: str, claimed: str) -> Facts:
    why = f"; {claimed}" if claimed else ""
    held, needed = f"no exp, role {role}", "exp in Unix seconds, required for viewers and broadcasters"
    return Facts(f"the token has no exp claim; the role {role} needs one{why}", held, needed)


@refusal(*_BAD_TOKEN, "The token's exp is in milliseconds", "Divide exp by 1,000 when you sign the token.")
def exp_in_milliseconds() -> Facts:
    detail = f"{_MALFORMED_TOKEN}the claim exp is in milliseconds, not in seconds"
    return Facts(detail, "exp in milliseconds", "exp in Unix seconds")


@refusal(*_BAD_TOKEN, "The claim allowed_stage is not a string", "Leave allowed_stage out when you sign the token.")
def malformed_stage() -> Facts:
    detail = f"{_MALFORMED_TOKEN}the claim allowed_stage is not a string"
    return Facts(detail, "an allowed_stage that is not a string", "a string, or no allowed_stage")


@refusal(Forbidden, UNAUTHORIZED, "A1", "A token of the sandbox was sent to production",
         "Sign a token with the extension's secret: set EXTCLI_SECRET, then `extcli token mint`.")  # fmt: skip
def refused_stage(*, stage: str) -> Facts:
    return Facts("Allowed stage mismatch", f"allowed_stage {stage}", f"a token without allowed_stage {stage}")


@refusal(*_BAD_CLAIM, "A claim has the wrong type", "Sign the token with {claim} as a string.")
def claim_is_no_text(*, claim: str) -> Facts:
    detail = f"{_MALFORMED_TOKEN}the claim {claim} is neither a string nor a number"
    return Facts(detail, f"{claim} of another type", f"{claim} as a string or a number")


@refusal(*_BAD_CLAIM, "A claim has a forbidden character",
         "Remove the character from the claim {claim}, and sign the token again.")  # fmt: skip
def forbidden_character(*, claim: str, character: str) -> Facts:
    detail = f"{_MALFORMED_TOKEN}the claim {claim} has a {character}"
    return Facts(detail, f"{claim} with a {character}", f"{claim} without a {character}")


@refusal(*_BAD_TOKEN, "A time in the token is not a number", "Sign the token with {claim} in Unix seconds.")
def claim_is_no_time(*, claim: str) -> Facts:
    detail = f"{_MALFORMED_TOKEN}the claim {claim} is not a number of seconds"
    return Facts(detail, f"{claim} of another type", f"{claim} in Unix seconds")


@refusal(*_BAD_TOKEN, "The token has a wrong signature", _SIGN)
def bad_signature() -> Facts:
    detail = "bad signature: the token is not signed with a secret of this extension"
    return Facts(detail, "a signature by another key", "HS256 with a secret of this extension")


@refusal(*_BAD_TOKEN, "The token's header names a key",
         "Sign the token with only alg and typ in its header, as `extcli token mint` does.")  # fmt: skip
def key_in_header(*, names: str) -> Facts:
    detail = f"{_MALFORMED_TOKEN}the token's header must not contain {names}"
    return Facts(detail, f"{names} in the header", f"a header with alg HS256, without {names}")


_NOT_A_JWT = ("The token is not a JWT", f"Send a JWT: {_NEW_TOKEN}; `extcli token inspect` shows what is wrong.")


@refusal(*_BAD_TOKEN, *_NOT_A_JWT)
def no_shape_of_a_jwt(*, parts: int) -> Facts:
    """Refuse a token of the sandbox, which does not look at the signature."""
    shape = "header.claims.signature, with header and claims as JSON objects in base64url"
    held = "one part" if parts == 1 else f"{parts} parts"
    return Facts(f"{_MALFORMED_TOKEN}a JWT is {shape}; this text has {held}", f"a text of {held}", shape)


@refusal(*_BAD_TOKEN, *_NOT_A_JWT)
def not_a_jwt() -> Facts:
    detail = f"{_MALFORMED_TOKEN}not a JWT signed with HS256"
    return Facts(detail, "text that is not a JWT with HS256", "a JWT signed with HS256")


@refusal(Unauthorized, UNAUTHORIZED, "T3", "A refresh token was sent as an access token",
         "Exchange it for an access token: `extcli link token`.")  # fmt: skip
def refresh_token_as_access() -> Facts:
    detail = "a refresh token is only valid in the WebSocket action authenticate"
    needed = "an access token; refresh tokens are only for the socket action authenticate"
    return Facts(detail, "a refresh token", needed)


@refusal(Unauthorized, UNAUTHORIZED, "A5", "The service's own key signed the token, but the service never issued it",
         "Sign tokens with a secret of the extension, not with the service's own key.")  # fmt: skip
def never_issued() -> Facts:
    held, needed = "a token signed with the service's own key", "a token that the service issued"
    return Facts("the service's own key signed the token, but the service issues no such claims", held, needed)


@refusal(*_BAD_TOKEN, "The token belongs to another extension", "Send the client id that the token names.")
def other_extension(*, claim: str) -> Facts:
    held, needed = f"{claim} of another client id", f"{claim} equal to the client id of the header"
    return Facts(f"the token's {claim} is not the client id of the header", held, needed)


@refusal(Unauthorized, UNAUTHORIZED, "T3", "The link behind the token has ended",
         "Link the game again: `extcli pin request -o plain | extcli pin login`.")  # fmt: skip
def ended_link() -> Facts:
    detail = "the token's link has ended: the link was revoked or has expired, or the secret was retired; link again"
    return Facts(detail, "a token of a link that has ended", "a token of a current link")


@refusal(*_BAD_TOKEN, *_REGISTER)
def not_registered(*, client_id: str) -> Facts:
    detail = "the client id is not a registered extension"
    return Facts(detail, f"client id {client_id[:100]}", "a client id in the extensions file")


@refusal(BadRequest, "No such extension found", "A1", *_REGISTER)
def no_such_extension(*, client_id: str) -> Facts:
    detail = f"{client_id} is not a registered extension"
    return Facts(detail, f"client id {client_id}", "a client id in the extensions file")


@refusal(*_BAD_RECEIPT, "The receipt is not signed by Twitch", "Post the receipt unchanged, as Twitch made it.")
def unverified_receipt(*, problem: str) -> Facts:
    return Facts(f"transactionReceipt: {problem}", problem, "a receipt signed with a secret of this extension")


@refusal(*_BAD_RECEIPT, "The receipt has expired",
         "Post a receipt soon after the purchase: `extcli bits purchase SKU` makes one.")  # fmt: skip
def expired_receipt() -> Facts:
    held, needed = "a receipt whose exp is in the past", "a receipt whose exp is in the future"
    return Facts("transactionReceipt: the receipt has expired", held, needed)


def _utc_text(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return str(seconds)

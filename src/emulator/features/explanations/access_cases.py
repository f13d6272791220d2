"""Refusals of credentials, roles, channels and rates."""

from __future__ import annotations

from typing import Final

from emulator.features.explanations.cases import cases

_NEW_TOKEN: Final = "`extcli token sandbox` gets one, `extcli token mint` signs one with your secret"
_BY_THIS_CLOCK: Final = (
    "Sign by this service's clock, as `extcli token mint` does: GET /_emulator/clock has its time in `now`. Or set the "
    "clock back: `extcli clock set system`."
)
_LINK_AGAIN: Final = "Link the game again: `extcli pin request -o plain | extcli pin login`."

ACCESS: Final = (
    *cases(
        "User was unauthorized to access this resource",
        "Invalid receipt",
        rows=(
            (r"^missing Authorization", "spec: Authentication", "The request has no token",
             f"Send the header `Authorization: <client id> <JWT>` with a token: {_NEW_TOKEN}.",
             "no Authorization header", "Authorization: <client id> <JWT>"),
            (r"not Bearer$", "spec: Authentication", "The header begins with Bearer",
             "Put the client id in place of the word Bearer.",
             "Authorization: Bearer <JWT>", "Authorization: <client id> <JWT>"),
            (r"^malformed Authorization", "spec: Authentication", "The Authorization header has the wrong form",
             f"Send two words, the client id and a token: {_NEW_TOKEN}.",
             "another number of words", "Authorization: <client id> <JWT>"),
            (r"header is over (?P<limit>\d+) char", "spec: Authentication", "The Authorization header is too long",
             "Sign a shorter token: leave out claims that you do not need.",
             "over {limit} characters", "at most {limit} characters"),
            (r"^token expired: exp (?P<exp>\d+) is not after (?P<now>\d+); (?P<clock>[^,]+)", "A1",
             "The token has expired by this service's clock, which was moved", _BY_THIS_CLOCK,
             "exp {exp_at}, and {clock}", "exp after the time of this service's clock"),
            (r"^token expired: exp (?P<exp>\d+) is not after (?P<now>\d+)", "A1", "The token has expired",
             f"Send a new token: {_NEW_TOKEN}; `extcli token inspect` shows its times.",
             "exp {exp_at}, {ago} ago", "exp in the future"),
            (r"^token not valid yet: nbf (?P<nbf>\d+); (?P<clock>[^,]+)", "A1",
             "The token is not valid yet by this service's clock, which was moved", _BY_THIS_CLOCK,
             "nbf {nbf_at}, and {clock}", "nbf before the time of this service's clock"),
            (r"^token not valid yet: nbf (?P<nbf>\d+)", "A1", "The token is not valid yet",
             "Sign the token with an earlier nbf, or wait; `extcli token inspect` shows its times.",
             "nbf {nbf_at}, in the future", "nbf in the past"),
            (r"a broadcaster must validate its PIN", "T2", "The PIN of the token is not validated yet",
             "Let the broadcaster type the PIN into your extension, or into `extcli pin validate`.",
             "a token of POST pin whose PIN is not validated", "a token whose PIN a broadcaster has validated"),
            (r"exp is missing or null|no exp claim, which the role (?P<of>\w+)", "A1", "The token has no usable exp",
             "Sign the token with exp in Unix seconds; `extcli token mint` adds it.",
             "no exp", "exp in Unix seconds, which viewers and broadcasters need"),
            (r"exp is in milliseconds", "A1", "The token's exp is in milliseconds",
             "Divide exp by 1,000 when you sign the token.", "exp in milliseconds", "exp in Unix seconds"),
            (r"allowed_stage is not a string", "A1", "The claim allowed_stage is not a string",
             "Leave allowed_stage out when you sign the token.", "allowed_stage of another type", "a string, or none"),
            (r"Allowed stage mismatch", "A1", "A token of the sandbox was sent to production",
             "Sign a token with the extension's secret: set EXTCLI_SECRET, then `extcli token mint`.",
             "allowed_stage sandbox", "a token without allowed_stage sandbox"),
            (r"claim (?P<claim>\w+) is neither a string nor a number", "A2", "A claim has the wrong type",
             "Sign the token with this claim as a string.", "{claim} of another type", "{claim} as string or number"),
            (r"claim (?P<claim>\w+) has a (?P<fault>lone surrogate|NUL)", "A2", "A claim has a forbidden character",
             "Sign the token with plain text in this claim.", "{claim} with a {fault}", "{claim} without it"),
            (r"claim (?P<claim>\w+) is not a number of seconds", "A1", "A time in the token is not a number",
             "Sign the token with this claim in Unix seconds.", "{claim} of another type", "{claim} in Unix seconds"),
            (r"bad signature|not signed with a secret", "A1", "The token has a wrong signature",
             "Sign it with a secret of this extension: set EXTCLI_SECRET, then `extcli token mint`.",
             "a signature by another key", "HS256 with a secret of this extension"),
            (r"^malformed token: (?P<found>.+) is not allowed in the header", "A1", "The token's header names a key",
             "Sign the token with only alg and typ in its header, as `extcli token mint` does.",
             "{found} in the header", "a header with alg HS256, without keys"),
            (r"^malformed token: not a JWT", "A1", "The token is not a JWT",
             f"Send a JWT: {_NEW_TOKEN}; `extcli token inspect` shows what is wrong with a token.",
             "text that is not a JWT with HS256", "a JWT signed with HS256"),
            (r"refresh token is only valid in", "T3", "A refresh token was sent as an access token",
             "Exchange it for an access token: `extcli token refresh`.",
             "a refresh token", "an access token; refresh tokens are only for the socket action authenticate"),
            (r"the service issues no token with", "A5", "The service issues no such token",
             "Sign tokens with a secret of the extension, not with the service's own key.",
             "a token signed with the service's key, with other claims", "a token as the service issues it"),
            (r"the token's (?P<claim>\w+) is not the client id", "A1", "The token belongs to another extension",
             "Send the token with the client id that it was made for.",
             "{claim} of another client id", "{claim} equal to the client id of the header"),
            (r"link (?:has|was|revoked|ended).*link again", "T3", "The link behind the token has ended",
             _LINK_AGAIN, "a token of a link that has ended", "a token of a link that has not ended"),
            (r"not a registered extension", "A1", "The client id is not registered",
             "Register the extension: `extcli extension init`, and start the service with --extensions FILE.",
             "client id {client_id}", "a client id in the extensions file"),
            (r"not a token of POST pin", "T5", "The token does not come from POST pin",
             "Send the `token` of the answer to POST pin: `extcli pin request --game` prints it.",
             "another token", "the token of POST pin"),
            (r"^transactionReceipt: has expired", "gaps: Purchases", "The receipt has expired",
             "Post a receipt soon after the purchase: `extcli bits purchase SKU` makes one.",
             "a receipt whose exp is past", "a receipt whose exp is in the future"),
            (r"userId is not the user", "gaps: Purchases", "The receipt belongs to another buyer",
             "Post the receipt with the buyer's own token.", "a token of another user", "the buyer's token"),
            (r"posted before", "gaps: Purchases", "The purchase was posted before",
             "Post a receipt only as its buyer, and in one channel.",
             "a transaction id that another user or channel has posted", "a transaction id of this user and channel"),
            (r"^transactionReceipt: ", "gaps: Purchases", "The receipt is malformed",
             "Post a receipt as the platform makes it: `extcli bits purchase SKU` makes one.",
             "{detail}", "a receipt as the platform makes it"),
            (r"", "A1", "The token is refused", f"Send another token: {_NEW_TOKEN}.", "{detail}", "a valid token"),
        ),
    ),
    *cases(
        "role is not authorized",
        rows=(
            (r"all channels share (?P<id>.*), so the role (?P<role>\w+) .*allowed: (?P<allowed>.+)", "A4",
             "All channels share this id",
             "Send a token of the role {one_role} (with extcli: `--as {one_role}`), or choose an id without global.",
             "role {role}, id {id}", "role {allowed}"),
            (r"the role (?P<role>\w+) may not (?P<doing>.+); allowed: (?P<allowed>.+)", "{roles_rule}",
             "The role may not do this", "Send a token of the role {one_role} (with extcli: `--as {one_role}`).",
             "role {role}", "role {allowed}"),
        ),
    ),
    *cases(
        "Header not allowed",
        rows=(
            (r"the header (?P<header>.+); allowed: (?P<these>.+)", "docs: CORS", "A page may not send this header",
             "Leave the header out, or send its value in the query or the body; only browsers refuse it.",
             "{header} in Access-Control-Request-Headers", "no headers but {these}"),
        ),
    ),
    *cases(
        "Unauthorized",
        rows=(
            (r"authenticate first", "X3", "The connection is not authenticated",
             "Send the action authenticate first, with a PIN or a token; `extcli socket send` does so by itself.",
             "an unauthenticated connection", "authenticate with pin, jwt or refresh"),
        ),
    ),
    *cases(
        "Invalid channel",
        rows=(
            (r"", "A4", "The request names no channel",
             "Name a channel with ?channel_id=ID (with extcli: `--channel ID`).",
             "a token without a channel", "a token with channel_id, or ?channel_id= as admin or backend"),
        ),
    ),
    *cases(
        "Invalid user",
        rows=(
            (r"", "A4", "The request names no user",
             "Use a token with a user; as admin or backend, name the user (with extcli: `--user ID`).",
             "a token without a user", "the user whose store it is"),
        ),
    ),
    *cases(
        "No such extension found",
        rows=(
            (r"^(?P<id>.*) is not a registered", "A1", "The client id is not registered",
             "Register the extension: `extcli extension init`, and start the service with --extensions FILE.",
             "client id {id}", "a client id in the extensions file"),
        ),
    ),
    *cases(
        "Invalid PIN",
        rows=(
            (r"", "T3", "The PIN is wrong or has expired",
             "Request a new PIN, `extcli pin request`, and type it within five minutes.",
             "a PIN that is not valid for this client id and channel", "a PIN of the last five minutes, not revoked"),
        ),
    ),
    *cases(
        "Invalid refresh token",
        rows=(
            (r"", "T3", "The refresh token is not valid", _LINK_AGAIN,
             "a refresh token that is malformed, over a year old, or revoked", "a valid one of this client id"),
        ),
    ),
    *cases(
        "Too many requests",
        rows=(
            (r"invalid credentials from this address; retry in (?P<wait>\d+) s", "gaps: Limits",
             "Too many invalid credentials", "Wait {wait} s, and send a valid token; `extcli token inspect` shows why.",
             "invalid credentials above the rate", "one more attempt in {wait} s"),
            (r"PINs?.*retry in (?P<wait>\d+) s", "T4", "Too many wrong PINs",
             "Wait {wait} s, then type the PIN that the extension shows.",
             "wrong PINs above the limit", "the next attempt in {wait} s"),
            (r"too many (?P<what>.+); retry in (?P<wait>\d+) s", "gaps: Limits", "Too many requests",
             "Wait {wait} s and send less often, or raise --caller-rate or --client-rate of `extcli serve`.",
             "{what} above the rate", "the next request in {wait} s"),
            (r"", "gaps: Limits", "Too many requests", "Wait, and send fewer requests.", "{detail}", "fewer requests"),
        ),
    ),
)  # fmt: skip

"""Tokens: where a command's token comes from, and what is in one.

A token is given, signed with the extension's secret, or issued by a sandbox.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from extcli import bounded_json, clock
from extcli.api.call import CONTROL, RATE_LIMITED, SERVICE, Call, asks_to_retry, encoded, error_of, retry
from extcli.config import settings
from extcli.config.resolver import Resolver
from extcli.config.settings import DEFAULT_CHANNEL, SECRET_FILE, Identity
from extcli.errors import ErrorResponse, UnexpectedResponse, UsageError, is_from_service
from extcli.output import times
from extcli.reading import Json

if TYPE_CHECKING:
    from extcli.api.http import Http, Response

LIFETIME = 15 * 60_000
"""The default lifetime of a self-signed token, in ms."""
_LARGEST_REQUEST = 48 * 1024


# The content of a token


def claims_of(
    identity: Identity, *, channel: str | None, now: int, lifetime: int = LIFETIME, opaque: str | None = None
) -> Json:
    """Return the claims of a self-signed token (ruling A2). A broadcaster's user is the owner of the channel."""
    user = identity.user or (channel if identity.role == "broadcaster" else None)
    claims = {
        "exp": (now + lifetime) // 1000,
        "role": identity.role,
        "channel_id": channel,
        "user_id": user,
        "opaque_user_id": opaque or (opaque_id(user) if user else None),
    }
    return {name: value for name, value in claims.items() if value is not None}


def opaque_id(user: str) -> str:
    """Return the opaque id of a logged-in user: `U` and Twitch's id."""
    return user if user.startswith("U") else f"U{user}"


def sign(claims: Json, secret: bytes) -> str:
    """Return a JWT signed with HS256."""
    import jwt

    with warnings.catch_warnings():
        # Twitch chooses the length of the secret.
        warnings.simplefilter("ignore", jwt.warnings.InsecureKeyLengthWarning)
        return jwt.encode(dict(claims), secret, algorithm="HS256")


@dataclass(frozen=True, slots=True)
class Inspection:
    """The content of a token, and the reasons why services may refuse it. The signature is not checked."""

    header: Json
    claims: Json
    traps: list[str]


def inspect(text: str, *, now: int) -> Inspection:
    """Decode a token, or the last word of an Authorization header. Raises `UsageError`."""
    import jwt

    token = text.strip().strip('"').rpartition(" ")[2]
    try:
        found = jwt.decode_complete(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, RecursionError, UnicodeError) as error:
        raise UsageError("this is not a token", why=f"it is not a JWT: {error}") from None
    header, claims = found["header"], found["payload"]
    return Inspection(header, claims, _likely_refusals(header, claims, token.split(".")[1], now))


def claims_in(token: str) -> Json:
    """Return the claims of a token; empty if it is not a JWT."""
    with suppress(UsageError):
        return inspect(token, now=0).claims
    return {}


def _likely_refusals(header: Json, claims: Json, payload: str, now: int) -> list[str]:
    exp, use = times.claim_instant(claims.get("exp")), claims.get("use")
    left, waits = (exp or now) - now, (times.claim_instant(claims.get("nbf")) or now) - now
    linked = "the broadcaster enters the PIN; `extcli pin status` shows whether the PIN was entered"
    found = {
        "it has no exp: production refuses it": exp is None,
        f"it expired {times.duration_text(left)} ago": exp is not None and left <= 0,
        "exp is more than a year away: is it in milliseconds? It must be in seconds": left > 366 * 86_400_000,
        f"it is not valid yet: nbf is {times.duration_text(waits)} away": waits > 0,
        f"it is signed with {header.get('alg')!r}: the service requires HS256": header.get("alg") != "HS256",
        "its allowed_stage is sandbox: production refuses it": claims.get("allowed_stage") == "sandbox",
        f"it is the token of a PIN (use: pin), valid only after {linked}": use == "pin",
        "it is a refresh token (use: refresh): exchange it for an access token over the WebSocket": use == "refresh",
        "it has no role: it counts as a viewer's token": "role" not in claims,
        "its payload has - or _: the published JavaScript SDK cannot decode it and reports it as expired": bool(
            {"-", "_"} & set(payload)
        ),
    }
    return [text for text, applies in found.items() if applies]


# Sources


class Credentials:
    """A source of tokens. This one sends the client id alone, which is enough for calls that concern no channel."""

    given = False
    """Whether it is a ready-made token, which has its own channel or none."""
    origin = "no token"
    """The name of the source in messages."""
    command = ""
    """The verb of `extcli token` that makes such tokens."""
    identity: Identity | None = None
    """The identity in the tokens; `None` if the token is given, or if there is none."""
    advice = "is EXTCLI_CLIENT_ID (or --client-id) registered with the service?"
    """The advice to show if a token is refused."""

    def token(self) -> str:
        """Return the token for the identity of the command."""
        return ""

    def tokens_for(self, users: Sequence[str]) -> list[str]:
        """Return a token for each user, in order. Raises `UsageError` if that is impossible."""
        why = "each line needs a token of its user, and EXTCLI_TOKEN (or --token-file) belongs to one user"
        raise UsageError("one token cannot act for many users", why=why, fix="set EXTCLI_SECRET or use a sandbox")

    def renew(self) -> bool:
        """Prepare a retry after a 401, for example because the token has expired.

        Return whether a new token may work.
        """
        return False


class GivenToken(Credentials):
    """Sends a token that the user has given, unchanged."""

    given = True
    origin = "the given token"
    advice = "check the given token with `extcli token inspect`, or use --as ROLE instead of it"

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


@dataclass(eq=False, repr=False)
class SelfSigned(Credentials):
    """Signs tokens with the extension's secret."""

    secret: bytes
    identity: Identity = field()  # without a default, unlike in the base class
    channel: str | None
    http: Http
    lifetime: int = LIFETIME
    """How long its tokens are valid, in ms."""
    clock_offset: int = 0
    """How far the service's clock is ahead of this machine's, in ms."""
    origin = "a self-signed token"
    command = "mint"
    advice = "check that EXTCLI_SECRET (or EXTCLI_SECRET_FILE) or the profile's secret belongs to the client id"

    def token(self) -> str:
        return self._sign(self.identity)

    def tokens_for(self, users: Sequence[str]) -> list[str]:
        return [self._sign(Identity(self.identity.role, user)) for user in users]

    def renew(self) -> bool:
        """Sign by the service's clock from now on, as the clock of an emulator may have been moved.

        Return whether that clock can be read.
        """
        now = service_time(self.http)
        if now is None:
            return False
        self.clock_offset = now - clock.now()
        return True

    def _sign(self, identity: Identity) -> str:
        now = clock.now() + self.clock_offset
        return sign(claims_of(identity, channel=self.channel, now=now, lifetime=self.lifetime), self.secret)


@dataclass(eq=False, repr=False)
class SandboxTokens(Credentials):
    """Requests tokens from a sandbox, which issues them without a secret."""

    client_id: str
    identity: Identity = field()
    channel: str | None
    http: Http
    _: KW_ONLY
    opaque: str | None = None
    for_helper: bool = False
    """Whether tokens replace Twitch's own, and stay valid when the clock is moved."""
    _token: str = ""
    advice = "set EXTCLI_SECRET (or EXTCLI_SECRET_FILE) or EXTCLI_TOKEN: the service refuses its own sandbox token"
    origin = "a sandbox token"
    command = "sandbox"

    def token(self) -> str:
        if not self._token:
            [self._token] = self._request_tokens({"user_id": self.identity.user, "opaque_user_id": self.opaque}, 1)
        return self._token

    def tokens_for(self, users: Sequence[str]) -> list[str]:
        found: list[str] = []
        while len(found) < len(users):
            batch = _users_of_one_request(users[len(found) :])
            fetch = partial(self._request_tokens, {"user_ids": batch}, len(batch))
            found += retry(fetch, self.http.timeout, asks_to_retry)
        return found

    def renew(self) -> bool:
        self._token = ""
        return True

    def _request_tokens(self, who: Json, count: int) -> list[str]:
        request = {"app_id": self.client_id, "role": self.identity.role, "channel_id": self.channel, **who}
        given = {name: value for name, value in request.items() if value}
        call = Call("POST", f"{SERVICE}authtoken", body=encoded(given))
        query = "?helper=1" if self.for_helper else ""
        response = self.http.send(call.method, call.path + query, body=call.body)
        if response.status_code >= 300:
            raise _token_refusal(call, response)
        # The service returns `token` for one user and `tokens` for several.
        document = bounded_json.members(response.content)
        found = document.get("tokens") or [document.get("token")]
        is_list_of_texts = isinstance(found, list) and all(isinstance(each, str) for each in found)
        if not is_list_of_texts or len(found) != count or not all(re.fullmatch("[!-~]+", each) for each in found):
            expected = "a token" if count == 1 else f"{count:,} tokens"
            raise UnexpectedResponse(response, f"it must have {expected} of printable ASCII without spaces")
        return found


def _token_refusal(call: Call, response: Response) -> ErrorResponse:
    """Return the error for a refused token. This is often the first request, so the address may be wrong."""
    error, status = error_of(call, response), response.status_code
    if 400 <= status < 500 and status != RATE_LIMITED:
        error.fix = "set EXTCLI_SECRET (or EXTCLI_SECRET_FILE) or EXTCLI_TOKEN: only a sandbox issues tokens"
        if not is_from_service(response.content) and status not in (401, 403):
            error.fix = "is --url (EXTCLI_URL) the base address of an extension service, without /v1/e?"
    return error


def _users_of_one_request(users: Sequence[str]) -> list[str]:
    """Return as many users from the start of the list as fit into one request of at most 64 KiB."""
    size, count = 0, 0
    while count < len(users) and (size := size + len(encoded(users[count])) + 1) <= _LARGEST_REQUEST:
        count += 1
    return list(users[: max(count, 1)])


def service_time(http: Http, report: Callable[[str], None] = lambda _: None) -> int | None:
    """Return the time of an emulator's clock in Unix ms, or `None` if the service does not say it.

    `report` receives a note if that is because the emulator asks for its control token.
    """
    response = http.send("GET", f"{CONTROL}clock")
    if response.status_code == 403 and b"EXTCLI_CONTROL_TOKEN" in response.content:
        report("the emulator hides its clock, so extcli uses this machine's clock: set EXTCLI_CONTROL_TOKEN")
    now = bounded_json.members(response.content).get("now")
    return now if isinstance(now, int) else None


# The source of a command


def credentials(resolver: Resolver, identity: Identity, http: Http, *, to: str) -> Credentials:
    """Return the first available source of tokens: a given token, a secret, a sandbox.

    `to` is the address that gets the token.
    Raises `UsageError` for production without a token or secret, because production issues no tokens.
    """
    if token := resolver.token(to):
        return GivenToken(token)
    channel = channel_of(identity, resolver)
    if secret := resolver.secret(to):
        return SelfSigned(secret, identity, channel, http)
    if profile := resolver.production():
        fix = f"set EXTCLI_SECRET_FILE or EXTCLI_TOKEN, or `extcli -p {profile.name} config set {SECRET_FILE.key} FILE`"
        if SECRET_FILE.key in profile.texts:
            fix = f"select the profile, without another address: extcli -p {profile.name} …"
        why = "nothing was sent: production issues no tokens"
        raise UsageError(f"no secret for {to}, which is production (profile {profile.name})", why=why, fix=fix)
    return SandboxTokens(resolver.client_id(), identity, channel, http)


def channel_of(identity: Identity, resolver: Resolver) -> str | None:
    """Return the channel of the token: the configured one, otherwise the default for roles that need one (ruling A4).

    A broadcaster who is named owns the channel (ruling A2). Raises `UsageError` if another channel is configured.
    """
    found = resolver.find(settings.CHANNEL)
    owned = identity.user if identity.role == "broadcaster" else None
    if found is None:
        return owned or (None if identity.spans_channels else DEFAULT_CHANNEL)
    if owned and opaque_id(owned) != opaque_id(found.value):
        what = f"broadcaster {owned} does not own channel {found.value} ({found.label})"
        raise UsageError(what, fix=f"use the role broadcaster without a user, or --channel {owned}")
    return found.value


def spans_channels(resolver: Resolver, identity: Identity) -> bool:
    """Return whether the caller is an admin or backend without a channel, who acts for all of them (ruling A4)."""
    token = resolver.token()
    if token is None:
        return channel_of(identity, resolver) is None
    claims = claims_in(token)
    role = Identity(str(claims.get("role")))
    return role.spans_channels and not claims.get("channel_id") and resolver.channel() is None

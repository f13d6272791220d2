"""The kinds of credentials: a given token, the extension's secret, or a sandbox that issues tokens."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from emulator.contract.names import HINT, MARK
from extcli import bounded_json, clock
from extcli.api import tokens
from extcli.api.call import CONTROL, SERVICE, Call, encoded
from extcli.api.http import Http, Response
from extcli.api.retry import RATE_LIMITED, is_asked_for, until_done
from extcli.config import secret_lookup, settings
from extcli.config.profiles import Profile
from extcli.config.resolver import Resolver
from extcli.config.settings import DEFAULT_CHANNEL, SECRET_FILE, Identity
from extcli.errors import ErrorResponse, Refused, ServerError, UnexpectedResponse, UsageError, is_from_service

_LARGEST_REQUEST = 48 * 1024
_TOKEN = re.compile("[!-~]*")


class Credentials(ABC):
    """A source of tokens."""

    given = False
    """Whether it is a ready-made token, which has its own channel or none."""
    origin: str
    """The name of the source in messages."""
    command = ""
    """The verb of `extcli token` that makes such tokens."""
    identity: Identity | None = None
    """The identity in the tokens; `None` if the token is given, or if there is none."""
    advice: str
    """The advice to show if a token is refused."""

    @abstractmethod
    def token(self) -> str:
        """Return the token for the identity of the command."""

    @abstractmethod
    def tokens_for(self, users: Sequence[str]) -> list[str]:
        """Return a token for each user, in order. Raises `UsageError` if that is impossible."""

    def renew(self) -> bool:
        """Prepare a retry after a 401, for example because the token has expired.

        Return whether a new token may work.
        """
        return False


class NoToken(Credentials):
    """Sends the client id alone, which is enough for calls that concern no channel."""

    origin = "no token"
    advice = "is EXTCLI_CLIENT_ID (or --client-id) registered with the service?"

    def token(self) -> str:
        return ""

    def tokens_for(self, users: Sequence[str]) -> list[str]:
        return [""] * len(users)


class GivenToken(Credentials):
    """Sends a token that the user has given, unchanged."""

    given = True
    origin = "the given token"
    advice = "check the given token with `extcli token inspect`, or use --as ROLE instead of it"

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token

    def tokens_for(self, users: Sequence[str]) -> list[str]:
        raise UsageError(
            "one token cannot act for many users",
            why="each line needs a token of its user, and EXTCLI_TOKEN (or --token-file) belongs to one user",
            fix="unset it, and set EXTCLI_SECRET or use a sandbox",
        )


class SelfSigned(Credentials):
    """Signs tokens with the extension's secret."""

    identity: Identity
    origin = "a self-signed token"
    command = "mint"
    lifetime = tokens.LIFETIME
    """How long its tokens are valid, in ms."""

    def __init__(self, secret: bytes, identity: Identity, channel: str | None, http: Http, *, advice: str) -> None:
        self.advice = advice
        self._secret = secret
        self.identity = identity
        self._channel = channel
        self._http = http
        self._ahead = 0

    def token(self) -> str:
        return self._sign(self.identity)

    def tokens_for(self, users: Sequence[str]) -> list[str]:
        return [self._sign(Identity(self.identity.role, user)) for user in users]

    def renew(self) -> bool:
        """Sign by the service's clock from now on, as the clock of an emulator may have been moved."""
        return self.follow_clock()

    def follow_clock(self) -> bool:
        """From now on, sign by the service's clock. Return whether that clock can be read."""
        now = service_time(self._http)
        if now is None:
            return False
        self._ahead = now - clock.now()
        return True

    def _sign(self, identity: Identity) -> str:
        now = clock.now() + self._ahead
        claims = tokens.claims_of(identity, channel=self._channel, now=now, lifetime=self.lifetime)
        return tokens.sign(claims, self._secret)


class SignedByServiceClock(SelfSigned):
    """Signs each token by the service's clock, which a test may move at any time."""

    def token(self) -> str:
        self.follow_clock()
        return super().token()


class SandboxTokens(Credentials):
    """Requests tokens from a sandbox, which issues them without a secret."""

    identity: Identity
    advice = "set EXTCLI_SECRET (or EXTCLI_SECRET_FILE) or EXTCLI_TOKEN: this service requires other credentials"
    origin = "a sandbox token"
    command = "sandbox"

    def __init__(
        self,
        client_id: str,
        identity: Identity,
        channel: str | None,
        http: Http,
        *,
        opaque: str | None = None,
        for_helper: bool = False,
    ) -> None:
        """With `for_helper`, tokens replace Twitch's own, and stay valid when the clock is moved."""
        self._query = "?helper=1" if for_helper else ""
        self._client_id = client_id
        self.identity = identity
        self._channel = channel
        self._http = http
        self._opaque = {"opaque_user_id": opaque} if opaque else {}
        self._token: str | None = None

    def token(self) -> str:
        if self._token is None:
            user = {"user_id": self.identity.user} if self.identity.user else {}
            response = self._fetch(user | self._opaque)
            [self._token] = _tokens_in(response, [_member(response, "token") or ""])
        return self._token

    def tokens_for(self, users: Sequence[str]) -> list[str]:
        found: list[str] = []
        while len(found) < len(users):
            batch = _batch(users[len(found) :])
            response = until_done(partial(self._fetch, {"user_ids": batch}), self._http.timeout, is_asked_for)
            # The service returns `token` for one user and `tokens` for several.
            got = _member(response, "tokens") or [_member(response, "token")]
            if not isinstance(got, list) or len(got) != len(batch):
                raise UnexpectedResponse(response, f"it must have {len(batch):,} tokens")
            found += _tokens_in(response, got)
        return found

    def renew(self) -> bool:
        self._token = None
        return True

    def _fetch(self, who: dict[str, Any]) -> Response:
        request = {"app_id": self._client_id, "role": self.identity.role, **who}
        if self._channel:
            request["channel_id"] = self._channel
        call = Call("POST", f"{SERVICE}authtoken", body=encoded(request), signed=False)
        response = self._http.send(call.method, call.path + self._query, body=call.body)
        if response.status_code == 200 and (_member(response, "token") or _member(response, "tokens")):
            return response
        error = _no_token(call, response)
        error.retry_after = response.headers.get("retry-after")
        raise error


def _no_token(call: Call, response: Response) -> ErrorResponse:
    """Return the error for a response without a token. This is often the first request, so the address may be wrong."""
    status = response.status_code
    if status < 300:
        return UnexpectedResponse(response)
    if status >= 500:
        return ServerError(str(call), status, response.content, request_id=response.headers.get("x-request-id", ""))
    fix = "set EXTCLI_SECRET (or EXTCLI_SECRET_FILE) or EXTCLI_TOKEN: only a sandbox issues tokens"
    if status == RATE_LIMITED:
        fix = "retry later, at a lower rate"
    elif status < 400:
        fix = f"it redirects to {response.headers.get('location', 'nowhere')}: is --url (EXTCLI_URL) the right address?"
    elif status not in (401, 403) and not _is_about(call.path, response):
        fix = "is --url (EXTCLI_URL) the base address of an extension service, without /v1/e?"
    refused = Refused(str(call), status, response.content, request_id=response.headers.get("x-request-id", ""), fix=fix)
    refused.hint, refused.is_explained = response.headers.get(HINT, ""), MARK in response.headers
    return refused


def _tokens_in(response: Response, values: Sequence[object]) -> list[str]:
    """Return the tokens in a response. Raises `UnexpectedResponse` for a token that no header can carry."""
    tokens = [value for value in values if isinstance(value, str) and _TOKEN.fullmatch(value)]
    if len(tokens) < len(values):
        raise UnexpectedResponse(response, "a token must be printable ASCII without spaces")
    return tokens


def _is_about(path: str, response: Response) -> bool:
    """Return whether a service refused exactly this path.

    With a base address that ends in /v1/e, the path is longer.
    """
    if not is_from_service(response.content):
        return False
    return all(named == path for named in re.findall(r"/[\w/.-]*authtoken", response.text))


def service_time(http: Http, report: Callable[[str], None] = lambda _: None) -> int | None:
    """Return the time of an emulator's clock in Unix ms, or `None` if the service does not say it.

    `report` receives a note if that is because the emulator asks for its control token.
    """
    response = http.send("GET", f"{CONTROL}clock")
    if response.status_code == 403 and b"EXTCLI_CONTROL_TOKEN" in response.content:
        report("the emulator does not show its clock, so this machine's counts: set EXTCLI_CONTROL_TOKEN")
    now = _member(response, "now") if response.status_code == 200 else None
    return now if isinstance(now, int) else None


def _batch(users: Sequence[str]) -> list[str]:
    """Return as many users from the start of the list as fit into one request of at most 64 KiB."""
    size, count = 0, 0
    while count < len(users) and (size := size + len(encoded(users[count])) + 1) <= _LARGEST_REQUEST:
        count += 1
    return list(users[: max(count, 1)])


def _member(response: Response, name: str) -> Any:
    """Return a field of a JSON response; `None` if the response lacks the field or is not an object."""
    return bounded_json.members(response.content).get(name)


def credentials(resolver: Resolver, identity: Identity, http: Http, *, to: str) -> Credentials:
    """Return the first available source of tokens: a given token, a secret, a sandbox.

    `to` is the address that gets the token.
    Raises `UsageError` for production without a token or secret, because production issues no tokens.
    """
    if token := secret_lookup.token(resolver, to):
        return GivenToken(token)
    channel = channel_of(identity, resolver)
    if secret := secret_lookup.secret(resolver, to):
        return SelfSigned(secret, identity, channel, http, advice=_advice_on_secret(resolver, to))
    if profile := resolver.production():
        raise _no_credentials(profile, to)
    return SandboxTokens(resolver.client_id(), identity, channel, http)


def _advice_on_secret(resolver: Resolver, to: str) -> str:
    """Return the advice for a refused token that extcli signed: the secret may belong to another client id."""
    secret, client_id = secret_lookup.find_secret(resolver, to), resolver.find(settings.CLIENT_ID)
    name = secret.label if secret and secret.in_profile else "EXTCLI_SECRET (or EXTCLI_SECRET_FILE)"
    origin = client_id.label if client_id else "the default, unless --client-id or EXTCLI_CLIENT_ID is given"
    return f"is {name} the secret of client id {resolver.client_id()} ({origin})?"


def _no_credentials(profile: Profile, to: str) -> UsageError:
    """Return the error for a command to production without a token or secret for it."""
    name = profile.name
    if not profile.is_of(to):
        what = f"no secret for {to}: profile {name} is for {profile.texts['url']}"
        fix = f"use -p {name} without another address, or set EXTCLI_SECRET_FILE or EXTCLI_TOKEN for this one"
    elif SECRET_FILE.key in profile.texts:
        what = f"{to} is production, and its profile {name} is not selected"
        fix = f"select the profile: extcli -p {name} …"
    else:
        what, fix = f"profile {name} has no secret", f"`extcli -p {name} config set {SECRET_FILE.key} FILE`"
    return UsageError(what, why="nothing was sent: production issues no tokens", fix=fix)


def channel_of(identity: Identity, resolver: Resolver) -> str | None:
    """Return the channel of the token: the configured one, otherwise the default for roles that need one (ruling A4).

    A broadcaster who is named owns the channel (ruling A2). Raises `UsageError` if another channel is configured.
    """
    found = resolver.find(settings.CHANNEL)
    owned = identity.user if identity.role == "broadcaster" else None
    if found is None:
        return owned or (None if identity.spans_channels else DEFAULT_CHANNEL)
    if owned and tokens.opaque_id(owned) != tokens.opaque_id(found.value):
        raise UsageError(
            f"broadcaster {owned} does not own channel {found.value} ({found.label})",
            why="the broadcaster is the owner of the channel",
            fix=f"use the role broadcaster without a user, or --channel {owned}",
        )
    return found.value


def spans_channels(resolver: Resolver, identity: Identity) -> bool:
    """Return whether the caller is an admin or backend without a channel, who acts for all of them (ruling A4)."""
    token = secret_lookup.token(resolver)
    if token is None:
        return channel_of(identity, resolver) is None
    claims = tokens.claims_in(token)
    role = Identity(str(claims.get("role")))
    return role.spans_channels and not claims.get("channel_id") and resolver.channel() is None

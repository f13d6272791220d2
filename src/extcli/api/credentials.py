"""By which token a call is made: one that was given, one signed here, or one the sandbox hands out.

Each kind answers the same questions, so nobody else has to know which it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Protocol

from extcli import clock
from extcli.api import tokens
from extcli.api.client import CONTROL, SERVICE, Call, encoded
from extcli.api.http import Answer, Http
from extcli.config import secret_lookup, settings
from extcli.config.profiles import Profile
from extcli.config.resolver import Place, Resolver
from extcli.config.settings import DEFAULT_CHANNEL, SECRET_FILE, Identity
from extcli.errors import ErrorAnswer, Refused, ServerError, UnexpectedAnswer, UsageError, is_from_service

_LARGEST_REQUEST = 48 * 1024
_EXPIRED = "expire"


class Credentials(Protocol):
    """Where tokens come from."""

    given: bool
    """Whether it is a ready-made token, whose channel is its own affair."""
    origin: str
    """What to call these tokens."""

    def token(self) -> str:
        """The token to call with."""

    def tokens_for(self, users: Sequence[str]) -> list[str]:
        """A token for each of many users, in order."""

    def renew(self, reason: str) -> bool:
        """After a 401 for this reason: whether tokens asked for from now on may do better."""

    @property
    def advice(self) -> str:
        """What to do when a token is refused."""


def credentials(resolver: Resolver, identity: Identity, http: Http, *, to: str) -> Credentials:
    """A given token, else the secret's, else the sandbox's, to be sent to an address.

    Production hands out no tokens, so nothing is asked of it without one: that is `UsageError`.
    """
    if token := secret_lookup.token(resolver, to):
        return GivenToken(token)
    channel = channel_of(identity, resolver)
    if secret := secret_lookup.secret(resolver, to):
        question = f"is {_name_of_secret(resolver, to)} the secret of {_client_id_in_words(resolver)}?"
        return SelfSigned(secret, identity, channel, http, advice=question)
    if profile := resolver.production():
        raise _nothing_opens(profile, to)
    return SandboxTokens(resolver.client_id(), identity, channel, http)


def _name_of_secret(resolver: Resolver, to: str) -> str:
    found = secret_lookup.secret_at(resolver, to)
    of_profile = found and found.place is Place.PROFILE
    return found.label if found and of_profile else "EXTCLI_SECRET (or EXTCLI_SECRET_FILE)"


def _client_id_in_words(resolver: Resolver) -> str:
    """The client id, where it comes from, and what the profile says in its place."""
    found, profile = resolver.find(settings.CLIENT_ID), resolver.profile
    if found is None:
        return f"client id {resolver.client_id()} (the default, unless --client-id or EXTCLI_CLIENT_ID is given)"
    if profile is None or found.place is Place.PROFILE:
        return f"client id {found.value} ({f'profile {profile.name}' if profile else found.origin})"
    own = profile.texts.get(found.key, found.value)
    instead = f", where profile {profile.name} says {own}" if own != found.value else ""
    return f"client id {found.value} ({found.origin}){instead}"


def _nothing_opens(profile: Profile, to: str) -> UsageError:
    """What is missing where a production profile is asked for or met, and no secret or token goes with the command."""
    name = profile.name
    if not profile.is_of(to):
        what = f"there is no secret for {to}, as profile {name} is of {profile.texts['url']}"
        fix = f"use -p {name} and no other address; or set EXTCLI_SECRET_FILE or EXTCLI_TOKEN to what opens it"
    elif SECRET_FILE.key in profile.texts:
        what = f"{to} is production, and profile {name}, whose secret opens it, was not asked for"
        fix = f"choose it: extcli -p {name} …"
    else:
        what, fix = f"profile {name} has no secret", f"`extcli -p {name} config set {SECRET_FILE.key} FILE`"
    return UsageError(what, why="nothing was sent: production hands out no tokens", fix=fix)


def channel_of(identity: Identity, resolver: Resolver) -> str | None:
    """The channel asked for; else the default one for those who need one: a token without spans all (ruling A4)."""
    return resolver.channel() or (None if identity.spans_channels else DEFAULT_CHANNEL)


class NoToken:
    """The client id alone, which is enough where no channel is concerned."""

    given = False
    origin = "no token"

    def token(self) -> str:
        return ""

    def tokens_for(self, users: Sequence[str]) -> list[str]:
        return [""] * len(users)

    def renew(self, reason: str) -> bool:
        return False

    @property
    def advice(self) -> str:
        return "is EXTCLI_CLIENT_ID (or --client-id) an extension that the service knows?"


class GivenToken:
    """A ready-made token, of which nothing is known."""

    given = True
    origin = "the token given"

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token

    def tokens_for(self, users: Sequence[str]) -> list[str]:
        raise UsageError(
            "one token cannot speak for many users",
            why="each line needs a token of its user, and EXTCLI_TOKEN (or --token-file) is of one",
            fix="unset it; set EXTCLI_SECRET, or let a sandbox hand out the tokens",
        )

    def renew(self, reason: str) -> bool:
        return False

    @property
    def advice(self) -> str:
        return "the token given is at fault: `extcli token inspect` explains it; --as ROLE uses another instead"


class SelfSigned:
    """Tokens signed with the extension's secret; `advice` asks whether that is the right one."""

    given = False
    origin = "a token signed here"

    def __init__(self, secret: bytes, identity: Identity, channel: str | None, http: Http, *, advice: str) -> None:
        self.advice = advice
        self._secret = secret
        self._identity = identity
        self._channel = channel
        self._http = http
        self._ahead = 0

    def token(self) -> str:
        return self._sign(self._identity)

    def tokens_for(self, users: Sequence[str]) -> list[str]:
        return [self._sign(Identity(self._identity.role, user)) for user in users]

    def renew(self, reason: str) -> bool:
        """Sign by the service's clock from now on: an emulator's may have been moved."""
        if _EXPIRED not in reason.lower():
            return False
        now = service_time(self._http)
        if now is None:
            return False
        self._ahead = now - clock.now()
        return True

    def _sign(self, identity: Identity) -> str:
        claims = tokens.claims_of(identity, channel=self._channel, now=clock.now() + self._ahead)
        return tokens.sign(claims, self._secret)


class SandboxTokens:
    """Tokens that a sandbox hands out to whoever asks."""

    given = False
    origin = "a token of the sandbox"

    def __init__(self, client_id: str, identity: Identity, channel: str | None, http: Http) -> None:
        self._client_id = client_id
        self._identity = identity
        self._channel = channel
        self._http = http
        self._token: str | None = None

    def token(self) -> str:
        if self._token is None:
            user = {"user_id": self._identity.user} if self._identity.user else {}
            self._token = str(_member(self._fetch(user), "token") or "")
        return self._token

    def tokens_for(self, users: Sequence[str]) -> list[str]:
        found: list[str] = []
        while len(found) < len(users):
            share = _fitting(users[len(found) :])
            answer = self._fetch({"user_ids": share})
            # The service answers `token` for one identity and `tokens` for several.
            got = _member(answer, "tokens") or [_member(answer, "token")]
            if not isinstance(got, list) or len(got) != len(share):
                raise UnexpectedAnswer(answer)
            found += [str(token) for token in got]
        return found

    def renew(self, reason: str) -> bool:
        if _EXPIRED not in reason.lower():
            return False
        self._token = None
        return True

    @property
    def advice(self) -> str:
        return "set EXTCLI_SECRET (or EXTCLI_SECRET_FILE) or EXTCLI_TOKEN: this service wants other credentials"

    def _fetch(self, who: dict[str, Any]) -> Answer:
        request = {"app_id": self._client_id, "role": self._identity.role, **who}
        if self._channel:
            request["channel_id"] = self._channel
        call = Call("POST", f"{SERVICE}authtoken", body=encoded(request), signed=False)
        answer = self._http.send(call.method, call.path, body=call.body)
        if answer.status_code == 200 and (_member(answer, "token") or _member(answer, "tokens")):
            return answer
        raise _no_token(call, answer)


def _no_token(call: Call, answer: Answer) -> ErrorAnswer:
    """What it means that no token came back. It is the first request of most commands, so it meets wrong addresses."""
    status = answer.status_code
    if status < 300:
        return UnexpectedAnswer(answer)
    if status >= 500:
        return ServerError(str(call), status, answer.content, request_id=answer.headers.get("x-request-id", ""))
    fix = "set EXTCLI_SECRET (or EXTCLI_SECRET_FILE) or EXTCLI_TOKEN: only a sandbox hands out tokens"
    if status < 400:
        fix = f"it redirects to {answer.headers.get('location', 'nowhere')}: is --url (EXTCLI_URL) the right address?"
    elif status not in (401, 403) and not _knows(call.path, answer):
        fix = "is --url (EXTCLI_URL) the base address of an extension service, without /v1/e?"
    return Refused(str(call), status, answer.content, fix=fix)


def _knows(path: str, answer: Answer) -> bool:
    """Whether a refusal is a service's, and of this path: of an address too long by /v1/e it names a longer one."""
    if not is_from_service(answer.content):
        return False
    return all(named == path for named in re.findall(r"/[\w/.-]*authtoken", answer.text))


def service_time(http: Http) -> int | None:
    """The time by an emulator's clock, in ms; `None` where the service has none to show."""
    answer = http.send("GET", f"{CONTROL}clock")
    now = _member(answer, "now") if answer.status_code == 200 else None
    return now if isinstance(now, int) else None


def _fitting(users: Sequence[str]) -> list[str]:
    """As many of the first users as one request may name: the service takes bodies of at most 64 KiB."""
    size, count = 0, 0
    while count < len(users) and (size := size + len(encoded(users[count])) + 1) <= _LARGEST_REQUEST:
        count += 1
    return list(users[: max(count, 1)])


def _member(answer: Answer, name: str) -> Any:
    """A field of the answer's object; `None` when it has none or is no object."""
    try:
        document = json.loads(answer.content)
    except (ValueError, RecursionError):
        return None
    return document.get(name) if isinstance(document, dict) else None

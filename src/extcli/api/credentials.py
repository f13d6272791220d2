"""Which credentials a command uses, and which channel its tokens are for."""

from __future__ import annotations

from extcli.api import tokens
from extcli.api.http import Http
from extcli.api.token_sources import Credentials, GivenToken, SandboxTokens, SelfSigned
from extcli.config import secret_lookup, settings
from extcli.config.profiles import Profile
from extcli.config.resolver import Resolver
from extcli.config.settings import DEFAULT_CHANNEL, SECRET_FILE, Identity
from extcli.errors import UsageError


def credentials(resolver: Resolver, identity: Identity, http: Http, *, to: str) -> Credentials:
    """Choose a given token, else the secret, else the sandbox. `to` is the address that receives the token.

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
    """Return the advice if a self-signed token is refused: the secret may belong to another client id."""
    secret, client_id = secret_lookup.find_secret(resolver, to), resolver.find(settings.CLIENT_ID)
    of_profile = secret and secret.in_profile
    name = secret.label if secret and of_profile else "EXTCLI_SECRET (or EXTCLI_SECRET_FILE)"
    question = f"is {name} the secret of client id {resolver.client_id()}"
    if client_id is None:
        return f"{question} (the default, unless --client-id or EXTCLI_CLIENT_ID is given)?"
    profile = resolver.profile
    if client_id.in_profile and profile:
        return f"{question} (profile {profile.name})?"
    own = profile.texts.get(client_id.key, client_id.value) if profile else client_id.value
    note = f" Profile {profile.name} has client id {own}" if profile and own != client_id.value else ""
    return f"{question} ({client_id.origin})?{note}"


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
    """Return the channel of the token: the configured one, else the default for roles that need one (ruling A4).

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

"""How the socket is told who speaks: by a PIN, by a kept refresh token, or by a token; and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from extcli import clock
from extcli.api import tokens
from extcli.api.envelope import Message
from extcli.config import secret_lookup, settings
from extcli.config.link_store import Link
from extcli.config.settings import DEFAULT_CHANNEL
from extcli.errors import CliError, Refused, ServerError, UsageError
from extcli.output.times import instant_of
from extcli.session import BROADCASTER, Session


@dataclass(frozen=True, slots=True)
class Pair:
    """The tokens that a channel's game was handed out."""

    access: str = field(repr=False)
    refresh: str = field(repr=False)
    channel_id: str
    channel_name: str

    @property
    def access_until(self) -> int | None:
        """When the access token ends, in ms, if it says so."""
        return _end_of(self.access)


def log_in(session: Session, pin: str) -> tuple[Pair, Link]:
    """Exchange a PIN for tokens, and keep the one that may be kept."""
    pair = _pair_of(session, _authenticate(session, pin=pin))
    now = clock.now()
    link = Link(
        service=session.resolver.url(),
        socket=session.resolver.ws_url(),
        client_id=session.resolver.client_id(),
        channel_id=pair.channel_id,
        refresh=pair.refresh,
        since=now,
        until=_end_of(pair.refresh),
    )
    session.link_store.keep(link)
    return pair, link


def renew(session: Session, link: Link) -> Pair:
    """Exchange a kept refresh token for new tokens, and keep the new one. One that is invalid is forgotten."""
    try:
        pair = _pair_of(session, _authenticate(session, refresh=link.refresh), link.channel_id)
    except Refused as error:
        if is_invalid(error):
            session.link_store.forget(link)
            error.what = f"the kept link to channel {link.channel_id} is dead, and forgotten now"
            error.fix = "link again with `extcli pin login`; a service without --data forgets all links when it stops"
        raise
    session.link_store.renew(link, pair.refresh, _end_of(pair.refresh))
    return pair


def forget_ended(session: Session, channel_id: str | None = None) -> None:
    """Drop the kept links that the service has ended: of a channel, or all of it, whatever their client id.

    A file of links that cannot be used is no failure here: what ended them is done.
    """
    resolver = session.resolver
    with suppress(CliError):
        for link in session.link_store.all():
            of_channel = (link.client_id, link.channel_id) == (resolver.client_id(), channel_id)
            if link.service == resolver.url() and (channel_id is None or of_channel):
                session.link_store.forget(link)
                session.output.report(f"the link to channel {link.channel_id} that was kept here is forgotten")


def own_channel(session: Session) -> str:
    """The channel that a command acts for as broadcaster: that of a token that was given, else the one chosen."""
    given = secret_lookup.token(session.resolver)
    return _channel_of(given) if given else session.resolver.channel() or DEFAULT_CHANNEL


def is_invalid(error: Refused) -> bool:
    """Whether it was the refresh token that the service did not want, and never will."""
    return error.status == 400 and "refresh" in error.why.lower()


def kept_link(session: Session) -> Link:
    """The link of this service, client id and channel; raises `UsageError` if none is kept."""
    link = _kept(session)
    if link is None:
        resolver = session.resolver
        channel = resolver.channel()
        raise UsageError(
            f"no link is kept of {resolver.client_id()} at {resolver.url()}"
            + (f", channel {channel}" if channel else ""),
            fix="link with `extcli pin request -o plain | extcli pin login`; `extcli token list` shows what is kept",
        )
    return link


def introduce(session: Session, acts_as: str = BROADCASTER) -> str:
    """Give the connection the rights of a kept link, else of the credentials, which are of `acts_as` unless chosen.

    Returns which, in words.
    """
    link = None if _names_somebody(session) else _kept(session)
    if link is not None:
        renew(session, link)
        return f"as broadcaster of channel {link.channel_id}, by the refresh token that is kept"
    return _introduce_by_token(session, acts_as)


def _introduce_by_token(session: Session, acts_as: str) -> str:
    credentials = session.credentials(acts_as, to=session.resolver.ws_url())
    try:
        reply = _authenticate(session, jwt=credentials.token())
    except Refused as error:
        if error.status != 401:
            raise
        error.fix = credentials.advice
        if not credentials.renew(error.why):
            raise
        reply = _authenticate(session, jwt=credentials.token())
    if credentials.given:
        return f"by {credentials.origin}"
    channel = reply.data.get("twitch_id")
    where = f" of channel {channel}" if isinstance(channel, str) and channel else ""
    return f"as {session.resolver.identity(acts_as).role}{where}, by {credentials.origin}"


def _names_somebody(session: Session) -> bool:
    """Whether the user said whom to act as, by a role or by a token."""
    resolver = session.resolver
    return bool(resolver.find(settings.ACTS_AS) or secret_lookup.token_at(resolver, resolver.ws_url()))


def _kept(session: Session) -> Link | None:
    resolver = session.resolver
    found = session.link_store.find(
        service=resolver.url(), socket=resolver.ws_url(), client_id=resolver.client_id(), channel_id=resolver.channel()
    )
    if len(found) > 1:
        channels = ", ".join(link.channel_id for link in found)
        raise UsageError("links to several channels are kept", why=channels, fix="choose one with --channel")
    return found[0] if found else None


def _authenticate(session: Session, **by: str) -> Message:
    return session.websocket.ask("authenticate", data={"client_id": session.resolver.client_id(), **by})


def _pair_of(session: Session, reply: Message, channel_id: str = "") -> Pair:
    data: Mapping[str, Any] = reply.data
    channel = channel_id or _text(data.get("twitch_id")) or _channel_of(_text(data.get("jwt")))
    pair = Pair(
        access=_text(data.get("jwt")),
        refresh=_text(data.get("refresh")),
        channel_id=channel,
        channel_name=_text(data.get("twitch_name")) or channel,
    )
    if not (pair.access and pair.refresh and pair.channel_id):
        raise _NoPair(session.resolver.ws_url())
    return pair


class _NoPair(CliError):
    """Success, and nothing to go on with."""

    exit_code = ServerError.exit_code

    def __init__(self, url: str) -> None:
        super().__init__(f"{url} answered without tokens", fix="is EXTCLI_WS_URL (or --url) an extension service?")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _claims_of(token: str) -> Mapping[str, Any]:
    try:
        return tokens.inspect(token, now=0).claims
    except UsageError:
        return {}


def _end_of(token: str) -> int | None:
    return instant_of(_claims_of(token).get("exp"))


def _channel_of(token: str) -> str:
    """The channel by the token's own words: the specified reply does not name it."""
    return _text(_claims_of(token).get("channel_id"))

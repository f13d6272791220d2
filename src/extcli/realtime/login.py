"""Authenticates the WebSocket with a PIN, a stored refresh token or another token, and stores new refresh tokens."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from extcli import clock
from extcli.api import tokens
from extcli.api.envelope import Message
from extcli.api.token_sources import SandboxTokens, channel_of
from extcli.config import secret_lookup, settings
from extcli.config.link_store import Link
from extcli.config.settings import DEFAULT_CHANNEL
from extcli.errors import CliError, ExitCode, Refused, UsageError
from extcli.output.times import instant_of
from extcli.session import BROADCASTER, Session

OPEN_SOCKETS = "sockets that are open keep their rights; `extcli socket close --all` closes sockets of an emulator"
"""The data that a revocation keeps (ruling X4)."""


@dataclass(frozen=True, slots=True)
class TokenPair:
    """The tokens that a game receives for a channel."""

    access: str = field(repr=False)
    refresh: str = field(repr=False)
    channel_id: str
    channel_name: str

    @property
    def access_until(self) -> int | None:
        """When the access token expires, in ms; `None` if it has no `exp`."""
        return _expiry_of(self.access)


def log_in(session: Session, pin: str) -> tuple[TokenPair, Link]:
    """Exchange a PIN for tokens, and store the refresh token."""
    pair = _pair_of(session, _send_authenticate(session, pin=pin), else_channel=session.resolver.channel() or "")
    link = Link(
        service=session.resolver.url(),
        socket=session.resolver.ws_url(),
        client_id=session.resolver.client_id(),
        channel_id=pair.channel_id,
        refresh=pair.refresh,
        since=clock.now(),
        until=_expiry_of(pair.refresh),
    )
    session.link_store.add(link)
    return pair, link


def renew(session: Session, link: Link) -> TokenPair:
    """Exchange a stored refresh token for new tokens, and store the new one. Deletes the link if it is invalid."""
    try:
        pair = _pair_of(session, _send_authenticate(session, refresh=link.refresh), link.channel_id)
    except Refused as error:
        if is_invalid(error):
            session.link_store.delete(link)
            error.what = f"the stored link to channel {link.channel_id} is no longer valid, and was deleted"
            error.fix = "link again with `extcli pin login`; a service without --data loses all links when it stops"
        raise
    session.link_store.renew(link, pair.refresh, _expiry_of(pair.refresh))
    return pair


def delete_links(session: Session) -> None:
    """Delete the stored links to this service, which has ended them.

    Ignores a links file that cannot be used: the service has ended the links already.
    """
    with suppress(CliError):
        for link in session.link_store.all():
            if link.service == session.resolver.url():
                session.link_store.delete(link)
                session.output.report(f"deleted the stored link to channel {link.channel_id}")


def own_channel(session: Session) -> str:
    """Return the channel of a command that acts as broadcaster: from the given token, or the configured channel."""
    given = secret_lookup.token(session.resolver)
    if given:
        return _channel_of(given)
    return channel_of(session.resolver.identity(BROADCASTER), session.resolver) or DEFAULT_CHANNEL


def is_invalid(error: Refused) -> bool:
    """Return whether the service refused the refresh token itself: `authenticate` returns 400."""
    return error.status == 400


def stored_link(session: Session) -> Link:
    """Return the link to this service, client id and channel. Raises `UsageError` if there is none."""
    link = _find_link(session)
    if link is None:
        resolver = session.resolver
        channel = resolver.channel()
        raise UsageError(
            f"no link is stored for {resolver.client_id()} at {resolver.url()}"
            + (f", channel {channel}" if channel else ""),
            fix="link with `extcli pin request -o plain | extcli pin login`; `extcli link list` shows stored links",
        )
    return link


def authenticate(session: Session, acts_as: str = BROADCASTER) -> str:
    """Authenticate the connection and return the identity in words.

    An identity or token that the user chose comes first, then a stored link, then a token for `acts_as`.
    """
    if session.dry_run:
        return "without identity: nothing is sent"
    link = None if _is_identity_chosen(session) else _find_link(session)
    if link is not None:
        renew(session, link)
        return f"as broadcaster of channel {link.channel_id}, with the stored refresh token"
    return _authenticate_by_token(session, acts_as)


def _authenticate_by_token(session: Session, acts_as: str) -> str:
    credentials = session.credentials(acts_as, to=session.resolver.ws_url())
    try:
        reply = _send_authenticate(session, jwt=credentials.token())
    except Refused as error:
        if error.status != 401:
            raise
        error.fix = credentials.advice
        if not credentials.renew():
            raise
        reply = _send_authenticate(session, jwt=credentials.token())
    if credentials.given:
        return f"with {credentials.origin}"
    channel = reply.data.get("twitch_id")
    where = f" of channel {channel}" if isinstance(channel, str) and channel else ""
    is_stand_in = isinstance(credentials, SandboxTokens) and acts_as == BROADCASTER and not _is_identity_chosen(session)
    reason = ", as no link is stored" if is_stand_in else ""
    return f"as {session.resolver.identity(acts_as).role}{where}, with {credentials.origin}{reason}"


def _is_identity_chosen(session: Session) -> bool:
    """Return whether the user chose a role or a token."""
    resolver = session.resolver
    return bool(resolver.find(settings.ACTS_AS) or secret_lookup.find_token(resolver, resolver.ws_url()))


def _find_link(session: Session) -> Link | None:
    resolver = session.resolver
    found = session.link_store.find(
        service=resolver.url(), socket=resolver.ws_url(), client_id=resolver.client_id(), channel_id=resolver.channel()
    )
    if len(found) > 1:
        channels = ", ".join(link.channel_id for link in found)
        raise UsageError("links to several channels are stored", why=channels, fix="choose one with --channel")
    return found[0] if found else None


def _send_authenticate(session: Session, **by: str) -> Message:
    return session.open_socket().request("authenticate", data={"client_id": session.resolver.client_id(), **by})


def _pair_of(session: Session, reply: Message, channel_id: str = "", else_channel: str = "") -> TokenPair:
    """Return the tokens in a reply, for the channel `channel_id`.

    Without it, the reply or its token names the channel, otherwise it is `else_channel`.
    """
    data: Mapping[str, Any] = reply.data
    channel = channel_id or _text(data.get("twitch_id")) or _channel_of(_text(data.get("jwt"))) or else_channel
    pair = TokenPair(
        access=_text(data.get("jwt")),
        refresh=_text(data.get("refresh")),
        channel_id=channel,
        channel_name=_text(data.get("twitch_name")) or channel,
    )
    if not (pair.access and pair.refresh):
        fix = "is EXTCLI_WS_URL (or --url) an extension service?"
        error = CliError(f"{session.resolver.ws_url()} replied without tokens", fix=fix)
        error.exit_code = ExitCode.SERVICE_FAILED
        raise error
    if not channel:
        raise UsageError(
            "the tokens for this PIN name no channel, so no link was stored", fix="use a new PIN, with --channel ID"
        )
    return pair


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _expiry_of(token: str) -> int | None:
    return instant_of(tokens.claims_in(token).get("exp"))


def _channel_of(token: str) -> str:
    """Return the channel in the token's claims; the specified reply does not name it."""
    return _text(tokens.claims_in(token).get("channel_id"))

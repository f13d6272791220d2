"""Authenticates the WebSocket with a PIN, a stored refresh token or another token, and stores new refresh tokens.

PINs come from a prompt or a pipe, never from the command line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from extcli import clock
from extcli.api import tokens
from extcli.config import settings
from extcli.errors import CliError, ExitCode, Refused, UsageError, text_or_empty
from extcli.output.printer import write_stderr
from extcli.output.times import claim_instant
from extcli.session import BROADCASTER, Session

if TYPE_CHECKING:
    from extcli.api.websocket import Message
    from extcli.config.link_store import Link

T = TypeVar("T")

OPEN_SOCKETS = "open sockets keep their rights; on an emulator, `extcli socket close --all` closes them"
"""The data that a revocation keeps (ruling X4)."""
_LENGTH_OF_PIN = 6
_RETRIES = 3
_MAX_LINE = 200


@dataclass(frozen=True, slots=True)
class TokenPair:
    """The tokens that a game receives for a channel."""

    access: str = field(repr=False)
    refresh: str = field(repr=False)
    channel_id: str
    channel_name: str


def log_in(session: Session, pin: str) -> tuple[TokenPair, Link]:
    """Exchange a PIN for tokens, and store the refresh token."""
    from extcli.config.link_store import Link

    pair, resolver = _token_pair(session, _send_authenticate(session, pin=pin)), session.resolver
    link = Link(
        service=resolver.url(),
        socket=resolver.ws_url(),
        client_id=resolver.client_id(),
        channel_id=pair.channel_id,
        refresh=pair.refresh,
        since=clock.now(),
        until=expiry_of(pair.refresh),
    )
    session.link_store.add(link)
    return pair, link


def renew_tokens(session: Session, link: Link) -> TokenPair:
    """Exchange a stored refresh token for new tokens, and store the new one. Deletes the link if it is invalid."""
    try:
        pair = _token_pair(session, _send_authenticate(session, refresh=link.refresh), link.channel_id)
    except Refused as error:
        if error.status == 400:  # the refresh token itself is refused
            session.link_store.delete(link)
            error.what = f"the stored link to channel {link.channel_id} is no longer valid, and was deleted"
            error.fix = "link again with `extcli pin login`; a service without --data loses all links when it stops"
        raise
    session.link_store.renew(link, pair.refresh, expiry_of(pair.refresh))
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
    if given := session.resolver.token():
        return _channel_of(given)
    return tokens.channel_of(session.resolver.identity(BROADCASTER), session.resolver) or settings.DEFAULT_CHANNEL


def stored_link(session: Session) -> Link:
    """Return the link to this service, client id and channel. Raises `UsageError` if there is none."""
    if link := _find_link(session):
        return link
    resolver = session.resolver
    channel = resolver.channel()
    where = f"{resolver.client_id()} at {resolver.url()}" + (f", channel {channel}" if channel else "")
    fix = "link with `extcli pin request -o plain | extcli pin login`; `extcli link list` shows stored links"
    raise UsageError(f"no link is stored for {where}", fix=fix)


def authenticate(session: Session, acts_as: str = BROADCASTER) -> str:
    """Authenticate the connection and return the identity in words, or "" in a dry run, which sends nothing.

    An identity or token that the user chose comes first, then a stored link, then a token for `acts_as`.
    """
    if session.dry_run:
        return ""
    resolver = session.resolver
    is_chosen = bool(resolver.find(settings.ACTS_AS) or resolver.find_token(resolver.ws_url()))
    if not is_chosen and (link := _find_link(session)):
        renew_tokens(session, link)
        return f"as broadcaster of channel {link.channel_id}, with the stored refresh token"
    credentials = session.credentials(acts_as, to=resolver.ws_url())
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
    channel = text_or_empty(reply.data.get("twitch_id"))
    where = f" of channel {channel}" if channel else ""
    return f"as {resolver.identity(acts_as).role}{where}, with {credentials.origin}"


def _find_link(session: Session) -> Link | None:
    resolver = session.resolver
    place, channel = (resolver.url(), resolver.ws_url(), resolver.client_id()), resolver.channel()
    found = [
        link
        for link in session.link_store.all()
        if (link.service, link.socket, link.client_id) == place and channel in (None, link.channel_id)
    ]
    if len(found) > 1:
        channels = ", ".join(link.channel_id for link in found)
        raise UsageError("links to several channels are stored", why=channels, fix="choose one with --channel")
    return found[0] if found else None


def _send_authenticate(session: Session, **by: str) -> Message:
    return session.open_socket().request("authenticate", data={"client_id": session.resolver.client_id(), **by})


def _token_pair(session: Session, reply: Message, known_channel: str = "") -> TokenPair:
    """Return the tokens in a reply, for the channel that is known, or that the reply, its token or the user names."""
    access, refresh = text_or_empty(reply.data.get("jwt")), text_or_empty(reply.data.get("refresh"))
    if not (access and refresh):
        fix = "is EXTCLI_WS_URL (or --url) an extension service?"
        error = CliError(f"{session.resolver.ws_url()} replied without tokens", fix=fix)
        error.exit_code = ExitCode.SERVICE_FAILED
        raise error
    named = text_or_empty(reply.data.get("twitch_id")) or _channel_of(access)
    channel = known_channel or named or session.resolver.channel()
    if not channel:
        what = "the tokens for this PIN name no channel, so no link was stored"
        raise UsageError(what, fix="request a new PIN, and pass --channel ID")
    return TokenPair(access, refresh, channel, text_or_empty(reply.data.get("twitch_name")) or channel)


def expiry_of(token: str) -> int | None:
    """Return when a token expires, in ms; `None` if it has no `exp`."""
    return claim_instant(tokens.claims_in(token).get("exp"))


def _channel_of(token: str) -> str:
    """Return the channel in the token's claims; the specified reply does not name it."""
    return text_or_empty(tokens.claims_in(token).get("channel_id"))


# PINs


def ask_for_pin(argument: str | None, shown_by: str, use: Callable[[str], T]) -> T:
    """Read a PIN and return `use(pin)`. On a terminal an empty line or a refused PIN can be retyped three times.

    `shown_by` names the program or page that shows the PIN, for the prompt.
    """
    fix = "type it at the prompt, or pipe it in"
    if argument not in (None, "-"):
        why = "process lists and shell histories show it"
        raise UsageError("a PIN cannot be given on the command line", why=why, fix=fix)
    if sys.__stdin__ is None:
        raise UsageError("standard input is closed", fix=fix)
    left = _RETRIES if sys.stdin.isatty() else 0
    while True:
        if sys.stdin.isatty():
            sys.stderr.write(f"The PIN that {shown_by} shows: ")
            sys.stderr.flush()
        line = sys.stdin.buffer.readline(_MAX_LINE).decode(errors="replace")
        if not line:
            raise UsageError("no PIN was given", why="standard input is empty", fix=fix)
        try:
            return use(_checked_pin(line.strip()))
        except (Refused, _InvalidPin) as error:
            if isinstance(error, Refused):
                if error.status != 400:
                    raise
                error.fix = f"PINs expire after five minutes: request a new one in {shown_by}"
            if not left:
                raise
            write_stderr(error.lines())
            left -= 1


class _InvalidPin(UsageError):
    """Raised for input that cannot be a PIN."""


def _checked_pin(text: str) -> str:
    """Return a text that can be a PIN. Raises `UsageError` for another, without quoting it."""
    if len(text) == _LENGTH_OF_PIN and text.isascii() and text.isalnum():
        return text
    raise _InvalidPin(
        "this is not a PIN",
        why=f"a PIN is {_LENGTH_OF_PIN} letters and digits",
        fix="pipe in only the PIN: `extcli pin request -o plain`; with --game, add `| cut -f1`",
    )

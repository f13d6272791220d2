"""`extcli token`: signs tokens, requests them from a sandbox, and explains them. `extcli link`: the stored links.
`extcli user`: the caller's identity, and the users who shared theirs.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from extcli import clock
from extcli.api import tokens
from extcli.cli import argument, command, flag, noun, option
from extcli.commands.listing import show_all_pages
from extcli.config.settings import Identity
from extcli.errors import CliError, Refused, UsageError, refuse_both
from extcli.output import times, views
from extcli.reading import read_source
from extcli.realtime import login
from extcli.realtime import views as link_views
from extcli.session import BACKEND, VIEWER, Session

app = noun("Tokens: the JWT in every Authorization header, after the client id.")
user_app = noun("Users: the caller's identity, and the users who shared theirs.")
link_app = noun("Links of games to channels, which `extcli pin login` stores: list them, use them, end them.")

_CLOCK_SECONDS = 2.0
"""How long `mint` waits for the clock of a service that it does not need."""

Role = Annotated[str | None, option("--role ROLE", "The token's role: viewer, broadcaster, admin or backend.")]
User = Annotated[str | None, option("--user ID", "The user id in the token.")]
Header = Annotated[bool, flag("--header", "Print the complete Authorization header, for curl -H.")]


@command(app)
def mint(
    session: Session,
    role: Role = None,
    user: User = None,
    opaque: str | None = option("--opaque ID", "The opaque user id. Default: U followed by the user id."),
    ttl: str = option("--ttl DURATION", "The lifetime of the token.", "15m"),
    header: Header = False,
) -> None:
    """Sign a token with the extension's secret.

    The token's times follow the clock of the emulator at --url, which may have been moved. If no
    emulator responds there, and for production, they follow this machine's clock.

    The secret is in EXTCLI_SECRET, or in the file that EXTCLI_SECRET_FILE or the profile
    names. The default role is backend. Without --channel a token for backend or admin is
    valid for all channels.

    Example: extcli token mint --role backend --channel 1001
    """
    secret = session.resolver.secret()
    if secret is None:
        raise UsageError("no secret is configured", fix="set EXTCLI_SECRET or EXTCLI_SECRET_FILE, or use a profile")
    lifetime, identity = times.parse_duration(ttl, bare="s"), _chosen_identity(session, role, user, BACKEND)
    channel = tokens.channel_of(identity, session.resolver)
    claims = tokens.claims_of(identity, channel=channel, now=_service_time(session), lifetime=lifetime, opaque=opaque)
    _print_token(session, tokens.sign(claims, secret), header)


@command(app)
def sandbox(
    session: Session,
    role: Role = None,
    user: User = None,
    opaque: str | None = option("--opaque ID", "Opaque id, such as U1 or A1. Without --user, no user id is shared."),
    header: Header = False,
) -> None:
    """Request a token from a sandbox, for viewer:U1 by default.

    With --role viewer alone, each token is for a new anonymous viewer.

    \b
    Examples:
      extcli token sandbox --role broadcaster --channel 1001
      curl -H "$(extcli token sandbox --header)" http://127.0.0.1:8282/v1/e/vote
    """
    identity = _chosen_identity(session, role, user, VIEWER)
    channel = tokens.channel_of(identity, session.resolver)
    source = tokens.SandboxTokens(session.resolver.client_id(), identity, channel, session.http, opaque=opaque)
    _print_token(session, source.token(), header)


@command(app)
def inspect(
    session: Session,
    source: str = argument("FILE|-", "The file that contains the token. Default: standard input.", "-"),
) -> None:
    """Explain a token, without checking its signature. Sends nothing.

    At a terminal, explains the token in EXTCLI_TOKEN or --token-file.

    Example: extcli token sandbox | extcli token inspect
    """
    found = tokens.inspect(_read_token(session, source), now=clock.now())
    document = {"header": found.header, "claims": found.claims, "traps": found.traps}
    session.output.show_value(document, views.TOKEN_CONTENT)


@command(link_app, "token")
def use_link(session: Session, header: Header = False) -> None:
    """Print a new access token for a stored link.

    `extcli pin login` stores links. The new refresh token replaces the stored one. If links to
    several channels are stored, choose one with --channel.

    \b
    Examples:
      EXTCLI_TOKEN=$(extcli link token) extcli user info
      curl -H "$(extcli link token --header)" http://127.0.0.1:8282/v1/e/vote
    """
    _print_token(session, login.renew_tokens(session, login.stored_link(session)).access, header)


@command(link_app, "list", prints=link_views.LINKS)
def list_links(session: Session) -> None:
    """List the stored links, without their tokens. Sends nothing.

    Plain output is $columns, with times in
    Unix milliseconds.

    Example: extcli link list
    """
    session.output.show_value([link_views.link_facts(link) for link in session.link_store.all()], link_views.LINKS)


@command(link_app, "end", loses="all links and PINs of the channel end")
def end_link(session: Session) -> None:
    """End a stored link at the service, and delete it.

    This ends all links and PINs of its channel. Access tokens stay valid until they expire, and
    open sockets keep their rights until they close. Without a stored link, the broadcaster ends
    them with `extcli api DELETE pin`.

    Example: extcli link end --channel 1001
    """
    link = login.stored_link(session)
    where = f"channel {link.channel_id} of {link.client_id} at {link.service}"
    try:
        pair = login.renew_tokens(session, link)
    except Refused as error:
        if error.status != 400:  # the service refuses anything but the refresh token
            raise
        session.output.report(f"the link to {where} was no longer valid, and was deleted")
        return
    session.service_with(tokens.GivenToken(pair.access)).delete("pin")
    session.link_store.delete(link, even_if_newer=True)
    session.output.report(f"revoked and deleted the link to {where}")
    session.output.note(login.OPEN_SOCKETS)


@command(user_app)
def info(session: Session) -> None:
    """Print what the service knows about the caller. Acts as viewer:U1.

    Fails until the token is valid, so a game can repeat the command until its PIN is entered.

    Standard error also names the role and the user, and where the token comes from. A stored link
    is not used automatically; get a token with `link token`.

    \b
    Examples:
      extcli user info --as broadcaster
      EXTCLI_TOKEN=$(extcli link token) extcli user info
    """
    session.output.show(session.service(VIEWER).get("user_info"), views.RECORD)
    credentials = session.credentials(VIEWER)
    identity = "" if credentials.given else f" as {session.resolver.identity(VIEWER)},"
    session.output.note(f"acted{identity} with {credentials.origin}")


@command(user_app, "list")
def list_users(
    session: Session,
    cursor: str | None = option("--cursor CURSOR", "Print only this page of ids. Pages are numbered from 0."),
) -> None:
    """List the ids of users who shared their identity. Acts as backend.

    Example: extcli user list > ids.txt
    """
    service = session.service(BACKEND)
    if cursor is not None:
        session.output.show(service.get("user_ids", cursor=cursor), views.USER_IDS)
        return
    show_all_pages(session, lambda at: service.get("user_ids", cursor=at), "results", views.USER_IDS)


def _read_token(session: Session, source: str) -> str:
    """Return the text in a file, or of standard input, or at a terminal the configured token."""
    if source == "-":
        if session.resolver.flags.token_file or sys.stdin.isatty():
            if (token := session.resolver.token()) is None:
                raise UsageError("no token was given", fix="pipe it in, name its file, or set EXTCLI_TOKEN")
            return token
    elif (("." in source and "eyJ" in source) or source.count(".") == 2) and not Path(source).exists():
        why = "process lists and shell histories show it"
        raise UsageError("a token cannot be an argument", why=why, fix="pipe it in, or name its file")
    return read_source(source).decode(errors="replace")


def _service_time(session: Session) -> int:
    """Return the time by which the service will judge a token, in Unix ms."""
    if session.resolver.production() is None:
        session.http.set_timeout(min(_CLOCK_SECONDS, session.resolver.timeout()))
        with suppress(CliError):
            return session.now()
    return clock.now()


def _chosen_identity(session: Session, role: str | None, user: str | None, default: str) -> Identity:
    refuse_both(role, session.resolver.flags.acts_as, "--role and --as")
    chosen = Identity.parse(role, "--role") if role is not None else session.resolver.identity(default)
    return chosen if user is None else Identity.parse(f"{chosen.role}:{user}", "--user")


def _print_token(session: Session, token: str, header: bool) -> None:
    text = f"Authorization: {session.resolver.client_id()} {token}" if header else token
    session.output.show_value({"header" if header else "token": text}, views.SOLE_VALUE)

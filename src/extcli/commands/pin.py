"""`extcli pin`: a game is linked to a channel by a PIN, each step by itself."""

from __future__ import annotations

from typing import Annotated

import typer

from extcli.cli.shared_options import command, noun
from extcli.errors import UsageError
from extcli.output import times, views
from extcli.output.format import Format
from extcli.output.sanitize import visible
from extcli.realtime import pins
from extcli.realtime import views as link_views
from extcli.session import BROADCASTER, Session

app = noun("PINs: six characters that link a game to a broadcaster's channel, valid for five minutes.")

FromPipe = Annotated[str | None, typer.Argument(metavar="-", hidden=True)]


@command(app)
def request(
    session: Session,
    game: Annotated[bool, typer.Option("--game", help="The other way round: a PIN that the game shows.")] = False,
    unbound: Annotated[
        bool, typer.Option("--unbound", help="Ask with the client id alone, for no channel in particular.")
    ] = False,
) -> None:
    """Get a PIN to type into the game. Acts as broadcaster.

    It is for the broadcaster's channel. With --game, which needs no credentials, a
    PIN and the game's token, which lives once the PIN is validated; plain output is
    `PIN<TAB>TOKEN`.

    \b
    Examples:
      extcli pin request
      extcli pin request -o plain | extcli pin login
      extcli pin request --game -o plain > game.txt
    """
    if game and unbound:
        raise UsageError("--game and --unbound exclude each other")
    if game:
        answer = session.open_service().issue_pin(session.resolver.client_id())
        session.output.show(answer, link_views.PIN_AND_TOKEN)
        if session.output.format is Format.TABLE:
            session.output.note("the game's token, dead until then:")
            session.output.line(visible(answer.json()["token"]))  # unbroken, so that it can be copied
        return
    service = session.named_service() if unbound else session.service(BROADCASTER)
    session.output.show(service.request_pin(session.resolver.pin_path()), link_views.PIN)


@command(app)
def validate(session: Session, source: FromPipe = None) -> None:
    """Take the PIN that a game shows. Acts as broadcaster.

    The PIN is asked for, or read from a pipe. From then on the game's token acts for
    the broadcaster's channel.

    \b
    Examples:
      extcli pin validate --channel 1001
      extcli pin request --game -o plain | cut -f1 | extcli pin validate
    """
    service = session.service(BROADCASTER)
    answer = pins.ask_for_pin(session, source, "the game", service.validate_pin)
    session.output.show(answer, views.NOTHING)
    session.output.note("the PIN is right: the game is linked")


@command(app)
def login(session: Session, source: FromPipe = None) -> None:
    """Be the game: send a PIN over the socket, and keep the link.

    The PIN is asked for, or read from a pipe. What is kept is the refresh token,
    for `token refresh` and `socket`; the access token is neither shown nor kept.

    \b
    Examples:
      extcli pin login
      extcli pin request -o plain | extcli pin login
    """
    from extcli.realtime import login

    session.link_store.prepare()
    pair, link = pins.ask_for_pin(session, source, "the extension", lambda pin: login.log_in(session, pin))
    facts = {
        "channel_id": pair.channel_id,
        "name": pair.channel_name,
        "access_until": pair.access_until,
        "refresh_until": link.until,
    }
    session.output.show_value(facts, link_views.LOGIN)
    session.output.note(f"the refresh token is kept in {session.link_store.path}")


@command(app)
def status(session: Session) -> None:
    """Tell whether a game is linked to the channel. Acts as broadcaster.

    Plain output is `true` or `false`.

    Example: extcli pin status --channel 1001
    """
    session.output.show(session.service(BROADCASTER).pin_token_exists(), link_views.LINKED)


@command(app, loses="the clock moves by five minutes, and every PIN runs out")
def expire(session: Session) -> None:
    """Let every PIN of an emulator run out, and print what expired.

    Its clock is advanced by five minutes, which others meet as well.

    Example: extcli pin expire
    """
    answer = session.open_service().move_clock({"advance": pins.LIFETIME})
    session.output.report(f"the clock is advanced by {times.span(pins.LIFETIME)}: no PIN from before is valid")
    session.output.show(answer, views.MOVED_CLOCK)


@command(app, loses="all links and PINs of the channel end")
def revoke(session: Session) -> None:
    """End all PINs and links of the channel. Acts as broadcaster.

    Refresh tokens and the tokens of PINs die at once, access tokens at their end. A
    link to it that is kept here is forgotten.

    Example: extcli pin revoke --channel 1001
    """
    from extcli.realtime import login

    session.output.show(session.service(BROADCASTER).revoke_pins(), views.NOTHING)
    session.output.note("the channel's PINs, PIN tokens and refresh tokens are revoked")
    login.forget_ended(session, login.own_channel(session))

"""`extcli pin`: links a game to a channel by a PIN, step by step."""

from __future__ import annotations

from typing import Annotated

from emulator.contract.limits import PIN_LIFETIME
from extcli.api.tokens import Credentials
from extcli.cli import argument, command, flag, noun, option
from extcli.config.settings import PIN_PATH
from extcli.errors import refuse_both
from extcli.output import times, views
from extcli.output.format import Format
from extcli.output.sanitize import visible
from extcli.reading import document_of
from extcli.realtime import views as link_views
from extcli.realtime.login import ask_for_pin, expiry_of, log_in
from extcli.session import BROADCASTER, Session

app = noun("PINs: six characters that link a game to a broadcaster's channel, valid for five minutes.")

FromPipe = Annotated[str | None, argument("-", "", hidden=True)]


@command(app)
def request(
    session: Session,
    game: bool = flag("--game", "Get a PIN that the game shows to the broadcaster, and the game's token."),
    unbound: bool = flag("--unbound", "Get a PIN that is not bound to a channel; sends only the client id."),
) -> None:
    """Get a PIN for the channel, to type into the game. Acts as broadcaster.

    With --game, get a PIN that the broadcaster types into the extension, and the game's token, which
    is valid once the broadcaster has typed the PIN. --game needs no credentials. Its plain output
    is `PIN<TAB>TOKEN`.

    \b
    Examples:
      extcli pin request
      extcli pin request -o plain | extcli pin login
      extcli pin request --game
    """
    refuse_both(game, unbound, "--game and --unbound")
    if game:
        response = session.service_with(None).post("pin", {"identifier": session.resolver.client_id()})
        session.output.show(response, link_views.PIN_AND_TOKEN)
        if session.output.format is Format.TABLE:
            session.output.note("the game's token, valid once the broadcaster has typed the PIN:")
            session.output.line(visible(document_of(response, {"token": str})["token"]))  # on one line, for copying
        return
    service = session.service_with(Credentials()) if unbound else session.service(BROADCASTER)
    session.output.show(service.send("POST", session.resolver.value(PIN_PATH)), link_views.PIN)


@command(app)
def validate(session: Session, source: FromPipe = None) -> None:
    """Accept the PIN that a game shows. Acts as broadcaster.

    Prompts for the PIN, or reads it from a pipe. The game's token then acts for the
    broadcaster's channel.

    \b
    Examples:
      extcli pin validate --channel 1001
      extcli pin request --game -o plain | cut -f1 | extcli pin validate
    """
    service = session.service(BROADCASTER)
    response = ask_for_pin(source, "the game", lambda pin: service.post("validate_pin", {"pin": pin}))
    session.output.done(response, "the game is linked")


@command(app)
def login(session: Session, source: FromPipe = None) -> None:
    """Log in as a game with a PIN, and store the link.

    Prompts for the PIN, or reads it from a pipe, and sends it over the WebSocket. Stores
    the refresh token, for `listen`, `socket` and `link token`. The access token is
    neither shown nor stored.

    \b
    Examples:
      extcli pin login
      extcli pin request -o plain | extcli pin login
    """
    session.link_store.prepare()
    pair, link = ask_for_pin(source, "the extension", lambda pin: log_in(session, pin))
    facts = {
        "channel_id": pair.channel_id,
        "name": pair.channel_name,
        "access_until": expiry_of(pair.access),
        "refresh_until": link.until,
    }
    session.output.show_value(facts, link_views.LOGIN)
    session.output.note(f"the refresh token is stored in {session.link_store.path}")
    session.output.note("`extcli listen` and `extcli socket` use the link. For other commands, use the link's token:")
    session.output.note("EXTCLI_TOKEN=$(extcli link token) extcli user info")


@command(app)
def status(session: Session) -> None:
    """Print whether a game is linked to the channel. Acts as broadcaster.

    A game is linked by its login, or once its PIN was validated. Plain output is `true` or
    `false`. Exits 0 in both cases.

    Example: extcli pin status --channel 1001
    """
    session.output.show(session.service(BROADCASTER).get("pin_token_exists"), link_views.LINKED)


@command(app, loses="the clock moves by five minutes, and every PIN expires", is_control=True)
def expire(
    session: Session,
    source: str | None = argument("-", "Pass `-` to expire only the PIN on standard input.", None),
    digest: str = option("--digest HEX", "Expire only the PIN with this digest, as `contents pins` lists it.", ""),
) -> None:
    """Make every PIN of the emulator expire, or only one.

    Without - and --digest, moves the emulator's clock five minutes ahead, and prints what expired.
    With either, only that PIN expires, and the clock does not move.

    \b
    Examples:
      extcli pin expire
      extcli pin request -o plain | extcli pin expire -
    """
    control = session.control()
    refuse_both(source, digest, "- and --digest")
    if source or digest:
        path, owner = "pins/expire", {"client_id": session.resolver.client_id()}
        if digest:
            response = control.post(path, owner | {"digest": digest})
        else:
            response = ask_for_pin(source, "the extension", lambda pin: control.post(path, owner | {"pin": pin}))
        session.output.done(response, "the PIN has expired")
        return
    response = control.post("clock", {"advance": PIN_LIFETIME})
    session.output.report(f"advanced the clock by {times.duration_text(PIN_LIFETIME)}; all earlier PINs have expired")
    session.output.show(response, views.MOVED_CLOCK)

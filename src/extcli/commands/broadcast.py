"""`extcli broadcast`: messages to whoever listens now."""

from __future__ import annotations

from typing import Annotated

import typer

from extcli.cli.json_input import read_json
from extcli.cli.shared_options import command, noun
from extcli.config import secret_lookup
from extcli.errors import ExpectationFailed, UsageError
from extcli.output import views
from extcli.session import BACKEND, BROADCASTER, VIEWER, Session

app = noun("Broadcasts: messages under an event's name. Nothing is kept: who listens now hears them.")

_EVERYBODY, _WHISPER = "broadcast", "whisper-"

EventName = Annotated[str, typer.Argument(metavar="EVENT", help="The event's name, which listeners follow.")]
Data = Annotated[str, typer.Argument(metavar="DATA", help="The message as JSON; @file or - for standard input.")]
Post = Annotated[
    bool,
    typer.Option("--post", help="By POST, where GET with a body is not taken [EXTCLI_BROADCAST_METHOD=POST]."),
]


@command(app)
def send(
    session: Session,
    event: EventName,
    data: Data,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="USER", help="Whisper to this user; else all hear.", show_default=False),
    ] = None,
    extension_wide: Annotated[
        bool, typer.Option("--extension-wide", help="In all channels, which only backend and admin may.")
    ] = False,
    post: Post = False,
) -> None:
    """Send a message to all listeners in a channel. Acts as broadcaster, or backend with --extension-wide.

    \b
    Examples:
      extcli broadcast send round '{"number": 2}'
      extcli broadcast send hint '"look left"' --to U7
      extcli broadcast send news @news.json --extension-wide
    """
    document = read_json(data, "DATA")
    method = session.resolver.broadcast_method(post=post)
    target = _EVERYBODY if to is None else f"{_WHISPER}{to}"
    if extension_wide:
        if session.resolver.flags.channel:
            raise UsageError("--extension-wide and --channel exclude each other")
        service = session.service(BACKEND)
        answer = service.extension_broadcast(event, document, target=target, method=method)
    else:
        channel = _channel(session)
        service = session.service(BROADCASTER)
        answer = service.broadcast(event, document, target=target, channel=channel, method=method)
    session.output.show(answer, views.NOTHING)
    session.output.note(f"sent to those who listen {'everywhere' if extension_wide else 'in the channel'} now")


@command(app)
def whisper_self(session: Session, event: EventName, data: Data, post: Post = False) -> None:
    """Send a message to all clients of oneself in the channel. Acts as viewer:U1.

    Example: extcli broadcast whisper-self draft '{"text": "h"}' --as broadcaster
    """
    document = read_json(data, "DATA")
    method = session.resolver.broadcast_method(post=post)
    session.output.show(session.service(VIEWER).whisper_self(event, document, method=method), views.NOTHING)


@command(app)
def size(session: Session, data: Data) -> None:
    """Tell whether a message is small enough to be sent, asking nobody.

    Up to 4,096 bytes of compact JSON are sent plain; more are compressed, to at most
    4,096 bytes of base64. What is larger then is refused, and the exit code is 7.

    Example: extcli broadcast size @news.json
    """
    from extcli.commands import broadcasts

    found = broadcasts.size_of(read_json(data, "DATA"))
    session.output.show_value(found, views.RECORD)
    if found["sent"] == broadcasts.REFUSED:
        why = f"{found['compressed']:,} bytes when compressed, and at most {found['limit']:,} are sent"
        if found["compressed"] <= found["limit"]:
            why = f"{found['bytes']:,} bytes, and at most {broadcasts.LARGEST_PLAIN:,} are compressed at all"
        fix = "send less, or keep it in a store and send where it is"
        raise ExpectationFailed("the message would be refused", why=why, fix=fix)
    if found["bytes"] > broadcasts.LARGEST_BODY:
        session.output.report("a request has room for 64 KiB: send it over the socket, or raise serve's --max-body")


def _channel(session: Session) -> str | None:
    """The channel to name in the request; `None` leaves it to a token that was given."""
    from extcli.api.credentials import channel_of

    if secret_lookup.token_at(session.resolver):
        return session.resolver.channel()
    channel = channel_of(session.resolver.identity(BROADCASTER), session.resolver)
    if channel is None:
        raise UsageError("which channel?", fix="name it with --channel, or mean all of them with --extension-wide")
    return channel

"""`extcli broadcast`: messages to all current listeners. `extcli datastream`: events from pages to games."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from emulator.contract.compression import compress
from emulator.contract.limits import DEFAULT_MAX_BODY, MAX_JSON_BYTES, MAX_MESSAGE_BYTES
from emulator.contract.names import MARK
from extcli.cli import argument, command, flag, noun, option
from extcli.cli.json_input import read_json
from extcli.config import secret_lookup
from extcli.errors import CliError, ExpectationFailed, UsageError
from extcli.output import views
from extcli.output.format import Format
from extcli.output.sanitize import visible
from extcli.reading.shapes import SHAPE_ERRORS, document_of
from extcli.session import BACKEND, BROADCASTER, VIEWER, Session

if TYPE_CHECKING:
    from extcli.api.http import Response

app = noun("Broadcasts: messages under an event name, to all current listeners. Nothing is stored.")
datastream_app = noun("The datastream: events that pages send to the games of their channel. Nothing is stored.")

_TO_ALL, _TO_USER = "broadcast", "whisper-"

PLAIN, COMPRESSED, REFUSED = "plain", "compressed", "refused"

EventName = Annotated[str, argument("EVENT", "The name of the event.")]
Data = Annotated[str, argument("DATA", "The message: JSON, @file, or - for standard input.")]
Post = Annotated[
    bool, flag("--post", "Use POST, for services that refuse GET with a body [EXTCLI_BROADCAST_METHOD=POST].")
]


@command(app)
def send(
    session: Session,
    event: EventName,
    data: Data,
    to: str | None = option("--to USER", "Send only to this user."),
    extension_wide: bool = flag(
        "--extension-wide", "Send to the listeners in all channels. Only backend and admin may."
    ),
    post: Post = False,
) -> None:
    """Send a message to all listeners in the channel. Acts as broadcaster; with --extension-wide as backend.

    \b
    Examples:
      extcli broadcast send round '{"number": 2}'
      extcli broadcast send hint '"look left"' --to U7
      extcli broadcast send news @news.json --extension-wide
    """
    document = read_json(data, "DATA")
    method = session.resolver.broadcast_method(post=post)
    target = _TO_ALL if to is None else f"{_TO_USER}{to}"
    if extension_wide:
        if session.resolver.flags.channel:
            raise UsageError("--extension-wide and --channel exclude each other")
        service = session.service(BACKEND)
        response = service.extension_broadcast(event, document, target=target, method=method)
    else:
        channel = _channel(session)
        service = session.service(BROADCASTER)
        response = service.broadcast(event, document, target=target, channel=channel, method=method)
    session.output.show(response, views.NOTHING)
    place = "all channels" if extension_wide else "the channel"
    reached = _count_recipients(session, response)
    if reached == 0:
        session.output.note(f"nothing in {place} listens to this event now; `extcli socket list` shows what listens")
    elif reached is not None:
        session.output.note(f"sent to {reached:,} {'listener' if reached == 1 else 'listeners'} in {place}")
    else:
        user = None if to is None else f"user {visible(to)} in {place}, if they are listening now"
        session.output.note(f"sent to {user or f'current listeners in {place}'}")


@command(app)
def whisper_self(session: Session, event: EventName, data: Data, post: Post = False) -> None:
    """Send a message to all of your own clients in the channel. Acts as viewer:U1.

    Example: extcli broadcast whisper-self draft '{"text": "h"}' --as broadcaster
    """
    document = read_json(data, "DATA")
    method = session.resolver.broadcast_method(post=post)
    session.output.show(session.service(VIEWER).whisper_self(event, document, method=method), views.NOTHING)


@command(app)
def size(session: Session, data: Data) -> None:
    """Check whether a message is small enough to send. Sends nothing.

    Up to 4,096 bytes of compact JSON are sent as they are. More is compressed, to at
    most 4,096 bytes of base64. Exits 7 if the message is too large even then.

    Example: extcli broadcast size @news.json
    """
    found = size_of(read_json(data, "DATA"))
    session.output.show_value(found, views.RECORD)
    if found["sent"] == REFUSED:
        why = f"{found['compressed']:,} bytes compressed; the limit is {found['limit']:,}"
        if found["compressed"] <= found["limit"]:
            why = f"{found['bytes']:,} bytes; the limit before compression is {MAX_JSON_BYTES:,}"
        fix = "send less, or put the data in a store and send a reference"
        raise ExpectationFailed("the message is too large", why=why, fix=fix)
    if found["bytes"] > DEFAULT_MAX_BODY:
        session.output.report("larger than a request of 64 KiB: send less, or raise serve's --max-body")


@command(datastream_app, "send")
def send_event(session: Session, event: str = argument("JSON|-|@FILE", "The event: any JSON.")) -> None:
    """Send an event to the channel's games that follow the datastream. Acts as viewer:U1.

    `extcli socket send subscribe datastream --data '{}' --wait 1` receives one.

    Example: extcli datastream send '{"click": [10, 20]}'
    """
    session.output.show(session.service(VIEWER).post_event(read_json(event, "the event")), views.NOTHING)
    session.output.note("sent to the games that listen now")


def size_of(data: object) -> dict[str, Any]:
    """Return the size of a message in bytes, plain and compressed, the limit, and how it would be sent."""
    from extcli.api.call import encoded

    text = encoded(data)
    short = len(compress(text))
    fits = short <= MAX_MESSAGE_BYTES and len(text) <= MAX_JSON_BYTES
    sent = PLAIN if len(text) <= MAX_MESSAGE_BYTES else COMPRESSED if fits else REFUSED
    return {"bytes": len(text), "compressed": short, "limit": MAX_MESSAGE_BYTES, "sent": sent}


def _count_recipients(session: Session, response: Response) -> int | None:
    """Return how many sockets got a broadcast, by the journal of an emulator; `None` if that is unknown.

    Reads it only if the user will see the number.
    """
    output, id = session.output, response.headers.get("x-request-id", "")
    if output.format is not Format.TABLE or output.quiet or MARK not in response.headers or not id:
        return None
    with suppress(CliError, *SHAPE_ERRORS):
        found = document_of(session.control().read_journal({"id": id, "kind": "delivery"}))["entries"]
        return sum(each["delivered"] for each in found) if found else None
    return None


def _channel(session: Session) -> str | None:
    """Return the channel to name in the request; with a given token `None` means the channel of the token."""
    from extcli.api.token_sources import channel_of

    if secret_lookup.find_token(session.resolver):
        return session.resolver.channel()
    channel = channel_of(session.resolver.identity(BROADCASTER), session.resolver)
    if channel is None:
        raise UsageError("no channel was given", fix="use --channel, or --extension-wide for all channels")
    return channel

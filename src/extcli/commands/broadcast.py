"""`extcli broadcast`: messages to all current listeners. `extcli datastream`: events from pages to games."""

from __future__ import annotations

from typing import Annotated

from emulator.contract.compression import compress
from emulator.contract.limits import MAX_MESSAGE_BYTES, MAX_UNCOMPRESSED_BYTES
from extcli.api.call import encoded
from extcli.cli import argument, command, flag, noun, option
from extcli.cli.json_input import read_json
from extcli.errors import ExpectationFailed, UsageError, refuse_both
from extcli.output import views
from extcli.session import BACKEND, BROADCASTER, VIEWER, Session

app = noun("Broadcasts: messages with an event name, sent to all current listeners. Nothing is stored.")
datastream_app = noun("The datastream: events that pages send to the games of their channel. Nothing is stored.")

EventName = Annotated[str, argument("EVENT", "The name of the event.")]
Data = Annotated[str, argument("DATA", "The message: JSON, @file, or - for standard input.")]
Post = Annotated[bool, flag("--post", "Send POST, if GET with a body is refused [EXTCLI_BROADCAST_METHOD=POST].")]


@command(app)
def send(
    session: Session,
    event: EventName,
    data: Data,
    to: str | None = option("--to USER", "Send only to this user."),
    extension_wide: bool = flag("--extension-wide", "Send to listeners in all channels, as backend or admin."),
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
    target = "broadcast" if to is None else f"whisper-{to}"
    refuse_both(extension_wide, session.resolver.flags.channel, "--extension-wide and --channel")
    channel = None if extension_wide else _channel_to_name(session)
    path = "extension_broadcast" if extension_wide else "broadcast"
    service = session.service(BACKEND if extension_wide else BROADCASTER)
    response = service.broadcast(event, document, target=target, channel=channel, method=method, path=path)
    session.output.done(response, "sent to the current listeners; `extcli socket list` shows them")


@command(app)
def whisper_self(session: Session, event: EventName, data: Data, post: Post = False) -> None:
    """Send a message to all of your own clients in the channel. Acts as viewer:U1.

    Example: extcli broadcast whisper-self draft '{"text": "h"}' --as broadcaster
    """
    document = read_json(data, "DATA")
    method = session.resolver.broadcast_method(post=post)
    message = encoded({"event": event, "data": document})
    session.output.done(session.service(VIEWER).send(method, "whisper_self", message), "sent")


@command(app)
def size(session: Session, data: Data) -> None:
    """Check whether a message is small enough to send. Sends nothing.

    Compact JSON of up to 4,096 bytes is sent as it is. A larger message is compressed, and
    may then have 4,096 bytes of base64. Exits 7 if the message is too large even then.

    Example: extcli broadcast size @news.json
    """
    text = encoded(read_json(data, "DATA"))
    compressed = len(compress(text))
    fits = compressed <= MAX_MESSAGE_BYTES and len(text) <= MAX_UNCOMPRESSED_BYTES
    sent = "plain" if len(text) <= MAX_MESSAGE_BYTES else "compressed" if fits else "refused"
    found = {"bytes": len(text), "compressed": compressed, "limit": MAX_MESSAGE_BYTES, "sent": sent}
    session.output.show_value(found, views.RECORD)
    if sent == "refused":
        why = f"the limits are {MAX_UNCOMPRESSED_BYTES:,} bytes of JSON, and {MAX_MESSAGE_BYTES:,} bytes compressed"
        fix = "send less, or put the data in a store and send a reference"
        raise ExpectationFailed("the message is too large", why=why, fix=fix)


@command(datastream_app, "send")
def send_event(session: Session, event: str = argument("JSON|-|@FILE", "The event: any JSON.")) -> None:
    """Send an event to the channel's games that subscribe to the datastream. Acts as viewer:U1.

    `extcli socket send subscribe datastream --data '{}' --wait 1` receives an event.

    Example: extcli datastream send '{"click": [10, 20]}'
    """
    response = session.service(VIEWER).post("datastream", read_json(event, "the event"))
    session.output.done(response, "sent to the games that are subscribed now")


def _channel_to_name(session: Session) -> str | None:
    """Return the channel to name in the request; with a given token `None` means the channel of the token."""
    if session.resolver.find_token():
        return session.resolver.channel()
    channel = session.channel(BROADCASTER)
    if channel is None:
        raise UsageError("no channel was given", fix="use --channel, or --extension-wide for all channels")
    return channel

"""A client of the Pusher protocol 7, as the published SDK uses it in a page."""

from __future__ import annotations

import base64
import json
import zlib
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from support.service import CHANNEL, CLIENT_ID, RunningService
from support.socket_client import TIMEOUT, Json

KEY = "18c26c0d1c7fafb78ba2"
QUERY = "?protocol=7&client=js&version=7.0.3&flash=false"
"""The query that the published SDK's client library sends."""


class Broadcast(NamedTuple):
    """One broadcast, decoded."""

    channel: str
    target: str
    """The name of the Pusher event: `broadcast` or `whisper-<id>`."""
    event: str
    data: Any
    is_plain: bool
    """Whether the message was uncompressed JSON."""


class PusherClient:
    """One connection. Broadcasts that arrive before a reply are kept for `broadcasts`."""

    def __init__(self, live: RunningService, query: str = QUERY, path: str = f"/app/{KEY}", **options: Any) -> None:
        url = f"{live.url.replace('http', 'ws', 1)}{path}{query}"
        self._connection = connect(url, compression=None, open_timeout=TIMEOUT, close_timeout=TIMEOUT, **options)
        self.socket = self._connection.__enter__()
        self._broadcasts: list[Broadcast] = []
        self.greeting = self.frame()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.__exit__(kind, error, at)

    def send(self, event: str, data: object = None, **members: object) -> None:
        """Send a frame, `data` as an object."""
        self.socket.send(json.dumps({"event": event, **({} if data is None else {"data": data}), **members}))

    def frame(self) -> Json:
        """Return the next frame of any kind, undecoded."""
        return dict(json.loads(self.socket.recv(timeout=TIMEOUT)))

    def reply(self) -> Json:
        """Return the next frame that is not a broadcast, decoded."""
        while "message" in (frame := decode_frame(self.frame()))["data"] and frame["event"] != "pusher:error":
            self._broadcasts.append(parse_broadcast(frame))
        return frame

    def subscribe(self, *channels: str, auth: str = "") -> Self:
        """Subscribe to channels by their full names, and return the client. `auth` is `<client id> <JWT>`."""
        for channel in channels:
            self.send("pusher:subscribe", {"auth": auth, "channel": channel})
            reply = self.reply()
            assert ("pusher_internal:subscription_succeeded", channel) == (reply["event"], reply["channel"])
        return self

    def pong(self) -> Json:
        """Send a ping and return the reply."""
        self.send("pusher:ping", {})
        return self.reply()

    def broadcasts(self) -> list[Broadcast]:
        """Return all broadcasts since the last call."""
        assert "pusher:pong" == self.pong()["event"]  # earlier broadcasts have arrived before this
        broadcasts, self._broadcasts = self._broadcasts, []
        return broadcasts

    def error(self) -> int:
        """Return the code of the next frame, which must be an error."""
        frame = self.reply()
        assert "pusher:error" == frame["event"], frame
        assert isinstance(frame["data"]["message"], str)
        return int(frame["data"]["code"])

    def close_code(self) -> int:
        """Read until the connection is closed, and return the close code."""
        with suppress(ConnectionClosed):
            while True:
                self.frame()
        assert self.socket.close_code is not None
        return self.socket.close_code


def decode_frame(frame: Json) -> Json:
    """Decode `data`, which is JSON in a string, or an object."""
    data = frame.get("data", {})
    return frame | {"data": json.loads(data) if isinstance(data, str) else data}


def parse_broadcast(frame: Json) -> Broadcast:
    """Decode a broadcast as the published SDK does in `parseMessage`."""
    assert {"event", "channel", "data"} == frame.keys()
    assert {"message"} == frame["data"].keys()
    message = frame["data"]["message"]
    assert isinstance(message, str)
    is_plain = message[0] in "{["
    assert message[0] != "<", "the message is a fragment"
    # The library inflates both zlib and gzip. Its base64 alphabet contains + and /.
    text = message if is_plain else zlib.decompress(base64.b64decode(message, validate=True), 32 + zlib.MAX_WBITS)
    envelope = json.loads(text)
    assert envelope.keys() <= {"event", "data"}
    return Broadcast(frame["channel"], frame["event"], envelope["event"], envelope.get("data"), is_plain)


def pusher_channel(channel: str = CHANNEL, client_id: str = CLIENT_ID) -> str:
    """Return the Pusher channel of an extension's pages in a channel."""
    return f"twitch.pubsub.{client_id}.{channel}"


def subscribed_page(
    live: RunningService, channel: str = CHANNEL, client_id: str = CLIENT_ID, auth: str = ""
) -> PusherClient:
    """Return a client that subscribed to its channel and to the whole extension, as the SDK does."""
    return PusherClient(live).subscribe(pusher_channel(channel, client_id), pusher_channel("all", client_id), auth=auth)

"""Why the service closes connections. The detail of a refusal is the reason in the close frame."""

from __future__ import annotations

from websockets.frames import CloseCode

from emulator.core.errors import (
    BadRequest,
    Facts,
    Forbidden,
    RequestTimeout,
    ServiceError,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    refusal,
)

_BAD_FRAME = (BadRequest, "Bad frame", "X3")
_SOCKETS_RULE = "gaps: Links and sockets"


@refusal(Unavailable, "Service Unavailable", "docs: Restarts", "The service stopped",
         "Connect again when the service is ready: `extcli wait`.")  # fmt: skip
def stopped() -> Facts:
    detail = "the service is stopping"
    return Facts(detail, "an open connection", "a running service", close_code=CloseCode.GOING_AWAY)


@refusal(Unauthorized, "Unauthorized", "A1", "The secret was retired, or the link has ended",
         "Link the game again: `extcli pin request -o plain | extcli pin login`.")  # fmt: skip
def credential_ended() -> Facts:
    detail = "the secret was retired, or the link has ended"
    held = "a retired secret or an ended link"
    return Facts(detail, held, "a registered secret and a live link")


@refusal(Unavailable, "Injected by a fault", "docs: Faults", "A fault closed the connection",
         "Remove it: `extcli fault rm {fault}`.")  # fmt: skip
def closed_by_fault(*, fault: str, code: int) -> Facts:
    return Facts(f"fault {fault} closed the connection", f"fault {fault}", "no matching fault", close_code=code)


@refusal(Forbidden, "{reason}", "docs: Control", "A call to the control API closed the connection",
         "Connect again: `POST /_emulator/sockets/close` closed it on purpose.")  # fmt: skip
def closed_by_call(*, reason: str, code: int) -> Facts:
    return Facts(reason, f"a call that closed the connection with code {code}", "no such call", close_code=code)


@refusal(*_BAD_FRAME, "A binary message closed the connection", "Send text.")
def binary_message() -> Facts:
    return Facts("text frames only", "a binary message", "text", close_code=CloseCode.UNSUPPORTED_DATA)


@refusal(*_BAD_FRAME, "A message was not UTF-8", "Send UTF-8 text.")
def not_utf8() -> Facts:
    return Facts("not UTF-8", "another encoding", "UTF-8", close_code=CloseCode.INVALID_DATA)


@refusal(TooLarge, "Message too large", "X3", "A message was too large",
         "Send a smaller message. Before authentication, a message has at most 4096 bytes.")  # fmt: skip
def message_too_large(*, problem: str, limit: int) -> Facts:
    return Facts(problem, problem, f"at most {limit} bytes", close_code=CloseCode.MESSAGE_TOO_BIG)


@refusal(TooLarge, "Message too large", "X3", "A message came in too many frames",
         "Send a message in one frame, or in a few large ones.")  # fmt: skip
def too_many_frames(*, limit: int) -> Facts:
    detail = f"a message of over {limit} frames"
    return Facts(detail, detail, f"at most {limit} frames", close_code=CloseCode.MESSAGE_TOO_BIG)


@refusal(RequestTimeout, "Request timeout", "X3", "A message did not arrive in time",
         "Send a message whole, within {seconds} s of its first byte.")  # fmt: skip
def late_message(*, seconds: int) -> Facts:
    detail = f"a message did not arrive within {seconds} s"
    return Facts(detail, f"part of a message after {seconds} s", f"a whole message within {seconds} s")


@refusal(*_BAD_FRAME, "The service closed the connection",
         "Look up the close code in RFC 6455, and correct the frames.")  # fmt: skip
def wrong_frames(*, problem: str, code: int) -> Facts:
    return Facts(problem, problem, "frames as RFC 6455 describes them", close_code=code)


@refusal(TooManyRequests, "Too many failed logins", "T4", "Too many failed attempts to authenticate",
         "Connect again, with the PIN that the extension shows.")  # fmt: skip
def failed_logins(*, limit: int) -> Facts:
    return Facts(f"{limit} failed attempts to authenticate", f"{limit} failed attempts", f"fewer than {limit}")


@refusal(TooManyRequests, "Too much to be read", "B4", "The client does not read its messages",
         "Read faster, or subscribe to less.")  # fmt: skip
def unread(*, limit: int) -> Facts:
    detail = f"over {limit} bytes unread"
    return Facts(detail, detail, f"at most {limit} bytes unread", close_code=CloseCode.TRY_AGAIN_LATER)


@refusal(BadRequest, "Bad Request", "B1", "The page speaks another version of the Pusher protocol",
         "Connect with ?protocol=7.")  # fmt: skip
def unsupported_protocol() -> Facts:
    return Facts("unsupported protocol version", "another version", "version 5, 6 or 7", close_code=4007)


@refusal(TooManyRequests, "Not authenticated in time", _SOCKETS_RULE, "The connection did not authenticate in time",
         "Send authenticate soon after connecting.")  # fmt: skip
def late(*, seconds: int) -> Facts:
    detail = f"not authenticated within {seconds} s"
    return Facts(detail, f"no authentication after {seconds} s", f"authenticate within {seconds} s")


@refusal(TooManyRequests, "Replaced by a newer connection", _SOCKETS_RULE, "A newer connection took its place",
         "Authenticate soon, and close unused connections.")  # fmt: skip
def replaced() -> Facts:
    held = "an unauthenticated or a viewer's connection, from the network with the most connections"
    return Facts("replaced by a newer connection", held, "fewer connections from this network, or another role")


@refusal(TooManyRequests, "Too much before authentication", _SOCKETS_RULE, "Too much was sent before authentication",
         "Authenticate first.")  # fmt: skip
def talkative() -> Facts:
    held = "more KiB in a minute than --address-kib allows"
    return Facts("too much before authentication", held, "less data, or an authenticated connection")


def library_close(code: int, problem: str, limit: int) -> ServiceError:
    """Return why the WebSocket library closed a connection; `limit` is the largest message in bytes."""
    if code == CloseCode.MESSAGE_TOO_BIG:
        return message_too_large(problem=problem, limit=limit)
    return wrong_frames(problem=problem, code=code)

"""Why the service closes connections, by the reason in the close frame. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from emulator.control.explanations.texts import Explanation, shortened


class Close(NamedTuple):
    """One kind of close. The other texts may contain the named groups of `reason`, and `{detail}`: all of it."""

    reason: str
    """A regular expression that is found in the reason."""
    rule: str
    title: str
    next_step: str
    held: str
    needed: str


CLOSES: Final = (
    Close(r"^the service stops$", "docs: Restarts", "The service stopped",
     "Connect again when it is ready: `extcli wait`.", "an open connection", "a running service"),
    Close(r"secret or link behind this connection has ended", "A1", "The secret was retired, or the link has ended",
     "Link the game again: `extcli pin request -o plain | extcli pin login`.",
     "a retired secret, or a link that has ended", "a registered secret and a link that has not ended"),
    Close(r"^fault (?P<fault>\S+) closed the connection$", "docs: Faults", "A fault closed the connection",
     "Remove it: `extcli fault rm {fault}`.", "fault {fault}", "no fault that matches"),
    Close(r"^text frames only$", "X3", "A binary message closed the connection", "Send text.",
     "a binary message", "text"),
    Close(r"^(?P<limit>\d+) failed attempts to authenticate$", "T4", "Too many failed attempts to authenticate",
     "Connect again, with the PIN that the extension shows.", "{limit} failed attempts", "fewer than {limit}"),
    Close(r"^over (?P<limit>\d+) bytes unread$", "B4", "The client does not read its messages",
     "Read faster, or subscribe to less.", "over {limit} bytes unread", "at most {limit} bytes unread"),
    Close(r"^frame with (?P<size>\d+) bytes.* exceeds limit of (?P<limit>\d+) bytes$", "X3",
     "A message was too large",
     "Send a smaller message. Before authentication, a message has at most 4096 bytes.",
     "{size} bytes", "at most {limit} bytes"),
    Close(r"^not UTF-8$", "X3", "A message was not UTF-8", "Send UTF-8 text.", "another encoding", "UTF-8"),
    Close(r"^unsupported protocol version", "B1", "The page speaks another version of the Pusher protocol",
     "Connect with ?protocol=7.", "another version", "version 5, 6 or 7"),
    Close(r"^not authenticated within (?P<limit>.+)$", "gaps: Links and sockets",
     "The connection did not authenticate in time", "Send authenticate soon after connecting.",
     "no authentication after {limit}", "authenticate within {limit}"),
    Close(r"^replaced by a newer connection$", "gaps: Links and sockets", "A newer connection took its place",
     "Authenticate soon, and close connections that are not used.",
     "an unauthenticated connection of the address that has the most", "an authenticated connection"),
    Close(r"^too much before authentication$", "gaps: Links and sockets", "Too much was sent before authentication",
     "Authenticate first.", "more than --address-kib in a minute", "less, or an authenticated connection"),
)  # fmt: skip
OTHER_CLOSE: Final = Close(
    "", "X3", "The service closed the connection", "Look up the close code in RFC 6455, and correct the frames.",
    "{detail}", "frames as RFC 6455 describes them",
)  # fmt: skip


def explain_close(reason: str) -> Explanation | None:
    """Return why a socket was closed with this reason; `None` for an unknown reason."""
    return next(_explained(CLOSES, reason), None)


def explain_any_close(reason: str) -> Explanation:
    """Return why the service closed a socket; of an unknown reason, what the library reports."""
    return next(_explained((*CLOSES, OTHER_CLOSE), reason))


def _explained(closes: Iterable[Close], reason: str) -> Iterator[Explanation]:
    for close in closes:
        if found := re.search(close.reason, reason, re.DOTALL):
            values = {"detail": reason, **found.groupdict()}
            texts = (close.rule, close.title, close.held, close.needed, close.next_step)
            yield Explanation(*(shortened(text.format_map(values)) for text in texts))

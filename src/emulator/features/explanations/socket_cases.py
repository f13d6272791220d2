"""Refusals over sockets, and the reasons of closed connections."""

from __future__ import annotations

from typing import Final

from emulator.features.explanations.cases import Case, cases

SOCKETS: Final = (
    *cases(
        "Malformed request",
        rows=(
            (r"is not valid JSON(?:: (?P<problem>.+))?", "X3", "The message is not valid JSON",
             "Send one JSON object per message; `extcli socket send` does.", "{problem}", "a JSON object"),
            (r"needs a target$", "X3", "The subscription names no target", "Name what to follow in params.target.",
             "no target", "params.target, such as state or poll"),
            (r"request_id", "X2", "The request id is not a number", "Send a number as params.request_id.",
             "another value", "a number of at most 64 bits"),
            (r"^(?P<part>\S+): has (?P<size>\d+) bytes; the limit is (?P<limit>\d+)", "X3",
             "A member of the request is too large", "Send the payload in data.",
             "{part} of {size} bytes", "at most {limit} bytes"),
            (r"^action: missing", "X2", "The request names no action", "Name the action, such as authenticate or get.",
             "no action", "an action"),
            (r"", "X2", "The request has the wrong shape", "Send action, params and data.", "{held}",
             'an object such as {{"action": "get", "params": {{"request_id": 1, "target": "state"}}}}'),
        ),
    ),
    *cases(
        "Request too large",
        rows=(
            (r"has (?P<size>\d+) bytes; the limit is (?P<limit>\d+) for data", "X3", "The request is too large",
             "Send less data, or raise --max-body of `extcli serve`.", "{size} bytes", "at most {limit} bytes of data"),
            (r"", "X3", "The request is too large", "Send less data, or raise --max-body of `extcli serve`."),
        ),
    ),
    *cases(
        "Bad frame",
        rows=(
            (r"binary", "X3", "The page sent a binary message", "Send text.", "a binary message", "text"),
            (r"unknown event (?P<event>.+);", "B1", "The page sent an unknown event",
             "Send events over REST: `extcli broadcast as-page`.",
             "event {event}", "pusher:subscribe, pusher:unsubscribe or pusher:ping"),
            (r"", "X3", "The message is not one of the Pusher protocol",
             "Use a client of the Pusher protocol, such as the published SDK.",
             "{held}", "{needed}"),
        ),
    ),
    *cases(
        "AuthError",
        rows=(
            (r"^no credential", "B7", "The page sent no credential",
             "Send `<client id> <JWT>` as `auth` of pusher:subscribe, or as ?token= of the connection.",
             "no credential", "the client id and a token"),
            (r"opens only its own channel", "B7", "The token does not open this topic",
             "Subscribe to twitch.pubsub.<client id>.<channel> of the token, or to twitch.pubsub.<client id>.all.",
             "a topic of another channel or extension", "the token's own channel, or the extension's"),
            (r"^token expired", "B7", "The token behind the subscription has expired",
             "Subscribe again with a new token.", "an expired token", "a token that has not expired"),
            (r"", "B1", "The page asked for a private channel", "Subscribe to a public channel.",
             "a private or presence channel", "a public channel"),
        ),
    ),
    *cases(
        "Too many subscriptions",
        rows=(
            (r"(?:would have (?P<total>\d+) subscriptions; the limit is|at most) (?P<limit>\d+)", "gaps: Limits",
             "The connection has too many subscriptions",
             "Unsubscribe from some, or raise --max-subscriptions of `extcli serve`.",
             "one subscription too many", "at most {limit} subscriptions"),
        ),
    ),
    *cases(
        "Too many connections",
        rows=(
            (r"^open (?P<what>.+): (?P<open>\d+), limit (?P<limit>\d+)", "gaps: Limits",
             "Too many connections are open",
             "Close some, or raise --max-sockets, --address-sockets or --address-pages of `extcli serve`.",
             "{open} open {what}", "at most {limit}"),
        ),
    ),
    *cases(
        "Not authenticated in time", "Replaced by a newer connection", "Too much before authentication",
        "Too much to be read",
        rows=(
            (r"(?i)not authenticated", "gaps: Links and sockets",
             "The connection did not authenticate in time", "Send authenticate soon after connecting.",
             "no authentication", "authenticate within the limit of --login-timeout"),
            (r"(?i)replaced", "gaps: Links and sockets", "A newer connection took its place",
             "Authenticate soon, and close connections that are not used.",
             "an unauthenticated connection of the address that has the most", "an authenticated connection"),
            (r"(?i)before authentication", "gaps: Links and sockets", "Too much was sent before authentication",
             "Authenticate first.", "more than --address-kib in a minute", "less, or an authenticated connection"),
            (r"", "B4", "The client does not read its messages", "Read faster, or subscribe to less.",
             "over 1 MiB unread", "at most 1 MiB unread"),
        ),
    ),
)  # fmt: skip

CLOSES: Final = (
    *cases(
        "",
        rows=(
            (r"^the service stops$", "docs: Restarts", "The service stopped",
             "Connect again when it is ready: `extcli wait`.", "an open connection", "a running service"),
            (r"secret or link behind this connection has ended", "A1", "The secret was retired, or the link has ended",
             "Link the game again: `extcli pin request -o plain | extcli pin login`.",
             "a retired secret, or a link that has ended", "a registered secret and a link that has not ended"),
            (r"^fault (?P<fault>\S+) closed the connection$", "docs: Faults", "A fault closed the connection",
             "Remove it: `extcli fault rm {fault}`.", "fault {fault}", "no fault that matches"),
            (r"^text frames only$", "X3", "A binary message closed the connection", "Send text.",
             "a binary message", "text"),
            (r"^(?P<limit>\d+) failed attempts to authenticate$", "T4", "Too many failed attempts to authenticate",
             "Connect again, with the PIN that the extension shows.", "{limit} failed attempts", "fewer than {limit}"),
            (r"^over (?P<limit>\d+) bytes unread$", "B4", "The client does not read its messages",
             "Read faster, or subscribe to less.", "over {limit} bytes unread", "at most {limit} bytes unread"),
            (r"^frame with (?P<size>\d+) bytes.* exceeds limit of (?P<limit>\d+) bytes$", "X3",
             "A message was too large",
             "Send a smaller message. Before authentication, a message has at most 4096 bytes.",
             "{size} bytes", "at most {limit} bytes"),
            (r"^not UTF-8$", "X3", "A message was not UTF-8", "Send UTF-8 text.", "another encoding", "UTF-8"),
            (r"^unsupported protocol version", "B1", "The page speaks another version of the Pusher protocol",
             "Connect with ?protocol=7.", "another version", "version 5, 6 or 7"),
            (r"^not authenticated within (?P<limit>.+)$", "gaps: Links and sockets",
             "The connection did not authenticate in time", "Send authenticate soon after connecting.",
             "no authentication after {limit}", "authenticate within {limit}"),
            (r"^replaced by a newer connection$", "gaps: Links and sockets", "A newer connection took its place",
             "Authenticate soon, and close connections that are not used.",
             "an unauthenticated connection of the address that has the most", "an authenticated connection"),
            (r"^too much before authentication$", "gaps: Links and sockets", "Too much was sent before authentication",
             "Authenticate first.", "more than --address-kib in a minute", "less, or an authenticated connection"),
        ),
    ),
)  # fmt: skip
"""Why the service closes connections, by the reason in the close frame."""
OTHER_CLOSE: Final = Case(
    (), "", "X3", "The service closed the connection", "Look up the close code in RFC 6455, and correct the frames.",
    "{detail}", "frames as RFC 6455 describes them",
)  # fmt: skip

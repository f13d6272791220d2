"""Refusals of sockets."""

from __future__ import annotations

from emulator.contract.names import CLIENT_ID_RULE
from emulator.core.errors import BadRequest, Facts, Forbidden, NotFound, TooLarge, Unauthorized, refusal

_WRONG_REQUEST = (BadRequest, "Malformed request")
_WRONG_FRAME = (BadRequest, "Bad frame")
_SEND_LESS = "Send less data, or raise --max-body of `extcli serve`."
_SUBSCRIBE_AGAIN = "Subscribe again with a new token as `auth` of pusher:subscribe."
_OWN_TOPICS = "Subscribe to twitch.pubsub.<client id>.<channel of the token> or twitch.pubsub.<client id>.all."


@refusal(
    Unauthorized,
    "Unauthorized",
    "X3",
    "The connection is not authenticated",
    "Send the action authenticate first, with a PIN or a token; `extcli socket send` does this for you.",
)
def not_authenticated() -> Facts:
    detail = "authenticate first: until then, only authenticate and a subscription to authentication are allowed"
    return Facts(detail, "an unauthenticated connection", "the action authenticate with pin, jwt or refresh")


@refusal(*_WRONG_REQUEST, "X3", "The message is not valid JSON",
         "Send one JSON object per message, as `extcli socket send` does.")  # fmt: skip
def malformed_message(*, problem: str) -> Facts:
    return Facts(f"the request is not valid JSON: {problem}", problem, "a JSON object")


@refusal(*_WRONG_REQUEST, "X2", "The request has the wrong shape", "Send an object with action, params and data.")
def no_object() -> Facts:
    needed = 'an object: {"action": …, "params": {…}, "data": {…}}'
    return Facts(f"a request must be {needed}", "another value", needed)


@refusal(*_WRONG_REQUEST, "X2", "A member of the request has the wrong type", "Send {member} as {needed}.")
def wrong_member(*, member: str, needed: str) -> Facts:
    return Facts(f"{member}: must be {needed}", f"another value as {member}", needed)


@refusal(*_WRONG_REQUEST, "X2", "The request names no action", "Name the action, such as authenticate or get.")
def missing_action() -> Facts:
    return Facts("action: missing or empty", "no action", "an action")


@refusal(*_WRONG_REQUEST, "X3", "The subscription names no target", "Name the target to subscribe to in params.target.")
def missing_target(*, action: str) -> Facts:
    return Facts(f"params.target: {action} needs a target", "no target", "params.target, such as state or poll")


@refusal(*_WRONG_REQUEST, "X3", "A member of the request is too large", "Send the payload in data.")
def member_too_large(*, member: str, size: int, limit: int) -> Facts:
    detail = f"{member}: has {size} bytes; the limit is {limit}"
    return Facts(detail, f"{member} of {size} bytes", f"at most {limit} bytes")


@refusal(TooLarge, "Request too large", "X3", "The request is too large", _SEND_LESS)
def request_too_large(*, size: int, limit: int, rest: int) -> Facts:
    detail = f"the request has {size} bytes; the limit is {limit} for data and {rest} for the rest"
    return Facts(detail, f"{size} bytes", f"at most {limit} bytes of data")


@refusal(BadRequest, "Too many subscriptions", "gaps: Limits", "The connection has too many subscriptions",
         "Unsubscribe from some, or raise --max-subscriptions of `extcli serve`.")  # fmt: skip
def too_many_subscriptions(*, total: int, limit: int) -> Facts:
    detail = f"the connection would have {total} subscriptions; the limit is {limit}"
    return Facts(detail, f"{total} subscriptions", f"at most {limit} subscriptions")


@refusal(NotFound, "Not Found", "X9", "The service does not have this target",
         "Use another target: {target} is not publicly documented.")  # fmt: skip
def unsupported_target(*, target: str) -> Facts:
    detail = f"{target} is not part of this service; nothing was done"
    return Facts(detail, f"target {target}", "a target of this service")


@refusal(NotFound, "Not Found", "X9", "The action does not support this target", "Send one of these targets: {known}.")
def wrong_target(*, action: str, target: str, known: str) -> Facts:
    found, held = (f"does not support {target}", f"target {target}") if target else ("needs a target", "no target")
    return Facts(f"{action} {found}; supported: {known}", held, f"one of {known}")


@refusal(NotFound, "Not Found", "X9", "There is no such action",
         "Send another action; `extcli socket send --help` shows examples.")  # fmt: skip
def no_action(*, action: str, known: str) -> Facts:
    return Facts(f"there is no action {action!r}; the actions are {known}", f"action {action!r}", f"one of {known}")


@refusal(NotFound, "Not Found", "X1", "There is no socket at this path",
         "Connect to /ws; `extcli connect` prints the address.")  # fmt: skip
def no_socket_path(*, path: str) -> Facts:
    detail = f"there is no socket at {path}; use /ws or /<version>/<client id>"
    return Facts(detail, f"path {path}", "/ws or /<version>/<client id>")


@refusal(BadRequest, "Bad Request", "X1", "The client id in the path has the wrong form",
         "Connect to /ws, or put your extension's client id in the path.")  # fmt: skip
def malformed_client_id() -> Facts:
    return Facts(f"the path's client id must be {CLIENT_ID_RULE}", "another text", CLIENT_ID_RULE)


@refusal(*_WRONG_FRAME, "X3", "The page sent a binary message", "Send text.")
def binary_message() -> Facts:
    return Facts("binary messages are not supported", "a binary message", "text")


@refusal(*_WRONG_FRAME, "B1", "The page sent an unknown event",
         "Send events over REST: `extcli broadcast send`.")  # fmt: skip
def unknown_event(*, event: str) -> Facts:
    detail = f"event: unknown event {event!r}; to send an event, use REST"
    return Facts(detail, f"event {event!r}", "pusher:subscribe, pusher:unsubscribe or pusher:ping")


@refusal(*_WRONG_FRAME, "X3", "The message does not follow the Pusher protocol",
         "Use a client of the Pusher protocol, such as the published SDK.")  # fmt: skip
def wrong_message(*, problem: str, needed: str) -> Facts:
    return Facts(problem, "another message", needed)


@refusal(Unauthorized, "AuthError", "B7", "The page sent no credential",
         "Send `<client id> <JWT>` as `auth` of pusher:subscribe, or as ?token= when you connect.")  # fmt: skip
def no_credential() -> Facts:
    detail = "no credential: data.auth must hold '<client id> <JWT>'"
    return Facts(detail, "no credential", "the client id and a token")


@refusal(Forbidden, "AuthError", "B7", "The token does not allow this topic", _OWN_TOPICS)
def other_topic() -> Facts:
    detail = "data.channel: the token allows only the topics of its channel and its extension"
    return Facts(detail, "a topic of another channel or extension", "the topic of the token's channel or extension")


@refusal(Unauthorized, "AuthError", "B7", "The subscription's token has expired", _SUBSCRIBE_AGAIN)
def token_expired() -> Facts:
    detail = "token expired: subscribe again with a new token in data.auth"
    return Facts(detail, "an expired token", "a token that has not expired")


@refusal(Forbidden, "AuthError", "B1", "The page asked for a private channel", "Subscribe to a public channel.")
def private_channel() -> Facts:
    return Facts("only public channels are supported", "a private or presence channel", "a public channel")

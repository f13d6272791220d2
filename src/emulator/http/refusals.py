"""Refusals of HTTP: requests that are too large, too slow or cut off, and paths that do not exist."""

from __future__ import annotations

from emulator.core.errors import (
    BadRequest,
    Facts,
    Forbidden,
    HeadTooLarge,
    MethodNotAllowed,
    NotFound,
    RequestTimeout,
    ServiceError,
    TooLarge,
    TooManyRequests,
    Unavailable,
    refusal,
)
from emulator.core.wire.url import CONTROL, SERVICE


@refusal(Unavailable, "Too many uploads", "gaps: Limits", "Too many uploads are running",
         "Send the upload again when another has ended, or raise --max-uploads of `extcli serve`.")  # fmt: skip
def too_many_uploads(*, limit: int, is_share: bool = False) -> Facts:
    """Refuse an upload because too many run. `is_share` means that the limit is one extension's share."""
    found = f"{limit} uploads are running, which is the limit --max-uploads"
    if is_share:
        found = f"this extension runs {limit} uploads already, half of --max-uploads; the rest is for other extensions"
    detail = f"{found}; nothing was changed; send the upload again later"
    return Facts(detail, f"{limit} uploads at once", f"fewer than {limit}", retry_after=5)


@refusal(BadRequest, "Malformed json body", "W4", "The body is incomplete",
         "Send as many bytes as Content-Length says.")  # fmt: skip
def body_cut_off(*, size: int) -> Facts:
    detail = "the connection closed before the body was complete"
    return Facts(detail, f"a body that ends after {size} bytes", "the whole body")


@refusal(TooLarge, "Body too large", "W8", "The body is too large",
         "Send a smaller body, or raise --max-body of `extcli serve`.")  # fmt: skip
def body_too_large(*, size: int = 0, limit: int) -> Facts:
    """Refuse a body over the limit. `size` is 0 if the request does not state its size."""
    if not size:
        return Facts(f"the body exceeds the limit of {limit} bytes", f"over {limit} bytes", f"at most {limit} bytes")
    return Facts(f"the body has {size} bytes; the limit is {limit}", f"{size} bytes", f"at most {limit} bytes")


@refusal(BadRequest, "Invalid body", "docs: Control", "The form has a field more than once",
         "Send {field} once, as a whole or in parts.")  # fmt: skip
def ambiguous_form(*, field: str, other: str = "") -> Facts:
    """Refuse a form that has a field twice.

    `other` is a field inside `field`; empty if `field` itself is repeated.
    """
    if other:
        problem = f"the form has both {field} and {other}; send one of them"
    else:
        problem = "the form has this field twice, as a whole or in parts; send it once"
    return Facts(f"{field}: {problem}", f"{field} and {other or 'its parts'}", f"{field} once")


@refusal(NotFound, "Not Found", "spec: Authentication", "Production has no such endpoint",
         "Call it in the sandbox only.")  # fmt: skip
def not_in_production(*, path: str) -> Facts:
    return Facts(f"{path} does not exist in this environment", f"path {path}", "a path that production also has")


@refusal(NotFound, "Not Found", "W1", "There is no such path", "Correct the path; `extcli api --help` shows examples.")
def no_path(*, path: str, hint: str = "") -> Facts:
    detail = f"there is no {path}; {hint}" if hint else f"there is no {path}"
    prefix = CONTROL if path.startswith(CONTROL) else SERVICE
    return Facts(detail, f"path {path}", f"a path of the service, under {prefix}")


class UpgradeRequired(ServiceError, status=426):
    """Raised for a request without upgrade to the address of a WebSocket."""

    more = ((b"upgrade", b"websocket"), (b"connection", b"Upgrade"))


@refusal(UpgradeRequired, "Upgrade Required", "X1", "The request is not a WebSocket handshake",
         "Connect with a WebSocket client, and have proxies forward the headers Upgrade and Connection.")  # fmt: skip
def upgrade_missing(*, path: str) -> Facts:
    detail = f"{path} is a WebSocket address, but the request has no header Upgrade: websocket"
    return Facts(detail, "a request without Upgrade: websocket", "a WebSocket handshake")


@refusal(MethodNotAllowed, "Method Not Allowed", "spec: Endpoints", "The path does not support this method",
         "Use a method that the API viewer, at /schema/docs of the service, lists for this path.")  # fmt: skip
def wrong_method(*, path: str, method: str) -> Facts:
    return Facts(f"{path} does not support {method}", f"{method} {path}", "a method of this path")


@refusal(BadRequest, "Bad Request", "W4", "The request is not valid HTTP",
         "Compare the request with a valid one, which `extcli api GET vote -v` shows.")  # fmt: skip
def invalid_request(*, problem: str) -> Facts:
    return Facts(problem, problem, "a valid HTTP request")


@refusal(BadRequest, "Bad Request", "docs: Waits", "The client disconnected before the response",
         "Give the client a longer timeout than the parameter `timeout`.")  # fmt: skip
def left_early() -> Facts:
    return Facts("the client disconnected before the response", "a closed connection", "a connection that stays open")


@refusal(Forbidden, "Header not allowed", "docs: CORS", "A page may not send this header",
         "Leave the header out, or send its value in the query or body; only browsers apply this rule.")  # fmt: skip
def header_not_allowed(*, header: str, allowed: str) -> Facts:
    detail = f"a page may not send the header {header}; allowed: {allowed}"
    return Facts(detail, f"{header} in Access-Control-Request-Headers", f"no headers but {allowed}")


@refusal(TooManyRequests, "Too many waits", "docs: Waits", "Too many requests wait for a condition",
         "Send the request again when one of them has ended.")  # fmt: skip
def too_many_waits(*, limit: int) -> Facts:
    detail = f"{limit} requests wait already; repeat the request when one has ended"
    return Facts(detail, f"{limit} waiting requests", f"fewer than {limit}", (), 1)


class WaitEnded(ServiceError, status=503):
    """Raised in a waiting request when the service stops or the namespace is dropped."""


@refusal(WaitEnded, "Service Unavailable", "docs: Waits", "The wait ended early", "Wait again.")
def ended_early() -> Facts:
    detail = "the wait ended early: the service is stopping, or the namespace was dropped"
    return Facts(detail, "a stopping service, or a dropped namespace", "a service that keeps running")


_RULE = "gaps: Limits"
_TOO_LARGE = "Headers too large"


@refusal(BadRequest, "Duplicate header", rule=_RULE, title="A header occurs twice", next_step="Send {header} once.")
def duplicate_header(*, header: str) -> Facts:
    return Facts(f"{header}: the header occurs more than once", f"several {header} headers", f"one {header} header")


@refusal(HeadTooLarge, _TOO_LARGE, _RULE, "The headers are too large", "Send fewer or shorter headers and cookies.")
def head_too_large(*, part: str, limit: int) -> Facts:
    return Facts(f"{part} exceed {limit} bytes", f"{part} over {limit} bytes", f"at most {limit} bytes")


@refusal(HeadTooLarge, _TOO_LARGE, _RULE, "The request has too many headers", "Send at most {limit} headers.")
def too_many_headers(*, count: int, limit: int) -> Facts:
    return Facts(
        f"the request has {count} headers; the limit is {limit}", f"{count} headers", f"at most {limit} headers"
    )


@refusal(RequestTimeout, "Request timeout", _RULE, "The request did not arrive in time",
         "Send the body faster, or raise --request-timeout of `extcli serve`.")  # fmt: skip
def request_timeout(*, seconds: str) -> Facts:
    detail = f"the request did not arrive within {seconds} seconds"
    return Facts(detail, f"an incomplete request after {seconds} s", f"all bytes within {seconds} s, plus 1 s per KiB")

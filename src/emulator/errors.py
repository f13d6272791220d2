"""The service's exceptions (ruling W4). `wire/errors.py` makes the bodies of error replies from them."""

from __future__ import annotations

from collections.abc import Sequence


class ServiceError(Exception):
    """An error that is reported to the client.

    `reason` is a short fixed text for programs to compare. `detail` explains the error to a person. `others` holds
    further details if the body has several errors.
    """

    status = 500
    title = "Internal Service Error"
    retry_after: int | None = None
    """Seconds to wait before a retry; `None` if a retry does not help."""

    def __init__(self, reason: str, detail: str = "", *, others: Sequence[str] = ()) -> None:
        super().__init__(detail or reason)
        self.reason = reason
        self.detail = detail or reason
        self.others = tuple(others)

    @property
    def details(self) -> tuple[str, ...]:
        return (self.detail, *self.others)


class BadRequest(ServiceError):
    """The input is malformed or breaks a rule."""

    status = 400
    title = "Bad Request"


class Unauthorized(ServiceError):
    """The credential is missing, malformed, expired or not yet valid."""

    status = 401
    title = "Unauthorized"


class Forbidden(ServiceError):
    """The credential is valid, but its role or stage is not allowed."""

    status = 403
    title = "Forbidden"


class NotFound(ServiceError):
    """The path, or the thing that it names, does not exist."""

    status = 404
    title = "Not Found"


class MethodNotAllowed(ServiceError):
    """The path does not support the method."""

    status = 405
    title = "Method Not Allowed"


class RequestTimeout(ServiceError):
    """The request did not arrive in time."""

    status = 408
    title = "Request Timeout"


class TooLarge(ServiceError):
    """The body exceeds its route's limit (ruling W8)."""

    status = 413
    title = "Content Too Large"


class TooManyRequests(ServiceError):
    """A rate or count limit is exceeded."""

    status = 429
    title = "Too Many Requests"

    def __init__(self, reason: str, detail: str = "", *, retry_after: int | None = None) -> None:
        super().__init__(reason, detail)
        self.retry_after = retry_after


class HeadTooLarge(ServiceError):
    """The request line and headers exceed the limit."""

    status = 431
    title = "Request Header Fields Too Large"


class Unavailable(ServiceError):
    """Storage failed or is unreachable. The call may or may not have taken effect."""

    status = 503
    title = "Service Unavailable"
    retry_after = 1

    def __init__(self) -> None:
        super().__init__("Service Unavailable", "storage is unavailable; try again")


class ConfigurationError(Exception):
    """The configuration is invalid. The message is one line: the file, the key and what is wrong."""


class EngineError(Exception):
    """Storage failed or is unreachable. Engines raise it for driver errors; clients get `Unavailable`."""

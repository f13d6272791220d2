"""What can go wrong, in the service's words (ruling W4).

Rules and services raise these; nobody builds an error body.
"""

from __future__ import annotations

from collections.abc import Sequence


class ServiceError(Exception):
    """A refusal that a client is told about.

    `reason` is the short fixed text that clients compare with; `detail` says what happened and which limit
    was passed, for a person. Both sides of ruling W4's body are made of these two. `others` are further details, where
    a body has several faults.
    """

    status = 500
    title = "Internal Service Error"
    retry_after: int | None = None
    """Seconds after which the same call may fare better; `None` where waiting is no help."""

    def __init__(self, reason: str, detail: str = "", *, others: Sequence[str] = ()) -> None:
        super().__init__(detail or reason)
        self.reason = reason
        self.detail = detail or reason
        self.others = tuple(others)

    @property
    def details(self) -> tuple[str, ...]:
        """All that is wrong, in order."""
        return (self.detail, *self.others)


class BadRequest(ServiceError):
    """The input is unreadable or breaks a rule."""

    status = 400
    title = "Bad Request"


class Unauthorized(ServiceError):
    """The credential is missing, malformed, expired or not yet valid."""

    status = 401
    title = "Unauthorized"


class Forbidden(ServiceError):
    """The credential is fine, but its role or stage is not allowed here."""

    status = 403
    title = "Forbidden"


class NotFound(ServiceError):
    """No such path, or nothing is kept under that name."""

    status = 404
    title = "Not Found"


class MethodNotAllowed(ServiceError):
    """The path exists, with other methods."""

    status = 405
    title = "Method Not Allowed"


class RequestTimeout(ServiceError):
    """The request did not arrive in time."""

    status = 408
    title = "Request Timeout"


class TooLarge(ServiceError):
    """The body is over the limit of its route (ruling W8)."""

    status = 413
    title = "Content Too Large"


class TooManyRequests(ServiceError):
    """Not so many."""

    status = 429
    title = "Too Many Requests"

    def __init__(self, reason: str, detail: str = "", *, retry_after: int | None = None) -> None:
        super().__init__(reason, detail)
        self.retry_after = retry_after


class HeadTooLarge(ServiceError):
    """The request line and headers are over the limit."""

    status = 431
    title = "Request Header Fields Too Large"


class Unavailable(ServiceError):
    """Not now: storage fails or cannot be reached. What was not acknowledged may or may not have been done."""

    status = 503
    title = "Service Unavailable"
    retry_after = 1

    def __init__(self) -> None:
        super().__init__("Service Unavailable", "storage cannot do this for now; try again")


class ConfigurationError(Exception):
    """The service cannot start as it was told to. The message is one line: the file, the key and what is wrong."""


class EngineError(Exception):
    """Storage failed or cannot be reached. Engines wrap their driver's failures in it; clients see `Unavailable`."""

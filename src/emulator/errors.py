"""The service's exceptions (ruling W4). `wire/json_codec.py` encodes them as error bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

UNAUTHORIZED: Final = "User was unauthorized to access this resource"
"""The reason of every refused credential."""
POLICY_VIOLATION: Final = 1008
"""The close code of most refusals that close a connection (RFC 6455)."""


class Refused(NamedTuple):
    """The explanation of an error, in addition to the text of its rule. Apart from `code`, in output order."""

    code: str
    """The name of the declared refusal, such as `trivia.no_question`."""
    rule: str
    """The ruling, or the section of the documentation, that decides."""
    title: str
    held: str
    """What the caller had or sent."""
    needed: str
    next_step: str


class ServiceError(Exception):
    """An error that is reported to the client.

    `reason` is a short fixed text for programs to compare. `detail` explains the error to a person. `others` holds
    further details if the body has several errors.
    """

    status = 500
    title = "Internal Service Error"
    retry_after: int | None = None
    """Seconds to wait before a retry; `None` if a retry does not help."""
    close_code = POLICY_VIOLATION
    """The code of the close frame, if the error closes a connection."""
    refused: Refused | None = None
    """Set if it was made by a declared refusal (`emulator/refusals.py`)."""

    def __init_subclass__(cls, status: int | None = None, title: str = "") -> None:
        cls.status, cls.title = status or cls.status, title or cls.title

    def __init__(self, reason: str, detail: str = "", *, others: Sequence[str] = ()) -> None:
        super().__init__(detail or reason)
        self.reason = reason
        self.detail = detail or reason
        self.others = tuple(others)

    @property
    def details(self) -> tuple[str, ...]:
        return (self.detail, *self.others)


class BadRequest(ServiceError, status=400, title="Bad Request"):
    """The input is malformed or breaks a rule."""


class Unauthorized(ServiceError, status=401, title="Unauthorized"):
    """The credential is missing, malformed, expired or not yet valid."""


class Forbidden(ServiceError, status=403, title="Forbidden"):
    """The credential is valid, but its role or stage is not allowed."""


class NotFound(ServiceError, status=404, title="Not Found"):
    """The path, or the record that it names, does not exist."""


class MethodNotAllowed(ServiceError, status=405, title="Method Not Allowed"):
    """The path does not support the method."""


class Conflict(ServiceError, status=409, title="Conflict"):
    """The record exists already."""


class RequestTimeout(ServiceError, status=408, title="Request Timeout"):
    """The request did not arrive in time."""


class TooLarge(ServiceError, status=413, title="Content Too Large"):
    """The body exceeds its route's limit (ruling W8)."""


class TooManyRequests(ServiceError, status=429, title="Too Many Requests"):
    """A rate or count limit is exceeded."""

    def __init__(self, reason: str, detail: str = "", *, retry_after: int | None = None) -> None:
        super().__init__(reason, detail)
        self.retry_after = retry_after


class HeadTooLarge(ServiceError, status=431, title="Request Header Fields Too Large"):
    """The request line and headers exceed the limit."""


class Unavailable(ServiceError, status=503, title="Service Unavailable"):
    """Storage failed or is unreachable, and the call may or may not have taken effect. Or the service is starting."""

    retry_after = 1


class InternalError(ServiceError):
    """The service has a bug. Its log has the traceback."""


class ConfigurationError(Exception):
    """The configuration is invalid. The message is one line: the file, the key and the problem."""


class PortTaken(ConfigurationError):
    """Another program has the port."""

    def __init__(self, message: str, port: int) -> None:
        super().__init__(message)
        self.port = port


class EngineError(Exception):
    """Storage failed or is unreachable. Engines raise it for driver errors; clients get `Unavailable`."""


class ExportFailed(Exception):
    """The service has stopped, but its data could not be exported. The message is one line."""

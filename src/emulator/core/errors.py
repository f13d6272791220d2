"""The service's exceptions (ruling W4), and the declaration of refusals. `wire/json_codec.py` encodes error bodies.

A refusal is a function in `refusals.py` of a folder, with the text for clients and the text for `extcli explain` in one
place. Its parameters are the values in the text. It returns the detail, the caller's value and the required one; the
decorator has the constant parts. A call returns the error: `raise no_question(question=id)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from http import HTTPStatus
from typing import NamedTuple, ParamSpec

from emulator.contract.shell import quote_posix as quote

UNAUTHORIZED = "User was unauthorized to access this resource"
"""The reason of every refused credential."""
POLICY_VIOLATION = 1008
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


TITLES: Mapping[int, str] = {
    **{each.value: each.phrase for each in HTTPStatus},
    413: "Content Too Large",
    500: "Internal Service Error",
}
"""The titles of errors, by status."""


class ServiceError(Exception):
    """An error that is reported to the client.

    `reason` is a short fixed text for programs to compare. `detail` explains the error to a person.
    """

    status = 500
    title = TITLES[500]
    retry_after: int | None = None
    """Seconds to wait before a retry; `None` if a retry does not help."""
    more: tuple[tuple[bytes, bytes], ...] = ()
    """Headers that its response must have."""
    close_code = POLICY_VIOLATION
    """The code of the close frame, if the error closes a connection."""
    others: tuple[str, ...] = ()
    """Further details, if the body of the request has several errors."""
    refused: Refused | None = None
    """Set if it was made by a declared refusal (`refusal`)."""

    def __init_subclass__(cls, status: int | None = None) -> None:
        if status:
            cls.status, cls.title = status, TITLES[status]

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason
        self.detail = detail or reason

    @property
    def details(self) -> tuple[str, ...]:
        return (self.detail, *self.others)


class BadRequest(ServiceError, status=400):
    """The input is malformed or breaks a rule."""


class Unauthorized(ServiceError, status=401):
    """The credential is missing, malformed, expired or not yet valid."""


class Forbidden(ServiceError, status=403):
    """The credential is valid, but its role or stage is not allowed."""


class NotFound(ServiceError, status=404):
    """The path, or the record that it names, does not exist."""


class MethodNotAllowed(ServiceError, status=405):
    """The path does not support the method. `more` has the header `Allow`."""

    more = ((b"allow", b"GET, HEAD"),)


class Conflict(ServiceError, status=409):
    """The record exists already."""


class RequestTimeout(ServiceError, status=408):
    """The request did not arrive in time."""


class TooLarge(ServiceError, status=413):
    """The body exceeds its route's limit (ruling W8)."""


class TooManyRequests(ServiceError, status=429):
    """A rate or count limit is exceeded."""


class HeadTooLarge(ServiceError, status=431):
    """The request line and headers exceed the limit."""


class Unavailable(ServiceError, status=503):
    """Storage failed or is unreachable, and the call may or may not have taken effect. Or the service is starting."""

    retry_after = 1


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


@contextmanager
def temporary_file_errors() -> Iterator[None]:
    """Turn errors of a temporary file into `EngineError`."""
    try:
        yield
    except OSError as error:
        raise EngineError(f"cannot use a temporary file: {error.strerror or type(error).__name__}") from error


P = ParamSpec("P")

OF_INPUT = "of input"
"""Stands for the rule about the input of the endpoint or action that refuses."""
OF_ROLES = "of roles"
"""Stands for the rule about its roles."""


class Facts(NamedTuple):
    """The texts of one refusal that depend on the request: detail, the actual value, and the required value."""

    detail: str
    """What was found, and what is allowed: the text in the body of the error."""
    held: str
    """What the caller had or sent."""
    needed: str
    others: Sequence[str] = ()
    """Further details, if the body of the request has several errors."""
    retry_after: int | None = None
    """Seconds to wait before a retry, if that depends on the case."""
    close_code: int = POLICY_VIOLATION
    """The code of the close frame, if the refusal closes a connection."""


class RefusalTexts(NamedTuple):
    """The texts of a refusal that do not depend on the request."""

    error: type[ServiceError]
    reason: str
    """May contain parameters of the refusal, such as `{field}`."""
    rule: str
    """The id of a rule, `OF_INPUT` or `OF_ROLES`."""
    title: str
    next_step: str
    """May contain parameters of the refusal, such as `{question}`. In a command, they are quoted for a shell."""
    facts: Callable[..., Facts]


REFUSALS: dict[str, RefusalTexts] = {}
"""All declared refusals by code. A module declares its own when it is imported."""


def refusal(
    error: type[ServiceError], reason: str, rule: str, title: str, next_step: str
) -> Callable[[Callable[P, Facts]], Callable[P, ServiceError]]:
    """Declare a refusal. Its code names its feature or folder, and the function: `trivia.no_question`."""

    def declare(facts: Callable[P, Facts]) -> Callable[P, ServiceError]:
        code = f"{_feature_or_folder(facts.__module__)}.{facts.__name__}"
        REFUSALS[code] = RefusalTexts(error, reason, rule, title, next_step, facts)

        @wraps(facts)
        def refuse(*args: P.args, **kwargs: P.kwargs) -> ServiceError:
            found = facts(*args, **kwargs)
            values = {**dict(zip(facts.__code__.co_varnames, args, strict=False)), **kwargs}
            made = error(reason.format_map(values), found.detail)
            made.others, made.close_code = tuple(found.others), found.close_code
            if found.retry_after is not None:
                made.retry_after = found.retry_after
            made.refused = Refused(code, rule, title, found.held, found.needed, _filled_step(next_step, values))
            return made

        return refuse

    return declare


def _feature_or_folder(module: str) -> str:
    """Return the feature that a module belongs to, otherwise its folder or its own name."""
    parts = module.removesuffix(".refusals").removesuffix(".errors").split(".")
    return parts[2] if parts[1:2] in (["features"], ["control"]) else parts[-1]


def _filled_step(next_step: str, values: Mapping[str, object]) -> str:
    """Return a next step with its values filled in.

    Values inside commands (between backticks) are quoted for a shell.
    """
    quoted = {name: quote(str(value)) for name, value in values.items()}
    parts = enumerate(next_step.split("`"))
    return "`".join(part.format_map(quoted if at % 2 else values) for at, part in parts)


@refusal(
    Unavailable,
    "Service Unavailable",
    "docs: Storage",
    "The storage has failed",
    "Check the disk or Redis, then repeat the call; `extcli doctor` looks for the cause.",
)
def storage_failed() -> Facts:
    return Facts("storage is unavailable; try again", "a storage failure", "working storage")


@refusal(Unavailable, "Service Unavailable", "docs: Restarts", "The service is stopping", "Wait for it: `extcli wait`.")
def stopping() -> Facts:
    return Facts("the service is stopping", "a stopping service", "a running service")


@refusal(
    ServiceError,
    "Internal Service Error",
    "docs: Storage",
    "The service has a bug, or something outside it failed",
    "Find the request id in the service's log, and report the traceback.",
)
def internal_error() -> Facts:
    return Facts("an internal error prevented processing", "an unexpected failure", "a call without a failure")

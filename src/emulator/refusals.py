"""Declares refusals: each has the text for clients and the text for `extcli explain` in one place.

A refusal is a function in `refusals.py` of a folder. Its parameters are the values in the text. It returns
the detail, the caller's value and the required one; the decorator has the constant parts. A call returns the error:
`raise no_question(question=id)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from shlex import quote
from typing import Final, NamedTuple, ParamSpec

from emulator.errors import POLICY_VIOLATION, InternalError, Refused, ServiceError, Unavailable

P = ParamSpec("P")

OF_INPUT: Final = "of input"
"""Stands for the rule about the input of the endpoint or action that refuses."""
OF_ROLES: Final = "of roles"
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


class Declared(NamedTuple):
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


REFUSALS: Final[dict[str, Declared]] = {}
"""All declared refusals by code. A module declares its own when it is imported."""


def refusal(
    error: type[ServiceError], reason: str, rule: str, title: str, next_step: str
) -> Callable[[Callable[P, Facts]], Callable[P, ServiceError]]:
    """Declare a refusal. Its code is the name of its folder and of the function: `trivia.no_question`."""

    def declare(facts: Callable[P, Facts]) -> Callable[P, ServiceError]:
        code = f"{facts.__module__.removesuffix('.refusals').rpartition('.')[2]}.{facts.__name__}"
        REFUSALS[code] = Declared(error, reason, rule, title, next_step, facts)

        @wraps(facts)
        def refuse(*args: P.args, **kwargs: P.kwargs) -> ServiceError:
            found = facts(*args, **kwargs)
            values = {**dict(zip(facts.__code__.co_varnames, args, strict=False)), **kwargs}
            made = error(reason.format_map(values), found.detail)
            made.others, made.close_code = tuple(found.others), found.close_code
            made.retry_after = made.retry_after if found.retry_after is None else found.retry_after
            made.refused = Refused(code, rule, title, found.held, found.needed, _filled_step(next_step, values))
            return made

        return refuse

    return declare


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
    "The storage does not answer",
    "Check the disk or Redis, then repeat the call; `extcli doctor` looks for the cause.",
)
def storage_failed() -> Facts:
    return Facts("storage is unavailable; try again", "storage that fails", "storage that answers")


@refusal(
    Unavailable, "Service Unavailable", "docs: Restarts", "The service stops", "Wait until it is ready: `extcli wait`."
)
def stopping() -> Facts:
    return Facts("the service stops", "a service that stops", "a running service")


@refusal(
    InternalError,
    "Internal Service Error",
    "docs: Storage",
    "The service has a bug, or something outside it failed",
    "Find the request id in the service's log, and report the traceback.",
)
def internal_error() -> Facts:
    return Facts("an internal error prevented processing", "an unexpected failure", "a call without a failure")

"""Errors that end a command: what happened, why, what to do, and the exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from httpx import Response

LOG_HAS_DETAILS = "the service's log has details"

_HTML = "an HTML page"


class ExitCode(IntEnum):
    """The exit codes of extcli."""

    DONE = 0
    BUG = 1
    USAGE = 2
    """Wrong usage or configuration, or a question answered with no."""
    UNREACHABLE = 3
    """No connection, or no response in time."""
    REFUSED = 4
    """The service answered with 4xx."""
    SERVICE_FAILED = 5
    """The service answered with 5xx, or with something that no extension service sends."""
    EXPECTATION_NOT_MET = 7
    INTERRUPTED = 130


EXIT_CODE_MEANINGS = {
    ExitCode.DONE: "Success",
    ExitCode.BUG: "A bug in `extcli`, please report it; or `serve` could not write the file of --export-on-exit",
    ExitCode.USAGE: "Wrong usage or configuration, a declined confirmation, or an output that cannot be written",
    ExitCode.UNREACHABLE: "The service is unreachable, or does not answer before `--timeout`",
    ExitCode.REFUSED: "The service refuses the request (4xx), or some lines of a file",
    ExitCode.SERVICE_FAILED: "The service fails (5xx)",
    ExitCode.EXPECTATION_NOT_MET: (
        "The result is negative: a condition is not met (`wait`, `expect`), a check fails (`doctor`, `conform`), "
        "snapshots or a simulation differ, data is damaged, or a service, code, event or key is missing"
    ),
    ExitCode.INTERRUPTED: "Interrupted",
}
"""What each exit code means, for people."""


class CliError(Exception):
    """Ends a command with `exit_code`."""

    exit_code = ExitCode.BUG

    def __init__(
        self,
        what: str,
        *,
        why: str = "",
        fix: str = "",
        details: Sequence[str] = (),
        facts: dict[str, Any] | None = None,
    ) -> None:
        """`details` are further lines for people, and `facts` further members of the error as JSON."""
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix
        self.details = details
        self.facts = facts or {}

    def lines(self) -> list[str]:
        """Return the error's lines: what happened, details, why, and what to do. Empty lines are left out."""
        return [f"extcli: {self.what}", *(f"  {line}" for line in (*self.details, self.why, self.fix) if line)]

    def as_json(self) -> dict[str, Any]:
        """Return the error as JSON, for `-o json`."""
        facts = {"exit_code": self.exit_code, "what": self.what, "why": self.why, "fix": self.fix}
        return {"error": {name: value for name, value in facts.items() if value} | self.facts}


class RequestWithheld(Exception):
    """Ends the command after --dry-run has printed a request instead of sending it."""


class UsageError(CliError):
    """Wrong usage or configuration, found before anything was sent."""

    exit_code = ExitCode.USAGE


@contextmanager
def file_errors(action: str) -> Iterator[None]:
    """Turn an `OSError` in the block into the `UsageError` that `action`, such as `read hats.txt`, is not possible."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot {action}", why=error.strerror or "") from None


def refuse_both(one: object, other: object, names: str) -> None:
    """Raise `UsageError` if both of two options are given. `names` has both: `--rate and --burst`."""
    if one and other:
        raise UsageError(f"{names} exclude each other")


class Unreachable(CliError):
    """No connection, or no response in time."""

    exit_code = ExitCode.UNREACHABLE


class ExpectationFailed(CliError):
    """The command worked, but an expected condition was not met."""

    exit_code = ExitCode.EXPECTATION_NOT_MET


class ErrorResponse(CliError):
    """The service answered with an error; raised as `Refused` or `ServerError`."""

    request_id = ""
    """Finds the request in the service's log, if the service says it."""
    is_explained = False
    """Whether `extcli explain` knows more: the service is an emulator in sandbox."""
    hint = ""
    """What the service says that the caller probably meant."""
    code = ""
    """The name of the refusal, if the service is an emulator in sandbox, and this is not a reply on a socket."""
    retry_after: str | None = None
    """The header `Retry-After` of the response."""
    place: Sequence[str] = ()
    """The options that named the service, which `extcli explain` needs as well."""

    def __init__(self, request: str, status: int, body: bytes, *, request_id: str = "", fix: str = "") -> None:
        self.status = status
        self.request_id = request_id
        self.body = body
        outcome = "was refused" if status < 500 else "failed in the service"
        response = status_line(status)
        why = reason_of(body).removeprefix(f"{response[4:]}: ")
        super().__init__(f"{request} {outcome}: {response}", why=why, fix=fix)

    def lines(self) -> list[str]:
        lines = [*super().lines(), *([f"  hint: {self.hint}"] if self.hint else [])]
        if not self.is_explained or not self.request_id:
            return lines
        from emulator.contract.shell import join_words

        return [*lines, f"  {join_words(['extcli', 'explain', self.request_id, *self.place])}"]

    def as_json(self) -> dict[str, Any]:
        document = super().as_json()
        document["error"] |= {"status": self.status, "body": _decoded_body(self.body)}
        known = {"request_id": self.request_id, "hint": self.hint}
        document["error"] |= {name: value for name, value in known.items() if value}
        return document


class Refused(ErrorResponse):
    """The service refused the request with 4xx, or with a redirect, which extcli never follows."""

    exit_code = ExitCode.REFUSED


class ServerError(ErrorResponse):
    """The service failed with 5xx. `request_id` finds the request in the service's log."""

    exit_code = ExitCode.SERVICE_FAILED

    def __init__(self, request: str, status: int, body: bytes, *, request_id: str = "", fix: str = "") -> None:
        log = f"{LOG_HAS_DETAILS} under request id {shortened(request_id)}" if request_id else LOG_HAS_DETAILS
        advice = "" if error_member(body, "reason") == "Fault" else f"{log}; the request was valid"
        super().__init__(request, status, body, request_id=request_id, fix=fix or advice)
        if self.why == _HTML and not fix:
            self.fix = "a proxy or another web server answered: check --url (EXTCLI_URL), and that the service runs"


class UnexpectedResponse(ServerError):
    """A success status with a body that no extension service sends."""

    def __init__(self, response: Response, problem: str = "") -> None:
        """`problem` says which field of the response is wrong, what it must be, and what it is."""
        request = f"{response.request.method} {response.request.url.path}"
        content_type = shortened(response.headers.get("content-type", "no content type"), 80)
        CliError.__init__(
            self,
            f"{request} returned an unexpected response",
            why=f"status {response.status_code}, {content_type}" + (f": {problem}" if problem else ""),
            fix="check that --url (EXTCLI_URL) is an extension service; `extcli api` prints any response unchanged",
        )
        self.status = response.status_code
        self.request_id = response.headers.get("x-request-id", "")
        self.body = b""


class TooLarge(CliError):
    """The response is larger than any that an extension service sends."""

    exit_code = ExitCode.SERVICE_FAILED

    def __init__(self, what: str, limit: int) -> None:
        fix = "check that --url (EXTCLI_URL) is an extension service"
        super().__init__(f"{what} is too large", why=f"over {limit:,} bytes", fix=fix)


def status_line(status: int) -> str:
    """Return the status with its phrase, as RFC 9110 has it and the service says it: `403 Forbidden`."""
    from http import HTTPStatus

    phrase = HTTPStatus(status).phrase if status in HTTPStatus.__members__.values() else ""
    return f"{status} {_NEWER_PHRASES.get(status, phrase)}".rstrip()


_NEWER_PHRASES: Final = {413: "Content Too Large", 422: "Unprocessable Content"}
"""Phrases for which Python before 3.13 has older ones."""


def reason_of(body: bytes) -> str:
    """Return the error message of a response body on one line, from any of the formats in ruling W4, or from plain
    text.
    """
    import json

    document = _decoded_body(body)
    if isinstance(document, str) and document.lstrip()[:14].lower().startswith(("<!doctype html", "<html")):
        return _HTML
    if not isinstance(document, Mapping):
        return shortened(document if isinstance(document, str) else json.dumps(document))
    words = [text_or_empty(document.get("reason")), text_or_empty(document.get("info"))]
    errors = document.get("errors")
    for entry in errors if isinstance(errors, list) else []:
        if isinstance(entry, Mapping):
            words.append(text_or_empty(entry.get("detail")) or text_or_empty(entry.get("title")))
    distinct = dict.fromkeys(filter(None, words))
    return shortened(": ".join(distinct) or body.decode(errors="replace"))


def error_member(body: bytes, name: str) -> str:
    """Return `reason` or `info` of an error body (ruling W4); empty if it has none."""
    document = _decoded_body(body)
    return text_or_empty(document.get(name)) if isinstance(document, Mapping) else ""


FIX_403: Final = "this identity may not send this request: use another token, or another role with --as"
"""What to do about a 403 to a call with credentials."""


def is_from_service(body: bytes) -> bool:
    """Return whether a body is an error in one of the formats of ruling W4, unlike a proxy's error page."""
    document = _decoded_body(body)
    return isinstance(document, Mapping) and (
        isinstance(document.get("errors"), list) or isinstance(document.get("reason"), str)
    )


def count_text(count: int, what: str) -> str:
    """Return a number of things: `1 code`, `1,000 codes`."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def shortened(text: str, limit: int = 300) -> str:
    """Return the text on one line, without control characters, cut to `limit` characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _decoded_body(body: bytes) -> Any:
    from extcli import bounded_json

    return bounded_json.decoded_or_text(body)


def text_or_empty(value: object) -> str:
    """Return a value of JSON if it is a text, otherwise an empty one."""
    return value if isinstance(value, str) else ""

"""What can go wrong for the person at the terminal: what happened, why, and what to do, with an exit code each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

LOG = "the service's own log says more"


class CliError(Exception):
    """Ends a command. `main` prints it and exits with `exit_code` (`operations.md`, exit codes)."""

    exit_code = 1

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix

    def lines(self) -> list[str]:
        """One line each: what, why, what to do; those that have nothing to say are left out."""
        return [f"extcli: {self.what}", *(f"  {line}" for line in (self.why, self.fix) if line)]

    def as_json(self) -> dict[str, Any]:
        """The same facts for a program."""
        facts = {"exit_code": self.exit_code, "what": self.what, "why": self.why, "fix": self.fix}
        return {"error": {name: value for name, value in facts.items() if value}}


class UsageError(CliError):
    """Wrong usage or configuration, found before anything was sent."""

    exit_code = 2


class Unreachable(CliError):
    """Nobody answered, or not in time."""

    exit_code = 3


class ExpectationFailed(CliError):
    """What was waited for did not come about."""

    exit_code = 7


class ErrorAnswer(CliError):
    """The service answered, with an error; raised as `Refused` or `ServerError`."""

    def __init__(self, request: str, status: int, body: bytes, *, fix: str = "") -> None:
        self.status = status
        self.body = body
        outcome = "was refused" if status < 500 else "failed in the service"
        answer = status_line(status)
        why = reason_of(body).removeprefix(f"{answer[4:]}: ")
        super().__init__(f"{request} {outcome}: {answer}", why=why, fix=fix)

    def as_json(self) -> dict[str, Any]:
        document = super().as_json()
        document["error"] |= {"status": self.status, "body": _readable(self.body)}
        return document


class Refused(ErrorAnswer):
    """4xx, and the 3xx that would lead elsewhere."""

    exit_code = 4


class ServerError(ErrorAnswer):
    """5xx. `request_id` is what the answer calls the request, as the service's log does."""

    exit_code = 5

    def __init__(self, request: str, status: int, body: bytes, *, request_id: str = "", fix: str = "") -> None:
        log = f"{LOG}, under {shortened(request_id)}" if request_id else LOG
        super().__init__(request, status, body, fix=fix or f"{log}; nothing is wrong on your side")


class UnexpectedAnswer(ServerError):
    """Success, with a body that no extension service sends."""

    def __init__(self, answer: Answered) -> None:
        request = f"{answer.request.method} {answer.request.url.path}"
        CliError.__init__(
            self,
            f"{request} was answered with something else than expected",
            why=f"status {answer.status_code}, {answer.headers.get('content-type', 'no content type')}",
            fix="is --url (EXTCLI_URL) an extension service? `extcli api` prints any answer as it is",
        )
        self.status = answer.status_code
        self.body = b""


class Answered(Protocol):
    """What `UnexpectedAnswer` reads of an answer."""

    @property
    def request(self) -> Any: ...
    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


def status_line(status: int) -> str:
    """`403 Forbidden`."""
    from http import HTTPStatus

    return f"{status} {HTTPStatus(status).phrase}" if status in HTTPStatus.__members__.values() else str(status)


def reason_of(body: bytes) -> str:
    """The service's own words on one line, whichever of its error shapes the body has (ruling W4), or plain text."""
    document = _readable(body)
    if isinstance(document, str) and document.lstrip()[:14].lower().startswith(("<!doctype html", "<html")):
        return "an HTML page"
    if not isinstance(document, Mapping):
        return shortened(document if isinstance(document, str) else json.dumps(document))
    words = [_text(document.get("reason")), _text(document.get("info"))]
    errors = document.get("errors")
    if isinstance(errors, list):
        for entry in errors:
            if isinstance(entry, Mapping):
                words += [_text(entry.get("detail")) or _text(entry.get("title"))]
    distinct = [word for index, word in enumerate(words) if word and word not in words[:index]]
    return shortened(": ".join(distinct) if distinct else body.decode(errors="replace"))


def is_from_service(body: bytes) -> bool:
    """Whether an error's body has a shape that extension services send (ruling W4): a proxy's page has not."""
    document = _readable(body)
    return isinstance(document, Mapping) and (
        isinstance(document.get("errors"), list) or isinstance(document.get("reason"), str)
    )


def shortened(text: str, limit: int = 300) -> str:
    """One line of at most `limit` characters, without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _readable(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

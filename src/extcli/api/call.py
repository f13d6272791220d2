"""One call to the service: the request, what a refusal means, and when to repeat it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from random import uniform
from typing import TYPE_CHECKING, Any, Final, TypeVar

from emulator.contract.names import CODE_HEADER, HINT_HEADER, MARK_HEADER
from extcli import clock
from extcli.api.masking import shown_url
from extcli.errors import FIX_403, CliError, ErrorResponse, ExitCode, Refused, ServerError, Unreachable, UsageError

if TYPE_CHECKING:
    from httpx import Response

T = TypeVar("T")

SERVICE = "/v1/e/"
CONTROL = "/_emulator/"
NAMESPACES = "/_ns"
_UNRECORDED_PATHS = ("/_emulator/explain", "/_emulator/journal")
"""Paths that the journal does not record."""

RATE_LIMITED: Final = 429
"""The request was not applied, so sending it again is always harmless."""
UNAVAILABLE: Final = 503
"""The request may have been applied."""
SHORTEST_PAUSE: Final = 0.1
"""The least seconds before a request is sent again, whatever the service says. A part of it is random."""
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 8.0
"""Seconds before the first and the latest repetitions, if the service does not say when."""
_LONGEST_OUTAGE: Final = 120.0
"""Seconds after which a lost connection is given up."""


class Streamed(Iterable[bytes]):
    """A request body that is produced while it is sent. Each iteration starts again, for repeated requests."""

    length: int | None = None
    """In bytes; `None` if unknown."""


Body = bytes | Streamed


@dataclass(frozen=True, slots=True)
class Call:
    """One request, without credentials."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Body | None = None

    def __str__(self) -> str:
        return f"{self.method} {shown_url(self.path)}"


def encoded(value: object) -> bytes:
    """Return compact UTF-8 JSON. Raises `UsageError` for an argument that was not UTF-8."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise UsageError("an argument is not UTF-8 text") from None


def vote_cast(value: int, *, poll: str, count: int | None = None) -> Call:
    """Return the call `POST vote`."""
    return _write_call("vote", poll, encoded({"value": value} | ({} if count is None else {"count": count})))


def answer_submission(key: str, *, ranking: str) -> Call:
    """Return the call `POST rank`."""
    return _write_call("rank", ranking, encoded({"key": key}))


def buffer_addition(blob: bytes, *, buffer: str) -> Call:
    """Return the call `POST accumulate`. `blob` is JSON, sent unchanged."""
    return _write_call("accumulate", buffer, blob)


def _write_call(name: str, id: str, body: bytes) -> Call:
    return Call("POST", f"{SERVICE}{name}", {"id": nonempty_id(id)}, body)


def nonempty_id(id: str) -> str:
    """Return the id of a poll, ranking, buffer or JSON store. Raises `UsageError` for an empty one."""
    if not id:
        raise UsageError("the id is empty", fix="is a shell variable unset? Without an id, the service uses `default`")
    return id


# Refusals


def is_expired(response: Response) -> bool:
    """Return whether a sandbox refused a token as expired. Other services do not say what is wrong with one."""
    return response.headers.get(CODE_HEADER) in ("auth.expired", "auth.expired_by_moved_clock")


def error_of(call: Call, response: Response, advice: str = "", place: Sequence[str] = ()) -> ErrorResponse:
    """Return the error for a response with status 300 or above.

    `advice` says what to do if the credentials are refused; empty for a call without any. `place` are the options that
    name the service.
    """
    status, fields = response.status_code, response.headers
    kind: type[ErrorResponse] = ServerError if status >= 500 else Refused
    fix = "" if kind is ServerError else _advice(call, response, advice)
    error = kind(str(call), status, response.content, request_id=fields.get("x-request-id", ""), fix=fix)
    error.retry_after, error.place = fields.get("retry-after"), place
    if kind is Refused:
        error.hint, error.code = fields.get(HINT_HEADER, ""), fields.get(CODE_HEADER, "")
        error.is_explained = MARK_HEADER in fields and not call.path.startswith(_UNRECORDED_PATHS)
    return error


def _advice(call: Call, response: Response, of_credentials: str) -> str:
    status, fields = response.status_code, response.headers
    if status < 400:
        return f"it redirects to {fields.get('location', 'nowhere')}: check --url (EXTCLI_URL)"
    if status == 401:
        return of_credentials or "this call needs credentials"
    if status == 403:
        unsigned = "this call carries no credentials: check the address, or the service's settings"
        return FIX_403 if of_credentials else unsigned
    if status in (405, 411) and call.method == "GET" and call.body is not None:
        return "this service does not accept GET with a body: use --post or EXTCLI_BROADCAST_METHOD=POST"
    if status == 404 and call.path.startswith(CONTROL) and MARK_HEADER not in fields:
        return "only a sandbox emulator has this path: check --url (EXTCLI_URL)"
    if status == 404 and not fields.get("content-type", "").startswith("application/json"):
        return "check that --url (EXTCLI_URL) is an extension service"
    if status == RATE_LIMITED:
        after = retry_after(fields.get("retry-after"))
        return "retry later, at a lower rate" if after is None else f"retry in {after:.0f} s, at a lower rate"
    return "add --channel ID" if fields.get(CODE_HEADER) == "callers.no_channel" else ""


# Repetition: one policy for single commands, bulk runs, simulations and probes


def retry_after(header: str | None) -> float | None:
    """Return the seconds that `Retry-After` asks for, a number or an HTTP date; `None` if it is absent or invalid."""
    text = (header or "").strip()
    if re.fullmatch(r"[0-9]{1,9}", text):
        return float(text)
    with suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - clock.now() / 1000)
    return None


def asks_to_wait(status: int, header: str | None) -> bool:
    """Return whether a response asks to send the request again later, by its status and its `Retry-After`."""
    return status == RATE_LIMITED or (status == UNAVAILABLE and retry_after(header) is not None)


def pause(header: str | None, attempts: int = 0) -> float:
    """Return the seconds to wait before a request is sent again, at least about `SHORTEST_PAUSE`, with jitter.

    Without a usable `Retry-After`, the wait doubles with each earlier repetition, up to 8 seconds.
    """
    asked = retry_after(header)
    if asked is None:
        return min(_FIRST_PAUSE * 2.0 ** min(attempts, 16), _LONGEST_PAUSE) * uniform(0.75, 1.25)
    return max(asked, SHORTEST_PAUSE) + uniform(0, SHORTEST_PAUSE)


class Deadline:
    """When to stop repeating: `seconds` after the first refusal since the latest success."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: float | None = None
        self._waits = 0

    def reset(self) -> None:
        """Record a success."""
        self._ends = None

    def allows(self, pause: float) -> bool:
        """Return whether a request may be sent again after this pause, in seconds. The first call starts the time."""
        now = clock.elapsed()
        if self._ends is None:
            self._ends = now + self._seconds
        return now + pause <= self._ends

    def wait(self, header: str | None) -> bool:
        """Wait before a request is sent again; return False, without a wait, if that would be too late."""
        seconds = pause(header, self._waits)
        if not self.allows(seconds):
            return False
        clock.sleep(seconds)
        self._waits += 1
        return True


class Outage:
    """Waits for a lost connection to come back: reports the loss, and gives up after two minutes or at a deadline."""

    def __init__(self, report: Callable[[str], None], until: float) -> None:
        """`until` is the deadline, a time of `clock.elapsed`."""
        self._report = report
        self._until = until
        self.since: float | None = None
        """When the connection was lost, by `clock.elapsed`; `None` while there is one."""
        self._deadline = Deadline(0)

    def wait(self, error: CliError) -> bool:
        """Wait before the next attempt to connect; return False, without a wait, if none may help or is in time."""
        if error.exit_code not in (ExitCode.UNREACHABLE, ExitCode.SERVICE_FAILED):
            return False
        if self.since is None:
            self.since = clock.elapsed()
            self._deadline = Deadline(min(_LONGEST_OUTAGE, self._until - self.since))
            reason = f" ({error.why})" if error.why else ""
            self._report(f"lost: {error.what}{reason}; trying again")
        return self._deadline.wait(None)

    def end(self) -> float:
        """Record that the connection is back, or given up. Returns how many seconds there was none."""
        seconds, self.since = clock.elapsed() - (self.since or 0.0), None
        return seconds


def is_retryable(error: CliError) -> bool:
    """Return whether a request may succeed later: after 429, 5xx or no response."""
    is_limited = isinstance(error, Refused) and error.status == RATE_LIMITED
    return is_limited or isinstance(error, (ServerError, Unreachable))


def asks_to_retry(error: CliError) -> bool:
    """Return whether the service asked to send a request again later."""
    return isinstance(error, ErrorResponse) and asks_to_wait(error.status, error.retry_after)


def retry(call: Callable[[], T], seconds: float, repeats: Callable[[CliError], bool] = is_retryable) -> T:
    """Make a call, and after an error that `repeats` accepts, again for `seconds`; then raise the last error.

    `Retry-After` is kept: if it asks for more time than is left, the error is raised at once.
    """
    deadline = Deadline(seconds)
    while True:
        try:
            return call()
        except CliError as error:
            after = error.retry_after if isinstance(error, ErrorResponse) else None
            if not repeats(error) or not deadline.wait(after):
                raise

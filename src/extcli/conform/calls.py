"""Makes HTTP calls as one caller, and returns every response, whatever its status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partialmethod
from typing import Any, Protocol
from urllib.parse import urlencode

from extcli import bounded_json
from extcli.api.call import SERVICE, encoded
from extcli.api.http import PROBE
from extcli.api.masking import SENDING
from extcli.api.retry import RATE_LIMITED, Deadline
from extcli.conform.rule import Differs, Rule, shown
from extcli.conform.target import Target
from extcli.errors import TooLarge

HEADERS = ("content-type", "retry-after")
"""The headers of a response that rules are about."""
CORS_HEADERS = (
    "access-control-allow-origin",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-expose-headers",
)
"""The headers of a response to a page, which sends `Origin`."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request with its response, or one socket frame."""

    caller: str
    request: str
    """`POST vote?id=x`, or `set state`."""
    body: Any
    """The decoded body of the request; `None` without one."""
    status: int
    """0 for an update of a socket."""
    answer: Any
    """The decoded body, or its text."""
    headers: Mapping[str, str]
    request_id: str


READS = ("GET", "HEAD", "OPTIONS")
EXTENSION_WIDE = ("codes", "extension_", "config/extension")
"""The beginnings of paths to data of the whole extension. Such data is removed only if the probe certainly wrote it."""
NOTHING: Any = object()
_LONGEST_WAIT = 70.0
"""The longest `Retry-After` in seconds that a probe waits for, and the longest time of a response."""


class Probing(Protocol):
    """The probe for which calls are made."""

    target: Target
    rule: Rule
    exchanges: list[Exchange]

    def wrote(self, caller: Caller, path: str, query: Mapping[str, Any], body: Any) -> None: ...

    def note_socket_write(self, action: str, target: str, data: Mapping[str, Any]) -> None: ...


class Reply:
    """The response to a call."""

    def __init__(self, request: str, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.request = request
        self.status = status
        self.headers = headers
        self.content = content

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    @property
    def json(self) -> Any:
        """The decoded body. Raises `Differs` if it is not JSON."""
        try:
            return bounded_json.decoded(self.content)
        except ValueError:
            raise Differs(f"the body of {self.request}", "JSON", self.text[:200]) from None

    @property
    def data(self) -> Any:
        """The decoded body of a success. Raises `Differs` for any other status."""
        if self.status // 100 != 2:
            raise Differs(f"the status of {self.request}", 200, f"{self.status}: {self.text[:200]}")
        return self.json

    def check(self) -> None:
        """Raise `Differs` unless the response has a success status."""
        self.data  # noqa: B018


class Caller:
    """Makes calls with one identity, or without credentials."""

    def __init__(self, at: Probing, role: str, authorization: str | None) -> None:
        self._at = at
        self.role = role
        self.authorization = authorization

    @property
    def token(self) -> str:
        return (self.authorization or "").partition(" ")[2]

    def call(
        self,
        method: str,
        path: str,
        json: Any = NOTHING,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        repeat: bool = True,
        **query: Any,
    ) -> Reply:
        """Send a request and return its response, whatever its status. Raises `Unreachable`.

        A path without a leading slash is below `/v1/e/`. `json` is the body, or `content` its bytes; `query` adds
        parameters. After 429 the call is repeated when the service allows it, unless `repeat` is false.
        """
        self._check_may_write(method, path)
        body = content if json is NOTHING else encoded(json)
        try:
            reply = self._send(method, path + _query(path, query), body, headers, repeat=repeat)
        except BaseException:  # also Ctrl-C: the service may have taken the write
            self._note_write(method, path, query, body, is_certain=False)
            raise
        noted = (*HEADERS, *CORS_HEADERS) if "origin" in (headers or {}) else HEADERS
        self._at.exchanges.append(
            Exchange(
                caller=self.role,
                request=reply.request,
                body=None if body is None else bounded_json.decoded_or_text(body),
                status=reply.status,
                answer=bounded_json.decoded_or_text(reply.content),
                headers={name: reply.headers[name] for name in noted if name in reply.headers},
                request_id=reply.headers.get("x-request-id", ""),
            )
        )
        if reply.status < 300:
            self._note_write(method, path, query, body, is_certain=True)
        return reply

    get = partialmethod[Reply](call, "GET")
    post = partialmethod[Reply](call, "POST")
    put = partialmethod[Reply](call, "PUT")
    patch = partialmethod[Reply](call, "PATCH")
    delete = partialmethod[Reply](call, "DELETE")

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None, *, repeat: bool
    ) -> Reply:
        """Send a request; with `repeat`, again after 429 when the service allows it. `path` has its query."""
        target, url = self._at.target, path if path.startswith("/") else SERVICE + path
        deadline = Deadline(_LONGEST_WAIT)
        while True:
            target.pace.take(self.authorization or "")
            try:
                with target.http.stream(
                    method,
                    url,
                    body=body,
                    authorization=self.authorization,
                    extra=headers,
                    within=_LONGEST_WAIT,
                    limit=PROBE,
                ) as answer:
                    content = answer.read()
            except TooLarge:
                raise Differs(f"the body of {method} {path}", f"at most {PROBE:,} bytes", "more") from None
            is_final = answer.status_code != RATE_LIMITED or not repeat
            if is_final or not deadline.wait(answer.headers.get("retry-after")):
                return Reply(f"{method} {path}", answer.status_code, answer.headers, content)

    def _note_write(
        self, method: str, path: str, query: Mapping[str, Any], body: bytes | None, *, is_certain: bool
    ) -> None:
        if method not in READS and (is_certain or not path.startswith(EXTENSION_WIDE)):
            self._at.wrote(self, path, query, None if body is None else bounded_json.decoded_or_text(body))

    def _check_may_write(self, method: str, path: str) -> None:
        """Raise an error if a rule writes but is not declared as `writes`. Such rules run only with --writes."""
        name = path.partition("?")[0].strip("/").rpartition("/")[2]
        if not self._at.rule.writes and (method not in READS or name in SENDING):
            raise AssertionError(f"{self._at.rule.name} writes ({method} {path}), but is not marked `writes`")


def _query(path: str, query: Mapping[str, Any]) -> str:
    if not query:
        return ""
    return ("&" if "?" in path else "?") + urlencode(
        {name: value if isinstance(value, str) else shown(value) for name, value in query.items()}
    )

"""The service that a run of `conform` checks, the pace of its requests, and HTTP calls as one caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Any
from urllib.parse import parse_qs, urlencode

from extcli import bounded_json, clock
from extcli.api import tokens
from extcli.api.call import RATE_LIMITED, SERVICE, Call, Deadline, encoded
from extcli.api.http import PROBE, Http
from extcli.api.masking import SENDING_PATHS, masked
from extcli.conform.rule import Differs, Rule, Skipped, expect, expect_members, expect_status, shown
from extcli.errors import TooLarge
from extcli.reading import document_of

OMIT: Any = object()
"""Leaves a claim out of a token."""
PREFIX = "conform-"
"""Every id that a run makes up begins with it."""


@dataclass(slots=True)
class Target:
    """The service that a run of `conform` checks."""

    http: Http
    ws_url: str
    environment: str
    """`sandbox` or `production`."""
    is_emulator: bool
    """Whether it is `extcli serve`, so that a difference from a ruling is a failure."""
    has_control: bool
    """Whether its control API can be used."""
    client_id: str
    secret: bytes | None = field(repr=False)
    """Signs tokens. `None` if the service must issue them, or a token was given."""
    token: str | None = field(repr=False)
    """The only token, if one was given."""
    writes: bool
    whole_extension: bool
    """Whether probes may change what belongs to the whole extension."""
    clock_lead: int
    """How far the service's clock is ahead of this machine's, in ms."""
    unremoved: list[str] = field(default_factory=list)
    """The data that probes wrote and could not remove."""

    def now(self) -> int:
        """Return the service's time in Unix ms. It is wrong if the service's clock is frozen."""
        return clock.now() + self.clock_lead

    def reason_to_skip(self, rule: Rule) -> str:
        """Return why a rule cannot be checked on this service; empty if it can."""
        other = "production" if self.environment == "sandbox" else "sandbox"
        if other in rule.traits:
            return f"only in {other}"
        if "emulator" in rule.traits and not self.has_control:
            return "needs the control API of an emulator"
        if "writes" in rule.traits and not self.writes:
            return "changes data: allow with --writes"
        if "extension" in rule.traits and not self.whole_extension:
            return "replaces data of the whole extension: allow with --whole-extension"
        if self.token is not None:
            return self._reason_without_secret() if {"secret", "writes"} & rule.traits else ""
        needs_token = self.environment == "production" and "anonymous" not in rule.traits
        return self._reason_without_secret() if self.secret is None and (needs_token or "secret" in rule.traits) else ""

    def _reason_without_secret(self) -> str:
        """Return why a rule is skipped that needs other tokens than there are."""
        given = "" if self.token is None else f": the given token has the role {self._given_role}"
        return f"needs the extension's secret (EXTCLI_SECRET){given}"

    @property
    def _given_role(self) -> str:
        return str(tokens.claims_in(self.token or "").get("role", "viewer"))

    def token_of(self, claims: dict[str, Any], client_id: str) -> str:
        """Return a token with these claims: signed, given, or issued by the sandbox. `OMIT` leaves a claim out.

        Raises `Skipped` if the given token is of another role.
        """
        if self.token is not None:
            if claims.get("role") != self._given_role:
                raise Skipped(self._reason_without_secret())
            return self.token
        if self.secret is not None:
            claims = {"exp": (self.now() + tokens.LIFETIME) // 1000, **claims}
            return tokens.sign({name: value for name, value in claims.items() if value is not OMIT}, self.secret)
        answer = self.http.send("POST", f"{SERVICE}authtoken", body=encoded({"app_id": client_id, **claims}))
        return str(document_of(answer, {"token": str})["token"]) if answer.status_code == 200 else ""


REPORTED_HEADERS = ("content-type", "retry-after")
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


READ_METHODS = ("GET", "HEAD", "OPTIONS")
EXTENSION_WIDE = ("codes", "extension_", "config/extension")
"""The beginnings of paths to data of the whole extension. Such data is removed only if the probe certainly wrote it."""
NOTHING: Any = object()
ANY = 0
"""Stands for any status of a response."""
_LONGEST_WAIT = 70.0
"""The longest `Retry-After` in seconds that a probe waits for, and the longest time of a response."""
_LONGEST_SHOWN = 100
"""Characters of a body that a report shows."""


@dataclass(slots=True)
class Probing:
    """One probe of a rule: what it has sent, and what it has written."""

    target: Target
    rule: Rule
    exchanges: list[Exchange] = field(default_factory=list)
    """What was sent and answered, in order."""
    writes: list[tuple[Caller | None, str, str]] = field(default_factory=list)
    """The caller, name and id of each write that has succeeded, or may have; `None` for a socket's caller."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a call."""

    request: str
    """`POST vote?id=x`."""
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """The decoded body. Raises `Differs` if it is not JSON."""
        try:
            return bounded_json.decoded(self.content)
        except ValueError:
            raise Differs(f"the body of {self.request}", "JSON", self.start) from None

    def returns(self, body: object, what: str = "") -> None:
        """Raise `Differs` unless the response has this body. `what` says what it is: `the ranking`."""
        expect(what or f"the response to {self.request}", body, self.json)

    def has(self, **members: object) -> None:
        """Raise `Differs` unless the body has these members. It may have others."""
        expect_members(members, self.json, f"in the response to {self.request}")

    def has_header(self, name: str, value: str | None) -> None:
        """Raise `Differs` unless the header has this value; `None` is no header."""
        expect(f"{name} of {self.request} ({self.status})", value, self.headers.get(name))

    @property
    def start(self) -> str:
        """The beginning of the body, for reports."""
        return self.content[:200].decode(errors="replace")


class Caller:
    """Makes calls with one identity, or without credentials."""

    def __init__(self, at: Probing, role: str, authorization: str | None) -> None:
        self._at = at
        self.role = role
        self.authorization = authorization

    def call(
        self,
        method: str,
        path: str,
        body: Any = NOTHING,
        *,
        status: int = 200,
        case: str = "",
        headers: Mapping[str, str] | None = None,
        repeat: bool = True,
        **query: Any,
    ) -> Reply:
        """Send a request and return its response, which must have this status, and be JSON if the status is 200.

        With `status=ANY` the response may be a refusal. A path without a leading slash is below `/v1/e/`. `body` is
        sent as JSON; bytes are sent as they are. `case` says more about the call in reports: `with an expired token`.
        `query` adds parameters. After 429 the call is repeated when the service allows it, unless `repeat` is false.
        Raises `Differs` for another response, and `Unreachable`.
        """
        self._check_may_write(method, path)
        if not isinstance(body, bytes):
            body = None if body is NOTHING else encoded(body)
        url = f"{path}{'&' if '?' in path else '?'}{urlencode(query)}" if query else path
        try:
            reply = self._send(method, url, body, headers, repeat=repeat)
        except BaseException:  # also Ctrl-C: the service may have taken the write
            self._note_write(method, url, body, is_certain=False)
            raise
        noted = (*REPORTED_HEADERS, *CORS_HEADERS) if "origin" in (headers or {}) else REPORTED_HEADERS
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
            self._note_write(method, url, body, is_certain=True)
        if status != ANY:
            what = f"the status of {reply.request} as {self.role}"
            # Only an error is shown: what a success has may be secret, such as a PIN.
            text = "" if reply.status < 300 else reply.start
            expect_status(" ".join(filter(None, (what, _body_text(body), case))), status, reply.status, text)
        if status == 200:
            reply.json  # noqa: B018
        return reply

    get = partialmethod[Reply](call, "GET")
    post = partialmethod[Reply](call, "POST")
    put = partialmethod[Reply](call, "PUT")
    patch = partialmethod[Reply](call, "PATCH")
    delete = partialmethod[Reply](call, "DELETE")

    def refuses(self, path: str, *bodies: Any, method: str = "POST", **query: Any) -> None:
        """Raise `Differs` unless each of these bodies is refused with 400."""
        for body in bodies:
            self.call(method, path, body, status=400, **query)

    def user_info(self, status: int = 200, case: str = "") -> Any:
        """Return the body of `user_info`, after the same check as `call` makes; `None` if the caller is refused."""
        reply = self.get("user_info", status=status, case=case)
        return reply.json if status == 200 else None

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None, *, repeat: bool
    ) -> Reply:
        """Send a request; with `repeat`, again after 429 when the service allows it. `path` has its query."""
        target, url = self._at.target, path if path.startswith("/") else SERVICE + path
        deadline = Deadline(_LONGEST_WAIT)
        while True:
            try:
                with target.http.stream(
                    Call(method, url, body=body),
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

    def _note_write(self, method: str, url: str, body: bytes | None, *, is_certain: bool) -> None:
        if method in READ_METHODS or (not is_certain and url.startswith(EXTENSION_WIDE)):
            return
        path, _, query = url.partition("?")
        id = parse_qs(query).get("id", [""])[0] or bounded_json.members(body or b"").get("id") or "default"
        self._at.writes.append((self, path.strip("/").removeprefix("v1/e/"), str(id)))

    def _check_may_write(self, method: str, path: str) -> None:
        """Raise an error if a rule writes but is not declared as `writes`. Such rules run only with --writes."""
        name = path.partition("?")[0].strip("/").rpartition("/")[2]
        if "writes" not in self._at.rule.traits and (method not in READ_METHODS or name in SENDING_PATHS):
            raise AssertionError(f"{self._at.rule.name} writes ({method} {path}), but is not marked `writes`")


def _body_text(body: bytes | None) -> str:
    """Return what a body is, for reports: its start, without secrets, and the size of a long one."""
    if body is None:
        return ""
    text = shown(masked(bounded_json.decoded_or_text(body))).encode(errors="backslashreplace").decode()
    return f"with {text}" if len(text) <= _LONGEST_SHOWN else f"with {text[:_LONGEST_SHOWN]}… ({len(body):,} bytes)"

"""A rule: what must hold, what a probe of it needs, and the probe; and the target, which all probes of a run share."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from emulator.contract.names import Role
from extcli import clock
from extcli.api import tokens
from extcli.api.call import SERVICE, encoded
from extcli.api.http import Http
from extcli.reading.shapes import document_of

ROLES = tuple(map(str, Role))
Probe = Callable[[Any], None]
"""Takes a `Deployment`, and raises `Differs` if the rule is not kept there."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule that a service must keep, and the probe that checks it."""

    name: str
    """`W3.empty-list`: its source, and what the probe is about."""
    source: str
    """A ruling of docs/gaps.md (`W3`), or a section of it (`gaps: Trivia`) or of the specification (`spec: Voting`)."""
    sentence: str
    """What must hold, for reports."""
    probe: Probe
    roles: frozenset[str]
    """The roles that it acts in."""
    writes: bool
    """Whether it changes data: only of ids of its own."""
    extension: bool
    """Whether it changes what belongs to the whole extension: codes, its config and its state."""
    secret: bool
    """Whether it signs tokens of unusual content."""
    emulator: bool
    """Whether it needs the control API of a sandbox emulator."""
    mode: str | None
    """`sandbox` or `production` if it holds only there."""
    specified: bool
    """Whether the specification says so. Otherwise other services may differ: the result is `unknown`, not `fail`."""


def rule(
    source: str,
    *roles: str,
    writes: bool = False,
    extension: bool = False,
    secret: bool = False,
    emulator: bool = False,
    mode: str | None = None,
    specified: bool | None = None,
) -> Callable[[Probe], Rule]:
    """Make a probe a rule, named after its source and the function. Its docstring is the sentence of reports.

    Rules of sections are `specified` by default.
    """

    def decorate(probe: Probe) -> Rule:
        prefix = source.rpartition(": ")[2].lower().replace(" ", "-") if ":" in source else source
        return Rule(
            name=f"{prefix}.{probe.__name__.replace('_', '-')}",
            source=source,
            sentence=" ".join((probe.__doc__ or "").split()),
            probe=probe,
            roles=frozenset(roles),
            writes=writes or extension,
            extension=extension,
            secret=secret,
            emulator=emulator,
            mode=mode,
            specified=source.startswith("spec:") if specified is None else specified,
        )

    return decorate


class Differs(Exception):
    """Raised if the service does not keep the rule."""

    def __init__(self, what: str, expected: object, seen: object) -> None:
        super().__init__(what)
        self.what = what
        self.expected = expected
        self.seen = seen


class Unknown(Differs):
    """Raised if the specification allows both: `expected`, which `extcli serve` does, and `seen`, which this service
    does.
    """


class Unspecified(Differs):
    """Raised if the service refuses the call, but with another status than expected.

    The specification names no REST statuses.
    """


class Skipped(Exception):
    """Raised if the probe cannot run against this service. The message says why."""


def expect(what: str, expected: object, seen: object) -> None:
    """Raise `Differs` unless both are equal. `true` and `1` are not equal, as in JSON.

    For a status, raise `Unspecified` if both are refusals (400 to 499).
    """
    if not same(expected, seen):
        are_refusals = all(isinstance(each, int) and 400 <= each < 500 for each in (expected, seen))
        raise (Unspecified if are_refusals and what.startswith("the status") else Differs)(what, expected, seen)


def expect_that(what: str, holds: bool, expected: object, seen: object) -> None:
    """Raise `Differs` unless the condition holds. `expected` describes it."""
    if not holds:
        raise Differs(what, expected, seen)


def shown(value: object) -> str:
    """Return a value as one line of JSON, for reports. A set becomes a sorted array; bytes become text."""
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    return json.dumps(value, ensure_ascii=False, default=lambda found: sorted(found, key=str))


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal. `1` equals `1.0`, but not `true`."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


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
    ahead: int
    """How far the service's clock is ahead of this machine's, in ms."""
    timeout: float
    pace: Pace
    has_default_ws: bool = True
    """Whether the address of the socket follows from the URL."""
    left: list[str] = field(default_factory=list)
    """What probes wrote and could not remove."""

    def now(self) -> int:
        """Return the service's time in Unix ms, if its clock is not frozen."""
        return clock.now() + self.ahead

    def missing(self, rule: Rule) -> str:
        """Return why a rule cannot be checked on this service; empty if it can."""
        if rule.mode and rule.mode != self.environment:
            return f"only in {rule.mode}"
        if rule.emulator and not self.has_control:
            return "needs the control API of an emulator"
        if rule.writes and not self.writes:
            return "changes data: --writes"
        if rule.extension and not self.whole_extension:
            return "replaces data of the whole extension: --whole-extension"
        if self.token is not None:
            return self._missing_with_token(rule)
        if self.secret is None and self.environment == "production" and rule.roles:
            return "needs the extension's secret (EXTCLI_SECRET)"
        if self.secret is None and rule.secret:
            return "signs tokens: needs the extension's secret (EXTCLI_SECRET)"
        return ""

    def _missing_with_token(self, rule: Rule) -> str:
        role = tokens.claims_in(self.token or "").get("role", "viewer")
        if rule.secret or rule.writes or rule.roles - {role}:
            return f"needs the extension's secret (EXTCLI_SECRET): the given token is of a {role}"
        return ""

    def token_of(self, claims: dict[str, Any], client_id: str) -> str:
        """Return a token with these claims: signed, given, or issued by the sandbox. `OMIT` leaves a claim out."""
        if self.token is not None:
            return self.token
        if self.secret is not None:
            claims = {"exp": (self.now() + tokens.LIFETIME) // 1000, **claims}
            return tokens.sign({name: value for name, value in claims.items() if value is not OMIT}, self.secret)
        answer = self.http.send("POST", f"{SERVICE}authtoken", body=encoded({"app_id": client_id, **claims}))
        return str(document_of(answer, {"token": str})["token"]) if answer.status_code == 200 else ""


def fresh(kind: str = "") -> str:
    """Return a random id that no one else uses. It ends in a digit, as ids of users do."""
    return f"{PREFIX}{kind}{secrets.token_hex(5)}{secrets.randbelow(10)}"


PER_SECOND = 50.0
"""Requests per second of one caller. `extcli serve` allows 100 to a viewer in production."""
BURST = 50.0


class Pace:
    """Delays requests so that no caller makes more than `PER_SECOND`."""

    def __init__(self, *, unlimited: bool, shared: bool) -> None:
        """With `shared`, the limit applies to all callers together, otherwise to each caller."""
        self._unlimited = unlimited
        self._shared = shared
        self._spent: dict[str, tuple[float, float]] = {}

    def take(self, caller: str) -> None:
        """Wait until this caller may make a request."""
        if self._unlimited:
            return
        key = "" if self._shared else caller
        now = clock.elapsed()
        spent, at = self._spent.get(key, (0.0, now))
        spent = max(0.0, spent - (now - at) * PER_SECOND) + 1
        self._spent[key] = spent, now
        if spent > BURST:
            clock.sleep((spent - BURST) / PER_SECOND)

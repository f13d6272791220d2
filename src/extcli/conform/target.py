"""The service that a run of `conform` checks, and the pace of its requests; all probes of a run share them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from extcli import clock
from extcli.api import tokens
from extcli.api.call import SERVICE, encoded
from extcli.api.http import Http
from extcli.conform.rule import Rule
from extcli.reading.shapes import document_of

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
    """The data that probes wrote and could not remove."""

    def now(self) -> int:
        """Return the service's time in Unix ms. It is wrong if the service's clock is frozen."""
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

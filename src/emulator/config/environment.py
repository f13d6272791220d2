"""How production and sandbox differ, as values. Nobody else asks which of the two it is."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.clock import DAY
from emulator.engines.base import NEVER


@dataclass(frozen=True)
class Environment:
    """The rules of one environment. `lifetime`s are in milliseconds."""

    name: str
    """What `ready` and broadcast envelopes call it; also the engine's namespace, so the two never share data."""
    verifies_tokens: bool
    """Ruling A1: signatures, `exp` and the client id of a token are checked."""
    issues_sandbox_tokens: bool
    """Whether `authtoken` exists."""
    stage: str | None
    """The `allowed_stage` of the tokens it issues."""
    refused_stage: str | None
    """The `allowed_stage` it turns away with 403."""
    limits_pin_attempts: bool
    """Whether wrong PINs are counted, and refused when there are too many (ruling T4)."""
    caller_rate: int
    """Requests a second that a caller may make, unless the settings say otherwise; 0 for no limit."""
    client_rate: int
    """The same for all callers of a client id together."""
    has_control: bool
    """Whether the control API is there."""
    state_lifetime: int
    """How long a state store lives after its last write (ruling S4)."""
    config_lifetime: int
    """The same for a config store."""

    def ends(self, now: int, lifetime: int) -> int:
        """When something written `now` comes to its end."""
        return NEVER if lifetime >= NEVER else now + lifetime


SANDBOX = Environment(
    name="sandbox",
    verifies_tokens=False,
    issues_sandbox_tokens=True,
    stage="sandbox",
    refused_stage=None,
    limits_pin_attempts=False,
    caller_rate=0,
    client_rate=0,
    has_control=True,
    state_lifetime=DAY,
    config_lifetime=DAY,
)

PRODUCTION = Environment(
    name="production",
    verifies_tokens=True,
    issues_sandbox_tokens=False,
    stage=None,
    refused_stage="sandbox",
    limits_pin_attempts=True,
    caller_rate=100,
    client_rate=5_000,
    has_control=False,
    state_lifetime=30 * DAY,
    config_lifetime=NEVER,
)

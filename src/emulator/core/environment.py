"""The rules of sandbox and production, as values."""

from __future__ import annotations

from dataclasses import dataclass, replace

from emulator.core.clock import DAY
from emulator.core.keys import NEVER


@dataclass(frozen=True)
class AnonymousLimits:
    """Limits on callers without a token. Most apply per network address, for IPv6 per /48 network. 0 means no limit."""

    address_pins: int = 0
    """PINs that an address may request in a minute."""
    address_pin_attempts: int = 0
    """Wrong PINs per minute of one address, or in `validate_pin` of one channel (ruling T4)."""
    client_pin_attempts: int = 0
    """Wrong PINs per minute of one client id; beyond that, each network has a few an hour (ruling T4)."""
    address_sockets: int = 0
    """Open game sockets of an address without authentication, and of a user or a broadcaster's channel with it."""
    max_unauthenticated: int = 0
    """Open unauthenticated game sockets of all addresses together."""
    login_timeout: int = 0
    """Seconds that a game socket may stay unauthenticated. A user may take a PIN's whole life to type it."""
    address_connections: int = 0
    """Open HTTP connections of an address, without sockets. A trusted proxy has no limit."""
    address_pages: int = 0
    """Open sockets of pages of an address, and game sockets of viewers of one client id. A page never authenticates."""
    address_kib: int = 0
    """KiB per minute that an address may send over unauthenticated sockets.

    A game that reconnects sends `authenticate` and all that it has queued at once.
    """


@dataclass(frozen=True)
class Environment:
    """The rules of one environment. Lifetimes are in milliseconds."""

    name: str
    """Its name in `ready` and broadcast envelopes, and the engine's namespace, so the two never share data."""
    is_strict: bool
    """Whether production's rules apply. Above all, signature, `exp`, stage and client id of tokens are verified (A1).

    Otherwise it serves `authtoken`, and issues tokens for the sandbox.
    """
    caller_rate: int
    """Default requests per second of one caller; 0 means no limit."""
    anonymous: AnonymousLimits
    """Default limits on callers without a token."""
    has_control: bool
    """Serve the control API."""
    state_lifetime: int
    """Lifetime of a state store after its last write (ruling S4)."""
    config_lifetime: int
    """Lifetime of a config store after its last write (ruling S4)."""

    def expires_at(self, now: int, lifetime: int) -> int:
        """Return when data written at `now` (Unix ms) expires; `NEVER` for an unlimited lifetime."""
        return NEVER if lifetime >= NEVER else now + lifetime


SANDBOX = Environment(
    name="sandbox",
    is_strict=False,
    caller_rate=0,
    anonymous=AnonymousLimits(),
    has_control=True,
    state_lifetime=DAY,
    config_lifetime=DAY,
)

PRODUCTION = Environment(
    name="production",
    is_strict=True,
    caller_rate=100,
    anonymous=AnonymousLimits(
        address_pins=30,
        address_pin_attempts=10,
        client_pin_attempts=60,
        address_sockets=50,
        max_unauthenticated=2_000,
        login_timeout=600,
        address_connections=500,
        address_pages=500,
        address_kib=4_096,
    ),
    has_control=False,
    state_lifetime=30 * DAY,
    config_lifetime=NEVER,
)

STRICT = replace(PRODUCTION, name=SANDBOX.name, has_control=True)
"""A sandbox with the rules of production, and with its control API."""

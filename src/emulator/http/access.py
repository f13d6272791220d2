"""Decides who may reach an endpoint: credentials, roles, rates, and the gates of the control API and of pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from litestar.types import HTTPScope

from emulator.callers import Caller, role_error
from emulator.clock import Clock
from emulator.contract.names import is_client_id
from emulator.errors import Forbidden, Unauthorized
from emulator.http.endpoint import Audience, Endpoint
from emulator.http.request import Request
from emulator.limits.rate_limit import RateLimits
from emulator.parity.service import ENDPOINT, Parity, note

Gate = Callable[[HTTPScope], None]
"""Raises a `ServiceError` if a request may not reach the control API."""


@dataclass(eq=False, repr=False, kw_only=True)
class Access:
    """The checks of one service before an endpoint reads its body. Each raises a `ServiceError`."""

    cached_caller: Callable[[str | None], Caller | None]
    """Returns the caller of a header that was verified before; `None` for any other header."""
    authenticate: Callable[[str | None], Awaitable[Caller]]
    """Verifies a header."""
    check_registered: Callable[[str], object]
    """Raises `Unauthorized` for a client id that is not accepted."""
    control_gate: Gate
    page_gate: Gate
    clock: Clock
    rate_limits: RateLimits
    parity: Parity

    async def caller_without_counting(self, header: str | None) -> Caller:
        """Return the caller of an Authorization header. Failures are not counted."""
        return self.cached_caller(header) or await self.authenticate(header)

    async def verify_uncached(self, header: str | None, peer: str) -> Caller:
        """Verify an Authorization header that is not cached, and count a 401 or 403.

        Raises `TooManyRequests` if the address has failed too often.
        """
        self.rate_limits.check_failures(peer)
        try:
            return await self.authenticate(header)
        except (Unauthorized, Forbidden):
            self.rate_limits.check_failures(peer, one_more=True)
            raise

    async def verified_caller(self, header: str, peer: str) -> Caller:
        """Return the caller of an Authorization header. Count a 401 or 403. The dispatcher does the same inline."""
        return self.cached_caller(header) or await self.verify_uncached(header, peer)

    def check_caller(self, caller: Caller, endpoint: Endpoint[Any], peer: str) -> None:
        """Count a request of a caller, and check the role."""
        self.rate_limits.check(caller, peer, now=self.clock.now())
        if caller.role not in endpoint.roles:
            raise role_error(caller.role, endpoint.roles)

    async def client_of(self, request: Request) -> tuple[Caller | None, str]:
        """Count a request that needs no token. Return its caller, `None` if it has no token, and its client id, empty
        if it names none.
        """
        peer, header = request.peer, authorization_of(request.headers)
        client_id = bare_client_id(header)
        if client_id:
            try:
                self.check_registered(client_id)
            except Unauthorized:
                self.rate_limits.check_failures(peer, one_more=True)
                raise
        elif header:
            request.context.caller = caller = await self.verified_caller(header, peer)
            self.rate_limits.check(caller, peer, now=self.clock.now())
            return caller, caller.client_id
        self.rate_limits.check_address(peer)
        return None, client_id

    def check_open(self, endpoint: Endpoint[Any], request: Request) -> None:
        """Check a request to an endpoint that needs no credential."""
        match endpoint.audience:
            case Audience.PUBLIC:
                self.parity.check_endpoint(endpoint.method, endpoint.path)
                self.rate_limits.check_address(request.peer)
            case Audience.CONTROL | Audience.PAGE:
                note(ENDPOINT)
                assert request.scope is not None, "such an endpoint is not hot"
                gate = self.control_gate if endpoint.audience is Audience.CONTROL else self.page_gate
                gate(request.scope)


def authorization_of(headers: Mapping[bytes, bytes]) -> str | None:
    """Return the header `Authorization`; `None` without one."""
    header = headers.get(b"authorization")
    return None if header is None else header.decode("latin-1")


def bare_client_id(header: str | None) -> str:
    """Return the client id of an Authorization header that has only a client id; empty for any other header."""
    words = (header or "").strip().strip('"').split()
    return words[0] if len(words) == 1 and is_client_id(words[0]) else ""

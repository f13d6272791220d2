"""Decides who may reach an endpoint: credentials, roles, rates, and the gates of the control API and of pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

from litestar.types import HTTPScope, Receive

from emulator.contract.names import is_client_id
from emulator.core.callers import Caller, Grant
from emulator.core.errors import Forbidden, Unauthorized
from emulator.core.limits import RateLimits
from emulator.http.endpoint import Audience, Endpoint
from emulator.http.request import Request

AccessGate = Callable[[HTTPScope], None]
"""Raises a `ServiceError` if a request may not reach the control API."""


@dataclass(eq=False, repr=False, kw_only=True)
class Access:
    """The checks of one service before an endpoint runs, and of what has ended since. Each raises a `ServiceError`."""

    cached_caller: Callable[[str | None], Caller | None]
    """Returns the caller of a header that was verified before; `None` for any other header."""
    authenticate: Callable[[str | None], Awaitable[Caller]]
    """Verifies a header."""
    is_admitted: Callable[[str, Grant], bool]
    """Whether the grant of a client id has not ended."""
    check_registered: Callable[[str], object]
    """Raises `Unauthorized` for a client id that is not accepted."""
    control_gate: AccessGate
    page_gate: AccessGate
    rate_limits: RateLimits
    _waiting: WeakSet[asyncio.Future[None]] = field(default_factory=WeakSet)
    """The uploads that wait for the next part of their body."""

    def recheck_uploads(self) -> None:
        """Have all uploads verify their tokens again, because the registered extensions have changed."""
        for each in list(self._waiting):
            if not each.done():
                each.set_result(None)

    async def receive_verified(self, receive: Receive, header: str | None) -> Any:
        """Receive the next part of an upload, whose token must be valid until then."""
        message = asyncio.ensure_future(receive())
        try:
            while True:
                woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.add(woken)
                await asyncio.wait((message, woken), return_when=asyncio.FIRST_COMPLETED)
                await self.caller_without_counting(header)
                if message.done():
                    return message.result()
        finally:
            message.cancel()

    async def caller_without_counting(self, header: str | None) -> Caller:
        """Return the caller of an Authorization header. Failures are not counted."""
        return self.cached_caller(header) or await self.authenticate(header)

    async def verified_caller(self, header: str | None, peer: str) -> Caller:
        """Return the caller of an Authorization header, and count a 401 or 403 of one that is not cached.

        Raises `TooManyRequests` if the address has failed too often.
        """
        if caller := self.cached_caller(header):
            return caller
        self.rate_limits.check_invalid_tokens(peer)
        try:
            return await self.authenticate(header)
        except (Unauthorized, Forbidden):
            self.rate_limits.check_invalid_tokens(peer, one_more=True)
            raise

    async def identify_client(self, request: Request) -> tuple[Caller | None, str]:
        """Count a request that needs no token. Return its caller, `None` if it has no token, and its client id, empty
        if it names none.
        """
        peer, header = request.peer, authorization_header(request.headers)
        client_id = bare_client_id(header)
        if client_id:
            try:
                self.check_registered(client_id)
            except Unauthorized:
                self.rate_limits.check_invalid_tokens(peer, one_more=True)
                raise
        elif header:
            request.context.caller = caller = await self.verified_caller(header, peer)
            self.rate_limits.check_caller(caller, peer)
            return caller, caller.client_id
        self.rate_limits.check_address(peer)
        return None, client_id

    def check_tokenless(self, endpoint: Endpoint, request: Request) -> None:
        """Check a request to an endpoint that needs no credential."""
        if endpoint.audience in (Audience.CONTROL, Audience.PAGE):
            assert request.scope is not None, "such an endpoint is not hot"
            (self.control_gate if endpoint.audience is Audience.CONTROL else self.page_gate)(request.scope)
        elif endpoint.audience is not Audience.HEALTH:
            self.rate_limits.check_address(request.peer)


def authorization_header(headers: Mapping[bytes, bytes]) -> str | None:
    """Return the header `Authorization`; `None` without one."""
    header = headers.get(b"authorization")
    return None if header is None else header.decode("latin-1")


def bare_client_id(header: str | None) -> str:
    """Return the client id of an Authorization header that has only a client id; empty for any other header."""
    words = (header or "").strip().strip('"').split()
    return words[0] if len(words) == 1 and is_client_id(words[0]) else ""

"""Issues sandbox tokens, verifies tokens, and lists the ids that users shared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from msgspec import Struct

from emulator.auth.refusals import no_such_extension
from emulator.auth.tokens import Tokens
from emulator.callers import Caller
from emulator.clock import Clock
from emulator.config.extensions import Extensions
from emulator.features.identity.directory import Directory
from emulator.features.identity.rules import TOKEN_LIFETIME, AuthtokenBody, id_text, identities_of
from emulator.hints import Hints
from emulator.ids import anonymous_id
from emulator.limits.connection_limit import hidden_address
from emulator.parity.service import excuse
from emulator.wire.cursors import FIRST, cursor_of, place_of

PAGE = 1_000
"""User ids in one page of `user_ids`."""


class UserInfo(Struct):
    """The caller of `user_info`. Published clients read the first four fields."""

    server_time: int
    """Unix ms."""
    ip_address: str
    registered: bool
    visualization_id: str
    role: str
    channel_id: str
    user_id: str
    opaque_user_id: str
    extension_id: str


class SharedId(Struct):
    """A user who shared their platform id with the extension."""

    twitch_id: str


class UserIds(Struct):
    """One page of shared user ids; `next` is `0` on the last page."""

    next: str
    results: list[SharedId]


@dataclass(eq=False, repr=False)
class Identities:
    """Sandbox tokens, callers and shared user ids. `_linked_caller` finds the caller of a PIN token by its `jti`."""

    _directory: Directory
    _clock: Clock
    _tokens: Tokens
    _extensions: Extensions
    _linked_caller: Callable[[Caller, str], Awaitable[Caller]]
    _hints: Hints

    async def authenticate(self, header: str | None) -> Caller:
        """Verify an `Authorization` header. Raises `Unauthorized` or `Forbidden`."""
        credential = self._tokens.verify(header)
        if credential.pin_token_id:
            return await self._linked_caller(credential.caller, credential.pin_token_id)
        return credential.caller

    async def issue(self, body: AuthtokenBody, *, for_helper: bool) -> list[str]:
        """Return a sandbox token for each user that the body names. The extension is optional. Raises `BadRequest`.

        With `for_helper`, the tokens replace ones that the platform would issue, so the request gets no verdict.
        """
        if for_helper:
            excuse()
        client_id = id_text(body.extension_id) or id_text(body.app_id)
        if client_id:
            self._hints.client(client_id)
        if client_id and not self._extensions.admits(client_id):
            raise no_such_extension(client_id=client_id)
        return [
            self._tokens.issue(
                TOKEN_LIFETIME
                + (max(0, -self._clock.offset) if for_helper else 0),  # a page reads `exp` by its own clock
                role=body.role or "viewer",
                channel_id=id_text(body.channel_id) or None,
                user_id=identity.user_id,
                opaque_user_id=identity.opaque_id,
                extension_id=client_id or None,
                helper=for_helper or None,
            )
            for identity in identities_of(body, anonymous_id)
        ]

    def describe(self, caller: Caller, peer: str) -> UserInfo:
        """Return the caller's record, with the service's time in Unix ms. `peer` is the client's address."""
        return UserInfo(
            server_time=self._clock.now(),
            ip_address=hidden_address(peer),
            registered=False,
            visualization_id="",
            role=caller.role,
            channel_id=caller.channel_id or "",
            user_id=caller.user_id or "",
            opaque_user_id=caller.opaque_id,
            extension_id=caller.client_id,
        )

    async def list_user_ids(self, caller: Caller, cursor: str) -> UserIds:
        """Return up to 1,000 ids of users who shared their id and sent a write, in code point order.

        Raises `BadRequest`.
        """
        after = place_of(cursor, bytes.decode) or ""
        ids = await self._directory.page(caller.client_id, after=after, limit=PAGE + 1)
        page = ids[:PAGE]
        next_cursor = cursor_of(page[-1].encode()) if len(ids) > PAGE else FIRST
        return UserIds(next_cursor, [SharedId(user_id) for user_id in page])

"""Calls the service API as any caller, with a token that the service signs and never shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from msgspec import UNSET, Struct, UnsetType

from emulator.auth.tokens import Tokens
from emulator.clock import MINUTE
from emulator.control.calls.rules import CUT, MAX_RESPONSE, CallBody, body_bytes, checked_call, shown_body, target_of

_LIFETIME: Final = 10 * MINUTE


class Called(Struct):
    """The response to a call."""

    status: int
    body: Any
    """JSON as it is, anything else as text."""
    request_id: str
    """The id under which the journal has it."""
    headers: Mapping[str, str] | UnsetType = UNSET
    """What the endpoint says in headers, such as `Extcli-Marked`, by name. Absent if there are none."""
    note: str | UnsetType = UNSET
    """Present if the body is not complete."""
    hint: str | UnsetType = UNSET
    """What the caller probably meant, as in `X-Emulator-Hint`; absent if nothing is known."""


class Reply(Protocol):
    """The response of an endpoint."""

    @property
    def status(self) -> int: ...

    @property
    def body(self) -> bytes:
        """The body; of a body over `max_size` bytes, a beginning that is also over `max_size`."""

    @property
    def is_json(self) -> bool: ...

    @property
    def request_id(self) -> str: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def hint(self) -> str: ...


class Answering(Protocol):
    """Handles a request as if it came over the network."""

    async def __call__(
        self, method: str, path: str, query: bytes, authorization: str, body: bytes, *, peer: str, max_size: int
    ) -> Reply:
        """Return the response to a request; of a body over `max_size` bytes, only the beginning.

        Raises `NotFound` for an unknown path.
        """


@dataclass(eq=False, repr=False)
class Calls:
    """Calls as any caller. Roles, limits, ids and the journal apply as to every request."""

    _tokens: Tokens
    _answer: Answering

    async def call(self, body: CallBody, peer: str) -> Called:
        """Make a call, and return its response. Raises `BadRequest` or `NotFound` for an invalid call."""
        checked_call(body)
        path, query = target_of(body.path)
        token = self._tokens.issue_as(
            body.client_id,
            _LIFETIME,
            jti="call",  # equal tokens of one second are verified once
            role=body.role,
            channel_id=body.channel_id or None,
            user_id=body.user_id or None,
            opaque_user_id=body.opaque_user_id or None,
        )
        reply = await self._answer(
            body.method.upper(),
            path,
            query,
            f"{body.client_id} {token}",
            body_bytes(body.body),
            peer=peer,
            max_size=MAX_RESPONSE,
        )
        is_cut = len(reply.body) > MAX_RESPONSE
        return Called(
            reply.status,
            shown_body(reply.body[:MAX_RESPONSE], is_json=reply.is_json and not is_cut),
            reply.request_id,
            reply.headers or UNSET,
            CUT if is_cut else UNSET,
            reply.hint or UNSET,
        )

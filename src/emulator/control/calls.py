"""Calls of the service API as any caller, for people and tools that hold no token."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.auth.tokens import Tokens
from emulator.contract.limits import MAX_USER_LENGTH
from emulator.contract.names import CLIENT_ID_RULE, is_client_id
from emulator.core.callers import Role
from emulator.core.clock import MINUTE
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import invalid_member, missing_member, wrong_shape
from emulator.core.wire.url import SERVICE
from emulator.http.dispatch import Dispatcher
from emulator.http.endpoint import Call, control_endpoint

MAX_RESPONSE = 1024 * 1024
"""Bytes of a response that are returned."""
CUT_NOTE = f"the response is longer than {MAX_RESPONSE:,} bytes; the member body has only the beginning, as text"


class CallBody(Struct):
    """A request of the service API, and the caller who makes it."""

    path: str
    """Path and query, such as `/v1/e/vote?id=rps`."""
    client_id: str
    method: str = "GET"
    body: Any = None
    """A string is sent as it is, and anything else as JSON; `null` sends no body."""
    role: Role = Role.VIEWER
    user_id: str = ""
    """Twitch's user id; empty for a user who has not shared it."""
    channel_id: str = ""
    opaque_user_id: str = ""


def check_call(body: CallBody) -> None:
    """Raise `BadRequest` naming the field unless the call is valid."""
    if not body.path.startswith(SERVICE):
        raise invalid_member("path", body.path, f"a path of the service API, which starts with {SERVICE}")
    if not body.client_id:
        raise missing_member("client_id")
    if not is_client_id(body.client_id):
        raise invalid_member("client_id", body.client_id, CLIENT_ID_RULE)
    for name in ("user_id", "channel_id", "opaque_user_id"):
        text: str = getattr(body, name)
        if len(text) > MAX_USER_LENGTH or not text.isprintable():
            raise wrong_shape(name, needed=f"at most {MAX_USER_LENGTH} printable characters")


_TOKEN_LIFETIME = 10 * MINUTE
_OWN_HEADERS = b"extcli-"
"""The start of the names of the headers that endpoints declare."""


class CallResult(Struct):
    """The response to a call."""

    status: int
    body: Any
    """JSON as it is, anything else as text."""
    request_id: str
    """The id of the call in the journal."""
    headers: Mapping[str, str] | UnsetType = UNSET
    """The headers whose names start with `Extcli-`, such as `Extcli-Marked`. Absent if there are none."""
    note: str | UnsetType = UNSET
    """Present if the body is not complete."""
    hint: str | UnsetType = UNSET
    """What the caller probably meant: the text of `X-Emulator-Hint`. Absent if nothing is known."""


@dataclass(eq=False, repr=False)
class Calls:
    """Calls as any caller. Roles, limits, ids and the journal apply as to every request."""

    _tokens: Tokens
    _dispatcher: Callable[[], Dispatcher]

    async def call(self, body: CallBody, peer: str) -> CallResult:
        """Make a call, and return its response. Raises `BadRequest` or `NotFound` for an invalid call."""
        check_call(body)
        path, _, query = body.path.partition("?")
        sent = body.body.encode() if isinstance(body.body, str) else json_codec.encode(body.body)
        token = self._tokens.issue(
            _TOKEN_LIFETIME,
            signed_as=body.client_id,
            jti="call",  # equal tokens of one second are verified once
            role=body.role,
            channel_id=body.channel_id or None,
            user_id=body.user_id or None,
            opaque_user_id=body.opaque_user_id or None,
        )
        reply, context = await self._dispatcher().answer_own_request(
            body.method.upper(),
            path,
            quote(query, safe=string.punctuation).encode(),
            f"{body.client_id} {token}",
            b"" if body.body is None else sent,
            peer=peer,
        )
        content = await reply.read_start(MAX_RESPONSE)
        is_cut = len(content) > MAX_RESPONSE
        answer: Any = content[:MAX_RESPONSE].decode(errors="replace")
        if content and reply.content_type == b"application/json" and not is_cut:
            answer = msgspec.Raw(content)
        own_headers = [header for header in reply.more if header[0].startswith(_OWN_HEADERS)]
        return CallResult(
            reply.status,
            answer,
            context.id,
            {name.decode(): text.decode() for name, text in own_headers} or UNSET,
            CUT_NOTE if is_cut else UNSET,
            context.hint or UNSET,
        )


@control_endpoint("POST", "/_emulator/call", body=CallBody, answer=CallResult, limit="user_list", is_recorded=False)
async def call_as(calls: Calls, call: Call) -> CallResult:
    """Send a request to the service as any caller, without a token.

    Roles, limits and every rule apply as usual. The response has status 200 if the call was made; its member `status`
    is the status of the call. The journal records the call under the id of this request.
    """
    return await calls.call(call.body(CallBody), call.peer)

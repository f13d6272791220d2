"""Users: sandbox tokens, `user_info`, and the ids that users shared."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET, Struct, UnsetType

from emulator.auth.refusals import no_such_extension
from emulator.auth.tokens import Tokens
from emulator.contract.limits import MAX_USER_LENGTH
from emulator.core.callers import ANYONE, EXTENSION_WRITERS, opaque_id_of
from emulator.core.clock import MINUTE, Clock
from emulator.core.extensions import Extensions
from emulator.core.ids import new_anonymous_id
from emulator.core.keys import Key
from emulator.core.limits import masked_address
from emulator.core.observability.facts import CLIENT, NAMED, notice
from emulator.core.parity import UNJUDGED, overrule_verdict
from emulator.core.wire.cursors import FIRST, decode_cursor, encode_cursor
from emulator.core.wire.refusals import invalid_member, wrong_shape
from emulator.features.directory import Directory
from emulator.http.endpoint import CURSOR_PARAMETER, Audience, Call, Parameter, endpoint
from emulator.storage.kinds import VALUE, Stored, text_of
from emulator.storage.records import DocumentRecord

TOKEN_LIFETIME = 30 * MINUTE
"""Lifetime of a sandbox token in ms; the published SDK refreshes it every 25 minutes."""
_HELPER = Parameter(
    "helper", "Any text requests a token for a page's script or a test, which stays valid when the clock moves."
)
"""The parameter with which the pages' scripts and the test fixtures of the emulator request tokens."""


class AuthtokenBody(Struct):
    """The users to simulate. Ids may be numbers; `extension_id` and `app_id` mean the same."""

    extension_id: str | int | None = None
    app_id: str | int | None = None
    channel_id: str | int | None = None
    user_id: str | int | None = None
    user_ids: list[str | int] | str | int | None = None
    """Each user gets a token."""
    opaque_user_id: str | None = None
    """The opaque id of one user. Without `user_id`, the user has not shared that id."""
    role: str | None = None
    """Copied into the token; an unknown role counts as viewer."""


def simulated_users(body: AuthtokenBody) -> list[tuple[str | None, str]]:
    """Return the users that the body names, or one anonymous user: their shared id, if they share it, and opaque id.

    A broadcaster always owns the channel. Raises `BadRequest` for an invalid id, and for one opaque id with several
    users.
    """
    if body.role == "broadcaster" and id_text(body.channel_id):
        channel_id = id_text(body.channel_id)
        return [(channel_id, opaque_id_of(channel_id))]
    user_ids = body.user_ids if isinstance(body.user_ids, list) else [body.user_ids]
    named = list(filter(None, map(id_text, [body.user_id, *user_ids])))
    opaque_id = id_text(body.opaque_user_id)
    if opaque_id:
        if not opaque_id.startswith(("U", "A")) or len(named) > 1:
            raise invalid_member("opaque_user_id", opaque_id, "an id that starts with U or A, for only one user")
        return [(named[0] if named else None, opaque_id)]
    return [(user_id, opaque_id_of(user_id)) for user_id in named] or [(None, new_anonymous_id())]


def id_text(value: str | int | None) -> str:
    """Return an id as text, empty for `None`. Raises `BadRequest` unless it is at most 256 printable characters."""
    text = "" if value is None else str(value)
    if len(text) > MAX_USER_LENGTH or not text.isprintable():
        rule = f"at most {MAX_USER_LENGTH} printable characters"
        raise wrong_shape(problem=f"an id has {rule}", needed=f"ids of {rule}")
    return text


STORED = tuple(Stored(DocumentRecord, kind, lambda record: text_of(record.value, VALUE)) for kind in ("user", "opaque"))


IDS_PER_PAGE = 1_000
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
    """A user who shared their Twitch id with the extension."""

    twitch_id: str


class UserIds(Struct):
    """One page of shared user ids; `next` is `0` on the last page."""

    next: str
    results: list[SharedId]


class Issued(Struct):
    """`token` for one user; `tokens` if the body has `user_ids`."""

    token: str | UnsetType = UNSET
    tokens: list[str] | UnsetType = UNSET


@dataclass(eq=False, repr=False)
class Identities:
    """Sandbox tokens, the caller's own record, and shared user ids."""

    _directory: Directory
    _clock: Clock
    _tokens: Tokens
    _extensions: Extensions

    @endpoint(
        "POST",
        "/v1/e/authtoken",
        audience=Audience.PUBLIC,
        body=AuthtokenBody,
        answer=Issued,
        query=(_HELPER,),
        secrets=frozenset({"token", "tokens"}),
    )
    async def issue_sandbox_token(self, call: Call) -> Issued:
        """Issue tokens for simulated users; sandbox only."""
        body, lifetime = call.body(AuthtokenBody), TOKEN_LIFETIME
        for_helper = bool(call.text(_HELPER.name))
        if for_helper:  # the tokens replace ones that Twitch would issue, so the request gets no verdict
            overrule_verdict(UNJUDGED)
            lifetime += max(0, -self._clock.offset)  # a page reads `exp` by its own clock
        client_id = id_text(body.extension_id) or id_text(body.app_id)
        if client_id:
            notice(NAMED, Key(CLIENT, client_id, client_id))
            if not self._extensions.admits(client_id):
                raise no_such_extension(client_id=client_id)
        tokens = [
            self._tokens.issue(
                lifetime,
                role=body.role or "viewer",
                channel_id=id_text(body.channel_id) or None,
                user_id=user_id,
                opaque_user_id=opaque_id,
                extension_id=client_id or None,
                helper=for_helper or None,
            )
            for user_id, opaque_id in simulated_users(body)
        ]
        return Issued(
            token=tokens[0] if len(tokens) == 1 else UNSET,
            tokens=tokens if body.user_ids is not None or len(tokens) > 1 else UNSET,
        )

    @endpoint("GET", "/v1/e/user_info", roles=ANYONE, answer=UserInfo)
    async def read_user_info(self, call: Call) -> UserInfo:
        """Read the caller's identity and the service's time; 200 only for a valid token."""
        caller = call.caller
        return UserInfo(
            server_time=self._clock.now(),
            ip_address=masked_address(call.peer),
            registered=False,
            visualization_id="",
            role=caller.role,
            channel_id=caller.channel_id or "",
            user_id=caller.user_id or "",
            opaque_user_id=caller.opaque_id,
            extension_id=caller.client_id,
        )

    @endpoint("GET", "/v1/e/user_ids", roles=EXTENSION_WRITERS, answer=UserIds, query=(CURSOR_PARAMETER,))
    async def list_user_ids(self, call: Call) -> UserIds:
        """List the ids of the users who shared them and sent at least one write, 1,000 at a time."""
        after = decode_cursor(call.text("cursor"), bytes.decode) or ""
        ids = await self._directory.shared_ids_page(call.caller.client_id, after=after, limit=IDS_PER_PAGE + 1)
        page = ids[:IDS_PER_PAGE]
        next_cursor = encode_cursor(page[-1].encode()) if len(ids) > IDS_PER_PAGE else FIRST
        return UserIds(next_cursor, [SharedId(user_id) for user_id in page])


sandbox_calls = (Identities.issue_sandbox_token,)
endpoints = (Identities.read_user_info, Identities.list_user_ids)

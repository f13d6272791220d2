"""The body of `authtoken`, and the users that it names. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from emulator.callers import opaque_id_of
from emulator.clock import MINUTE
from emulator.contract.limits import MAX_USER_LENGTH
from emulator.engines.records import DocumentRecord
from emulator.stored import VALUE, Stored, text_of
from emulator.wire.refusals import invalid_member, wrong_shape

TOKEN_LIFETIME = 30 * MINUTE
"""Lifetime of a sandbox token in ms; the published SDK refreshes it every 25 minutes."""
HELPER: Final = "helper"
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


class Identity(Struct):
    """One simulated user."""

    user_id: str | None
    opaque_id: str


def identities_of(body: AuthtokenBody, anonymous_id: Callable[[], str]) -> list[Identity]:
    """Return the users that the body names, or one anonymous user. A broadcaster always owns the channel.

    Raises `BadRequest` for an invalid id, and for one opaque id with several users.
    """
    if body.role == "broadcaster" and id_text(body.channel_id):
        channel_id = id_text(body.channel_id)
        return [Identity(channel_id, opaque_id_of(channel_id))]
    user_ids = body.user_ids if isinstance(body.user_ids, list) else [body.user_ids]
    named = [user_id for user_id in map(id_text, [body.user_id, *user_ids]) if user_id]
    opaque_id = id_text(body.opaque_user_id)
    if opaque_id:
        if not opaque_id.startswith(("U", "A")) or len(named) > 1:
            raise invalid_member("opaque_user_id", opaque_id, "an id that starts with U or A, and names one user")
        return [Identity(named[0] if named else None, opaque_id)]
    return [Identity(user_id, opaque_id_of(user_id)) for user_id in named] or [Identity(None, anonymous_id())]


def id_text(value: str | int | None) -> str:
    """Return an id as text, empty for `None`. Raises `BadRequest` unless it is at most 256 printable characters."""
    text = "" if value is None else str(value)
    if len(text) > MAX_USER_LENGTH or not text.isprintable():
        raise wrong_shape(
            problem=f"an id has at most {MAX_USER_LENGTH} printable characters",
            needed=f"ids of at most {MAX_USER_LENGTH} printable characters",
        )
    return text


def _check_id(record: DocumentRecord) -> None:
    text_of(record.value, VALUE)


STORED: Final = (
    Stored(DocumentRecord, "user", _check_id),
    Stored(DocumentRecord, "opaque", _check_id),
)

"""What `authtoken` takes, and which identities it stands for. Pure but for the names it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from emulator.clock import MINUTE
from emulator.errors import BadRequest

TOKEN_LIFETIME = 30 * MINUTE
"""How long a sandbox token lives; the published SDK asks for another every 25 minutes."""


class AuthtokenBody(Struct):
    """What to simulate. Ids may be numbers; `extension_id` and `app_id` mean the same."""

    extension_id: str | int | None = None
    app_id: str | int | None = None
    channel_id: str | int | None = None
    user_id: str | int | None = None
    user_ids: list[str | int] | str | int | None = None
    """One token for each."""
    role: str | None = None
    """Taken as it is; one that the service does not know counts as viewer."""


class Identity(Struct):
    """One simulated user."""

    user_id: str | None
    opaque_id: str


def identities_of(body: AuthtokenBody, anonymous_id: Callable[[], str]) -> list[Identity]:
    """The users that the body names, in order; one anonymous user if it names none.

    A broadcaster is the owner of the channel, whatever `user_id` says.
    """
    if body.role == "broadcaster" and text(body.channel_id):
        return [_shared(text(body.channel_id))]
    several = body.user_ids if isinstance(body.user_ids, list) else [body.user_ids]
    named = [name for name in map(text, [body.user_id, *several]) if name]
    return [_shared(name) for name in named] or [Identity(None, anonymous_id())]


def text(value: Any) -> str:
    """An id that may have been sent as a number; empty for none. Raises `BadRequest` for an unprintable one."""
    if value is None:
        return ""
    name = str(value)
    if len(name) > 256 or not name.isprintable():
        raise BadRequest("Invalid body", "ids: at most 256 printable characters")
    return name


def _shared(user_id: str) -> Identity:
    return Identity(user_id, user_id if user_id.startswith("U") else f"U{user_id}")

"""The model of who is asking: the opaque ids of users, in any spelling (ruling A3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from surface.calls import DAY, EXTENSION_WRITERS, Call, Caller, Clock


class People:
    """The users of all extensions who shared their id and wrote in the last 90 days, to the end of the day."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.seen_as: dict[tuple[str, str], str] = {}
        """Client id and shared id → the opaque id of the last write; empty if no token named one."""
        self.shared: dict[tuple[str, str], str] = {}
        """Client id and opaque id → the shared id."""
        self.ends: dict[tuple[bool, str, str], int] = {}
        """Whether an id is shared, client id and id → when it is forgotten."""

    def expire(self) -> None:
        for (is_shared, *key), end in list(self.ends.items()):
            if end <= self.clock.now:
                del self.ends[is_shared, key[0], key[1]]
                (self.seen_as if is_shared else self.shared).pop((key[0], key[1]))

    def expiries(self) -> list[int]:
        return list(self.ends.values())

    def keep(self, is_shared: bool, client_id: str, id: str) -> None:
        key, end = (is_shared, client_id, id), -(-(self.clock.now + 90 * DAY) // DAY) * DAY
        self.ends[key] = max(end, self.ends.get(key, 0))

    def known(self, caller: Caller) -> Caller:
        """The caller under the opaque id seen last, if the token names none."""
        opaque = caller.opaque or self.seen_as.get((caller.client_id, caller.user or "")) or None
        return replace(caller, opaque=opaque)

    def wrote(self, caller: Caller) -> None:
        """Record the ids of a token that wrote."""
        if not caller.user:
            return
        opaque = caller.opaque or self.seen_as.get((caller.client_id, caller.user), "")
        self.seen_as[caller.client_id, caller.user] = opaque
        self.keep(True, caller.client_id, caller.user)
        if opaque:
            self.shared[caller.client_id, opaque] = caller.user
            self.keep(False, caller.client_id, opaque)

    def opaque_id(self, client_id: str, spelling: str) -> str:
        """The opaque id of a user on a list."""
        for name in (spelling, spelling.removeprefix("U")):
            if (client_id, name) in self.seen_as:
                return self.seen_as[client_id, name] or f"U{name}"
        return spelling if spelling[0] in "UA" else f"U{spelling}"

    def spellings(self, client_id: str, spelling: str) -> set[str]:
        """All ids of a user, with and without the U."""
        opaque = self.opaque_id(client_id, spelling)
        ids = {spelling, opaque, self.shared.get((client_id, opaque), opaque)}
        return ids | {each.removeprefix("U") for each in ids} | {f"U{each}" for each in ids if each[0] not in "UA"}

    def names(self, caller: Caller) -> set[str]:
        """Every spelling under which a list may contain the caller."""
        shared = caller.user or self.shared.get((caller.client_id, caller.opaque_id))
        return {caller.opaque_id, *((shared, f"U{shared}") if shared else ())}

    def get_user_ids(self, call: Call) -> dict[str, Any]:
        call.only(*EXTENSION_WRITERS)
        ids = sorted(user for client_id, user in self.seen_as if client_id == call.caller.client_id)
        return {"next": "0", "results": [{"twitch_id": user} for user in ids]}
